// Tests downloads from a server that closes connections, ignores ranges or serves other contents, and onto a full disk.
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
    info_ = {.name = "numbers",
             .files = {{.path = "set/numbers.txt",
                        .sha256 = sha256_text(text_),
                        .url = server_.url() + "/old/numbers.txt",
                        .most_bytes = text_.size()}}};
    if (!can_download()) GTEST_SKIP() << "TOOL MISSING: libcurl";
  }
  // An archive, which the server has from now on, with the files of the set inside.
  void serve_archive(const std::string& archive) {
    server_.put("/all.tar.gz", archive);
    const std::string url = server_.url() + "/all.tar.gz", sum = sha256_text(archive);
    info_.files = {{.path = "set/numbers.txt",
                    .sha256 = sha256_text(text_),
                    .url = url,
                    .member = "inner/numbers.txt",
                    .most_bytes = text_.size(),
                    .download_sha256 = sum},
                   {.path = "set/a.txt", .sha256 = "", .url = url, .member = "inner/a.txt", .most_bytes = 100, .download_sha256 = sum}};
  }
  [[nodiscard]] std::string packed(const std::string& bytes) const {
    write_packed("packed", bytes);
    const std::string result = stored("packed");
    std::filesystem::remove(folder_ / "packed");
    return result;
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
  server_.put("/old/numbers.txt", text_);  // a rejected download does not block the next one
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
  const std::string bytes = packed(text_);
  server_.put("/old/numbers.txt.gz", bytes);
  info_.files[0].url += ".gz";
  info_.files[0].download_sha256 = sha256_text(bytes);
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
  EXPECT_THAT(error_when_fetching<Error>("http://127.0.0.1:1"), HasSubstr("without a network here, download the files elsewhere"));
  EXPECT_THAT(error_when_fetching<Error>("http://127.0.0.1:1"), HasSubstr("add --from file:///FOLDER"));
  EXPECT_THAT(error_when_fetching<Error>(server_.url() + "/nowhere"), testing::Not(HasSubstr("without a network")));
  EXPECT_THAT(error_when_fetching<ConfigError>("gopher://127.0.0.1"), HasSubstr("is an address of gopher"));
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

// A tar archive of one file (POSIX ustar): a header of 512 bytes, the file, zeros. `type` 0 is a file, 1 a hard and 2 a symbolic link.
std::string tar_of(const std::string& name, const std::string& bytes, char type = '0', const std::string& link = "") {
  std::string header(512, '\0');
  const auto put = [&header](std::size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  char size[16];
  std::snprintf(size, sizeof size, "%011zo", bytes.size());
  put(0, name);
  put(100, "0000644");
  put(124, size);
  put(136, "00000000000");
  put(148, "        ");
  put(156, std::string(1, type));
  put(157, link);
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

const std::string kTarEnd(1024, '\0');

bool has_libarchive() {
  try {
    const std::string tar = tar_of("a", "b") + kTarEnd;
    return read_members(std::as_bytes(std::span<const char>(tar)), "probe", {{"a", 1}}) == std::vector<std::string>{"b"};
  } catch (const ConfigError&) {
    return false;
  }
}

class FetchArchive : public Fetch {
 protected:
  void SetUp() override {
    Fetch::SetUp();
    if (!IsSkipped() && !has_libarchive()) GTEST_SKIP() << "TOOL MISSING: libarchive";
  }
  [[nodiscard]] std::string two_files() const { return tar_of("inner/a.txt", "first") + tar_of("inner/numbers.txt", text_); }
};

TEST_F(FetchArchive, FilesComeOut) {
  const std::string archive = packed(two_files() + kTarEnd);
  serve_archive(archive);
  fetch_data(info_, {.folder = folder_});
  EXPECT_EQ(stored(), text_);
  EXPECT_EQ(stored("set/a.txt"), "first");
  EXPECT_THAT(server_.requests(), ElementsAre("GET /all.tar.gz 0"));
  EXPECT_THAT(names_there(), ElementsAre("set/a.txt", "set/numbers.txt"));
  std::filesystem::remove(folder_ / "set/a.txt");  // one that is missing comes out of the whole archive again
  fetch_data(info_, {.folder = folder_});
  EXPECT_EQ(stored("set/a.txt"), "first");

  std::filesystem::remove_all(folder_ / "set");
  info_.files[0].member = "inner/other.txt";
  EXPECT_THAT(error_when_fetching<DataError>(), HasSubstr("the archive holds no inner/other.txt"));
  serve_archive(archive.substr(0, archive.size() / 2));
  EXPECT_THAT(error_when_fetching<DataError>(), HasSubstr("the archive is damaged"));
}

// A wrong archive is as wrong as its bytes; nothing reads it.
TEST_F(FetchArchive, NothingIsUnpackedBeforeTheChecksumIsRight) {
  serve_archive(packed(two_files() + kTarEnd));
  for (const std::string& other : {std::string("no archive at all"), packed(two_files() + tar_of("../evil", "x") + kTarEnd)}) {
    server_.put("/all.tar.gz", other);
    EXPECT_THAT(error_when_fetching<DataError>(), HasSubstr("all.tar.gz: the download has the checksum " + sha256_text(other)));
  }
  info_.files[0].download_sha256 = info_.files[1].download_sha256 = "";
  EXPECT_THAT(error_when_fetching<ConfigError>(), HasSubstr("no checksum is known of what "));
  info_.files = {{.path = "set/numbers.txt", .sha256 = "", .url = server_.url() + "/old/numbers.txt"}};
  EXPECT_THAT(error_when_fetching<ConfigError>(), HasSubstr("no checksum is known of what "));
}

TEST_F(FetchArchive, LinksAndNamesOutsideAreRefused) {
  const std::pair<std::string, const char*> bad[] = {
      {tar_of("inner/b.txt", "", '2', "/etc/passwd"), "the archive holds a link, inner/b.txt; it is not unpacked"},
      {tar_of("inner/b.txt", "", '1', "inner/a.txt"), "the archive holds a link, inner/b.txt"},
      {tar_of("/inner/b.txt", "x"), "the archive holds a member with an absolute name, /inner/b.txt"},
      {tar_of("inner/../../b.txt", "x"), "the archive holds a member with .. in its name, inner/../../b.txt"},
      {tar_of("inner/pipe", "", '6'), "the archive holds something that is neither file nor folder, inner/pipe"},
      {tar_of("inner/a.txt", "second"), "the archive holds inner/a.txt twice"}};
  for (const auto& [member, error] : bad) {
    serve_archive(packed(two_files() + member + kTarEnd));
    EXPECT_THAT(error_when_fetching<DataError>(), HasSubstr(error));
  }
  EXPECT_THAT(names_there(), ElementsAre("set/all.tar.gz.rejected"));
}

TEST_F(FetchArchive, MembersHaveAtMostTheirSizes) {
  serve_archive(packed(tar_of("inner/a.txt", std::string(101, 'x')) + tar_of("inner/numbers.txt", text_) + kTarEnd));
  EXPECT_THAT(error_when_fetching<DataError>(), HasSubstr("inner/a.txt has more than 100 bytes, the most that it can have"));
}

// libarchive starts programs (lrzip, and others for what it was built without) where all of its filters are on.
TEST_F(FetchArchive, NoProgramIsStarted) {
  write("bin/lrzip", "#!/bin/sh\ntouch '" + (folder_ / "started").string() + "'\ncat\n");
  std::filesystem::permissions(folder_ / "bin/lrzip", std::filesystem::perms::owner_all);
  const char* path = std::getenv("PATH");
  const std::string before = path != nullptr ? path : "";
  ::setenv("PATH", ((folder_ / "bin").string() + ":" + before).c_str(), 1);
  serve_archive("LRZI" + std::string("\0\x06", 2) + std::string(64, 'x'));
  EXPECT_THAT(error_when_fetching<DataError>(), HasSubstr("the archive is damaged: Unrecognized archive format"));
  ::setenv("PATH", before.c_str(), 1);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "started"));
}

TEST_F(Fetch, PackedFilesUnpackToAtMostTheirSize) {
  const std::string bytes = packed(text_ + "x");
  server_.put("/old/numbers.txt.gz", bytes);
  info_.files[0].url += ".gz";
  info_.files[0].download_sha256 = sha256_text(bytes);
  EXPECT_THAT(error_when_fetching<DataError>(),
              HasSubstr("unpacks to more than " + std::to_string(text_.size()) + " bytes, the most that set/numbers.txt can have"));
}

// Announced by the server, and sent without being announced.
TEST_F(Fetch, NoMoreIsDownloadedThanTheFileHas) {
  const std::string most = std::to_string(text_.size() + (std::size_t{1} << 20));
  server_.put("/old/numbers.txt", std::string(text_.size() + (std::size_t{2} << 20), 'x'));
  EXPECT_THAT(error_when_fetching<DataError>(), HasSubstr("has more than " + most + " bytes, the most that the published file can have"));
  EXPECT_THAT(names_there(), IsEmpty());
  server_.announce_nothing();
  EXPECT_THAT(error_when_fetching<DataError>(), HasSubstr("has more than " + most + " bytes"));
  EXPECT_THAT(names_there(), IsEmpty());
  server_.put("/old/numbers.txt", text_);
  write("set/numbers.txt.part", std::string(text_.size() + (std::size_t{2} << 20), 'x'));  // of an attempt without a limit
  fetch_data(info_, {.folder = folder_});
  EXPECT_EQ(stored(), text_);
}

TEST_F(Fetch, OnlySafeProtocolsAreUsed) {
  for (const char* address : {"http://example.org", "http://127.0.0.1.example.org", "http://127.0.0.1@example.org", "http://localhost",
                              "ftp://127.0.0.1", "smb://127.0.0.1", "dict://127.0.0.1"})
    EXPECT_THAT(error_when_fetching<ConfigError>(address), HasSubstr("data are fetched by https:// and from file://")) << address;
  EXPECT_THAT(error_when_fetching<ConfigError>("nowhere at all"), HasSubstr("is no address"));
  server_.redirect("/old/numbers.txt", server_.url() + "/elsewhere");  // to plain HTTP
  server_.put("/elsewhere", text_);
  EXPECT_THAT(error_when_fetching<Error>(), HasSubstr("numbers.txt: "));
  EXPECT_THAT(server_.requests(), ElementsAre("GET /old/numbers.txt 0"));
  server_.redirect("/old/numbers.txt", "file://" + (folder_ / "mine").string());
  EXPECT_THAT(error_when_fetching<Error>(), HasSubstr("numbers.txt: "));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "set/numbers.txt"));
}

