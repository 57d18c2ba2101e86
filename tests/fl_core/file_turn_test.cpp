#include "fl_core/state/file_turn.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace fl {
namespace {

namespace fs = std::filesystem;

class FileTurnTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "file_turn_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

// Writes a file whole under a temporary name and renames it, many times; returns whether every rename found the file.
bool write_in_turns(const fs::path& folder, int number) {
  const fs::path temporary = folder / "file.tmp";
  for (int i = 0; i < 200; ++i) {
    const FileTurn turn(temporary);
    if (!turn.is_held()) return false;
    std::ofstream out(temporary, std::ios::trunc);
    for (int line = 0; line < 50; ++line) out << number << '\n';
    out.close();
    std::error_code error;
    fs::rename(temporary, folder / "file", error);
    if (error) return false;
  }
  return true;
}

TEST_F(FileTurnTest, ProcessesThatWriteOneNameTakeTurns) {
  std::vector<pid_t> children;
  for (int number = 1; number <= 8; ++number) {
    children.push_back(::fork());
    if (children.back() == 0) ::_exit(write_in_turns(folder_, number) ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  std::ifstream in(folder_ / "file");
  int first = 0, other = 0, count = 0;
  for (in >> first, count = 1; in >> other; ++count) EXPECT_EQ(other, first) << "two processes wrote into one file";
  EXPECT_EQ(count, 50);
}

TEST_F(FileTurnTest, IsRefusedWithoutWaitingWhileAnotherHoldsIt) {
  const FileTurn held(folder_ / "file");
  EXPECT_TRUE(held.is_held());
  EXPECT_FALSE(FileTurn(folder_ / "file", FileTurn::Wait::no).is_held());
  EXPECT_TRUE(FileTurn(folder_ / "other", FileTurn::Wait::no).is_held());
  EXPECT_FALSE(FileTurn(folder_ / "missing" / "file").is_held());
}

}  // namespace
}  // namespace fl
