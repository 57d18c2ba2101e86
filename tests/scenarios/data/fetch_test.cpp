// Fetching from a server that hangs up, forgets ranges or serves something else, and onto a disk that is full.
#include "scenarios/data/fetch/fetch.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "scenarios/data/fetch/unpack.hpp"
#include "scenarios/data/sha256.hpp"
#include "tests/support/data_folder.hpp"
#include "tests/support/http_server.hpp"

namespace fl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::string sha256_text(const std::string& text) { return sha256_of(std::as_bytes(std::span<const char>(text))); }

class Fetch : public test::DataFolderTest {
 protected:
  void SetUp() override {
    DataFolderTest::SetUp();
    for (int i = 0; i < 30000; ++i) text_ += std::to_string(i) + ' ';
    server_.put("/old/numbers.txt", text_);
    info_ = {.name = "numbers", .files = {{"set/numbers.txt", sha256_text(text_), server_.url() + "/old/numbers.txt"}}};
    try {  // a build without libcurl cannot be tested here
      download("file:///dev/null", folder_ / "probe", nullptr);
    } catch (const ConfigError& error) {
      if (std::string(error.what()).find("without libcurl") != std::string::npos) GTEST_SKIP() << error.what();
    } catch (const Error&) {
    }
    std::filesystem::remove(folder_ / "probe");
  }
  template <class E>
  [[nodiscard]] std::string error_when_fetching(const std::string& from = "") const {
    try {
      fetch_data(info_, {.folder = folder_, .from = from});
    } catch (const E& error) {
      return error.what();
    }
    return "no such error";
  }
  [[nodiscard]] std::string stored(const std::string& name = "set/numbers.txt") const { return test::read_bytes(folder_ / name); }
  [[nodiscard]] std::vector<std::string> names_there() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_))
      if (entry.is_regular_file()) names.push_back(entry.path().lexically_relative(folder_).string());
    std::sort(names.begin(), names.end());
    return names;
  }

  test::HttpServer server_;
  std::string text_;
  DataInfo info_;
};

TEST_F(Fetch, StoresWhatMatches) {
  std::uint64_t done_bytes = 0, total_bytes = 0;
  FetchListener listener;
  listener.progress = [&](std::uint64_t done, std::uint64_t total) {
    done_bytes = done;
    total_bytes = total;
  };
  fetch_data(info_, {.folder = folder_ / "new"}, listener);
  EXPECT_EQ(stored("new/set/numbers.txt"), text_);
  EXPECT_EQ(done_bytes, text_.size());
  EXPECT_EQ(total_bytes, text_.size());
  EXPECT_THAT(names_there(), ElementsAre("new/set/numbers.txt"));
  fetch_data(info_, {.folder = folder_ / "new"});  // is there already
  EXPECT_THAT(server_.requests(), ElementsAre("GET /old/numbers.txt 0"));
}

TEST_F(Fetch, GoesOnWhereItWasInterrupted) {
  server_.hang_up_after(50000);
  EXPECT_THAT(error_when_fetching<Error>(), HasSubstr("50000 bytes are kept, the same command goes on from there"));
  EXPECT_THAT(names_there(), ElementsAre("set/numbers.txt.part"));
  EXPECT_THAT(error_when_fetching<Error>(), HasSubstr("100000 bytes are kept"));
  server_.answer_properly();
  fetch_data(info_, {.folder = folder_});
  EXPECT_EQ(stored(), text_);
  EXPECT_THAT(names_there(), ElementsAre("set/numbers.txt"));
  EXPECT_THAT(server_.requests(), ElementsAre("GET /old/numbers.txt 0", "GET /old/numbers.txt 50000", "GET /old/numbers.txt 100000"));
}

TEST_F(Fetch, AnAttemptThatLackedOnlyItsEndIsTaken) {
  write("set/numbers.txt.part", text_);
  fetch_data(info_, {.folder = folder_});
  EXPECT_EQ(stored(), text_);
  EXPECT_THAT(server_.requests(), ElementsAre("GET /old/numbers.txt " + std::to_string(text_.size())));
}

TEST_F(Fetch, BeginsAnewWhereTheServerSendsNoParts) {
  write("set/numbers.txt.part", text_.substr(0, 1000));
  server_.ignore_ranges();
  fetch_data(info_, {.folder = folder_});
  EXPECT_EQ(stored(), text_);
}

TEST_F(Fetch, TheBeginningOfAnotherVersionIsNotKept) {
  write("set/numbers.txt.part", std::string(1000, 'x'));
  fetch_data(info_, {.folder = folder_});
  EXPECT_EQ(stored(), text_);
  EXPECT_THAT(server_.requests(), ElementsAre("GET /old/numbers.txt 1000", "GET /old/numbers.txt 0"));
}

TEST_F(Fetch, AnotherChecksumIsRefusedAndKeptAside) {
  server_.put("/old/numbers.txt", text_ + "x");
  EXPECT_THAT(error_when_fetching<DataError>(), AllOf(HasSubstr("set/numbers.txt has the checksum " + sha256_text(text_ + "x")),
                                                      HasSubstr("expected " + sha256_text(text_)), HasSubstr("numbers.txt.rejected")));
  EXPECT_THAT(names_there(), ElementsAre("set/numbers.txt.rejected"));
  server_.put("/old/numbers.txt", text_);  // what was refused is in nobody's way
  fetch_data(info_, {.folder = folder_});
  EXPECT_EQ(stored(), text_);
}

