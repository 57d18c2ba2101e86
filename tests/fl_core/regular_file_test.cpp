#include "fl_core/config/regular_file.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>

namespace fl {
namespace {

namespace fs = std::filesystem;

class RegularFileTest : public testing::Test {
 protected:
  RegularFileTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~RegularFileTest() override { fs::remove_all(folder_); }

  fs::path write(const std::string& text) {
    std::ofstream(folder_ / "file", std::ios::binary) << text;
    return folder_ / "file";
  }
  static std::string refusal(const fs::path& file, const SizeLimit& limit = {}) {
    try {
      (void)read_regular_file(file, limit);
      return "";
    } catch (const FileError& error) {
      EXPECT_EQ(std::string(error.what()), file.string() + ": " + error.reason());
      return error.reason();
    }
  }

  fs::path folder_ = fs::path(testing::TempDir()) / ("regular-file-" + std::to_string(::getpid()));
};

TEST_F(RegularFileTest, GivesAllBytesAndPartsOfThem) {
  const std::string bytes("one\0two\n\xff", 9);
  const fs::path file = write(bytes);
  EXPECT_EQ(read_regular_file(file), bytes);
  const RegularFile open = open_regular_file(file, {.bytes = 9});
  EXPECT_EQ(open.size(), 9u);
  std::array<std::byte, 3> part{};
  open.read(4, part);
  EXPECT_EQ(std::memcmp(part.data(), "two", 3), 0);
  EXPECT_EQ(read_regular_file(write("")), "");
}

// Opening any of these for reading in the plain way waits, or reads without an end.
TEST_F(RegularFileTest, WhatIsNoOrdinaryFileIsRefusedAtOnce) {
  const fs::path pipe = folder_ / "pipe", socket_file = folder_ / "socket";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(refusal(pipe), "is a pipe; an ordinary file is needed here (write the contents to one and name that)");
  EXPECT_NE(refusal("/dev/zero").find("is a device; "), std::string::npos);
  EXPECT_NE(refusal(folder_).find("is a folder; "), std::string::npos);
  fs::create_symlink(pipe, folder_ / "link");
  EXPECT_NE(refusal(folder_ / "link").find("is a pipe; "), std::string::npos);
  const int end = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  ASSERT_LT(socket_file.string().size(), sizeof address.sun_path);
  std::strcpy(address.sun_path, socket_file.c_str());
  ASSERT_EQ(::bind(end, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_NE(refusal(socket_file).find("is a socket; "), std::string::npos);
  ::close(end);
  EXPECT_EQ(refusal(folder_ / "none"), "cannot be opened: No such file or directory");
}

// The file has holes, so that it takes no room on the disk; its bytes are not asked for.
TEST_F(RegularFileTest, TheSizeIsBoundedBeforeAnythingIsRead) {
  const fs::path file = write("begin");
  fs::resize_file(file, std::uintmax_t{1} << 40);
  EXPECT_EQ(refusal(file, {.bytes = 1 << 20}), "has 1.0 TiB, and at most 1.0 MiB are read");
  EXPECT_EQ(refusal(file, {.bytes = 1000, .advice = "a split has a line per row"}),
            "has 1.0 TiB, and at most 1000 bytes are read; a split has a line per row");
}

TEST_F(RegularFileTest, AFileThatShrinksIsNotReadAsZeros) {
  const fs::path file = write("0123456789");
  const RegularFile open = open_regular_file(file);
  fs::resize_file(file, 4);
  try {
    (void)open.read_all();
    ADD_FAILURE();
  } catch (const FileError& error) {
    EXPECT_EQ(error.reason(), "ends at byte 4, and had 10 bytes when it was opened; do not change the file while it is read");
  }
}

}  // namespace
}  // namespace fl
