// Tests files that are written under a temporary name and then renamed: an interrupted write leaves nothing behind.
#include "study/output/output_file.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

namespace fl {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public ::testing::Test {
 protected:
  OutputFileTest() : folder_(fs::temp_directory_path() / ("fedbits-output-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~OutputFileTest() override { fs::remove_all(folder_); }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  fs::path folder_;
};

TEST_F(OutputFileTest, ASignalTakesItsTemporaryFilesAway) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(signal, SIG_DFL);
      remove_unfinished_files_on_signals();
      OutputFile one(folder_ / "one.csv"), two(folder_ / "two.csv");
      ::raise(signal);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    EXPECT_EQ(files(), 0u);
  }
}

TEST_F(OutputFileTest, AloneItCatchesNoSignal) {
  const OutputFile file(folder_ / "one.csv");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    ASSERT_EQ(::sigaction(signal, nullptr, &now), 0);
    EXPECT_TRUE(now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) << signal;
  }
}

TEST_F(OutputFileTest, AFileThatWasMovedIsThere) {
  {
    OutputFile file(folder_ / "there.csv");
    file.close();
    file.rename();
  }
  EXPECT_EQ(files(), 1u);
  EXPECT_TRUE(fs::exists(folder_ / "there.csv"));
}

}  // namespace
}  // namespace fl