TEST_F(Fetch, LinksAreNotFollowed) {
  write("victim", "precious");
  std::filesystem::create_directories(folder_ / "set");
  for (const char* name : {"set/numbers.txt.part", "set/numbers.txt.new"}) {
    std::filesystem::create_symlink(folder_ / "victim", folder_ / name);
    const std::string error = error_when_fetching<ConfigError>();
    if (std::string(name).ends_with(".part")) {
      EXPECT_THAT(error, HasSubstr("numbers.txt.part: is a symbolic link"));
    } else {
      EXPECT_EQ(stored(), text_);
    }
    EXPECT_EQ(stored("victim"), "precious");
    std::filesystem::remove(folder_ / name);
  }
  std::filesystem::remove(folder_ / "set/numbers.txt");
  std::filesystem::create_hard_link(folder_ / "victim", folder_ / "set/numbers.txt.part");
  EXPECT_THAT(error_when_fetching<ConfigError>(), HasSubstr("numbers.txt.part: has another name elsewhere"));
  EXPECT_EQ(stored("victim"), "precious");
}

TEST_F(Fetch, WhatIsHalfDownloadedIsPrivate) {
  server_.hang_up_after(50000);
  EXPECT_THAT(error_when_fetching<Error>(), HasSubstr("50000 bytes are kept"));
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(folder_ / "set/numbers.txt.part").permissions(), perms::owner_read | perms::owner_write);
}

TEST(KnownData, SaysWhatAFetchNeeds) {
  for (const DataInfo& info : known_data()) {
    EXPECT_FALSE(info.description.empty() || info.publisher.empty() || info.files.empty() || info.rows == 0) << info.name;
    for (const DataFile& file : info.files) {
      EXPECT_TRUE(file.sha256.size() == 64 || file.download_sha256.size() == 64) << file.path;
      EXPECT_TRUE(file.sha256.empty() || file.sha256.size() == 64) << file.path;
      EXPECT_TRUE(file.url.empty() || file.url.starts_with("https://")) << file.path;
      EXPECT_EQ(file.member.empty() && !file.url.ends_with(".gz"), file.download_sha256.empty()) << file.path;
      EXPECT_GT(file.most_bytes, 0u) << file.path;
    }
  }
}

}  // namespace
}  // namespace fl