TEST_F(Fetch, AFileWithOtherContentsIsLeftAlone) {
  write("set/numbers.txt", "mine");
  EXPECT_THAT(error_when_fetching<ConfigError>(), HasSubstr("set/numbers.txt: is there with another checksum than the published file"));
  EXPECT_EQ(stored(), "mine");
  EXPECT_THAT(server_.requests(), IsEmpty());
}

TEST_F(Fetch, PackedFilesAreUnpacked) {
  write_packed("packed", text_);
  server_.put("/old/numbers.txt.gz", stored("packed"));
  std::filesystem::remove(folder_ / "packed");
  info_.files[0].url += ".gz";
  fetch_data(info_, {.folder = folder_});
  EXPECT_EQ(stored(), text_);
  EXPECT_THAT(names_there(), ElementsAre("set/numbers.txt"));
}

TEST_F(Fetch, CopiesElsewhereAreFoundByTheirNames) {
  server_.put("/copies/numbers.txt", text_);
  fetch_data(info_, {.folder = folder_, .from = server_.url() + "/copies/"});
  EXPECT_EQ(stored(), text_);
  EXPECT_THAT(server_.requests(), ElementsAre("GET /copies/numbers.txt 0"));
}

TEST_F(Fetch, WhatIsNotThereIsSaid) {
  EXPECT_THAT(error_when_fetching<Error>(server_.url() + "/nowhere"), HasSubstr("404"));
  EXPECT_THAT(error_when_fetching<Error>("http://127.0.0.1:1"), StartsWith("http://127.0.0.1:1/numbers.txt: "));
  EXPECT_THAT(error_when_fetching<Error>("gopher://127.0.0.1"), HasSubstr("gopher"));
  info_.files[0].url = "";
  info_.publisher = "nobody";
  EXPECT_THAT(error_when_fetching<ConfigError>(), HasSubstr("has no publisher to fetch set/numbers.txt from: nobody"));
}

TEST_F(Fetch, OneProcessAtATimeWritesAFile) {
  write("set/numbers.txt.part", "0 1");
  const int other = ::open((folder_ / "set/numbers.txt.part").c_str(), O_RDWR);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  EXPECT_THAT(error_when_fetching<ConfigError>(), HasSubstr("another process is downloading this file"));
  ::close(other);
}

// A limit on the size of files fails a write as a full disk does.
TEST_F(Fetch, AFullDiskKeepsWhatFits) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{65536, 65536};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string error = error_when_fetching<Error>();
    ::_exit(error.find("numbers.txt.part: cannot be written: ") != std::string::npos &&
                    error.find("65536 bytes are kept, the same command goes on from there") != std::string::npos
                ? 0
                : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(stored("set/numbers.txt.part"), text_.substr(0, 65536));
  fetch_data(info_, {.folder = folder_});
  EXPECT_EQ(stored(), text_);
}

// A tar archive of one file (POSIX ustar): a header of 512 bytes, the file, zeros.
std::string tar_of(const std::string& name, const std::string& bytes) {
  std::string header(512, '\0');
  const auto put = [&header](std::size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  char size[16];
  std::snprintf(size, sizeof size, "%011zo", bytes.size());
  put(0, name);
  put(100, "0000644");
  put(124, size);
  put(136, "00000000000");
  put(148, "        ");
  put(156, "0");
  put(257, std::string("ustar\0"
                       "00",
                       8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(size, sizeof size, "%06o", sum);
  put(148, size);
  header[154] = '\0';
  return header + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
}

TEST_F(Fetch, FilesComeOutOfArchives) {
  write_packed("packed", tar_of("inner/a.txt", "first") + tar_of("inner/numbers.txt", text_) + std::string(1024, '\0'));
  const std::string archive = stored("packed");
  std::filesystem::remove(folder_ / "packed");
  server_.put("/all.tar.gz", archive);
  const std::string url = server_.url() + "/all.tar.gz";
  info_.files = {{"set/numbers.txt", sha256_text(text_), url, "inner/numbers.txt"}, {"set/a.txt", "", url, "inner/a.txt"}};
  try {
    fetch_data(info_, {.folder = folder_});
  } catch (const ConfigError& error) {
    GTEST_SKIP() << error.what();  // built without libarchive
  }
  EXPECT_EQ(stored(), text_);
  EXPECT_EQ(stored("set/a.txt"), "first");
  EXPECT_THAT(server_.requests(), ElementsAre("GET /all.tar.gz 0"));
  EXPECT_THAT(names_there(), ElementsAre("set/a.txt", "set/numbers.txt"));

  std::filesystem::remove_all(folder_ / "set");
  info_.files[0].member = "inner/other.txt";
  EXPECT_THAT(error_when_fetching<DataError>(), HasSubstr("the archive holds no inner/other.txt"));
  server_.put("/all.tar.gz", archive.substr(0, archive.size() / 2));
  EXPECT_THAT(error_when_fetching<DataError>(), HasSubstr("the archive is damaged"));
}

TEST(KnownData, SaysWhatAFetchNeeds) {
  for (const DataInfo& info : known_data()) {
    EXPECT_FALSE(info.description.empty() || info.publisher.empty() || info.files.empty() || info.rows == 0) << info.name;
    for (const DataFile& file : info.files) {
      EXPECT_TRUE(file.sha256.empty() || file.sha256.size() == 64) << file.path;
      EXPECT_TRUE(file.url.empty() || file.url.starts_with("http")) << file.path;
    }
  }
}

}  // namespace
}  // namespace fl
