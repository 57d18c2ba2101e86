// Tests files that announce or unpack to more than they hold, and files of other formats.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <zlib.h>

#include "scenarios/data/bytes.hpp"
#include "scenarios/data/sha256.hpp"
#include "tests/support/data_folder.hpp"

namespace fl {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class DataLimits : public test::DataFolderTest {
 protected:
  // Packs `begin` and then `zeros` bytes of '0', a piece at a time.
  void write_bomb(const std::string& name, const std::string& begin, std::uint64_t zeros) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    const gzFile file = gzopen((folder_ / name).c_str(), "wb9");
    gzwrite(file, begin.data(), static_cast<unsigned>(begin.size()));
    const std::string piece(std::size_t{1} << 20, '0');
    for (; zeros > 0; zeros -= std::min<std::uint64_t>(zeros, piece.size()))
      gzwrite(file, piece.data(), static_cast<unsigned>(std::min<std::uint64_t>(zeros, piece.size())));
    gzclose(file);
  }
  [[nodiscard]] std::string error_within(const FileDataOptions& options, std::uint64_t memory_bytes) const {
    try {
      static_cast<void>(load_data<float>(options, DataCatalog(folder_, {memory_bytes})));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  // Bytes that were unpacked of a file before it was refused or read.
  static std::size_t unpacked_bytes(DataReader& reader, std::size_t enough) {
    try {
      return reader.size_up_to(enough);
    } catch (const DataError&) {
      return reader.unpacked_bytes();
    }
  }
};

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

TEST_F(DataLimits, APackedTextIsUnpackedUpToTheLimit) {
  write_bomb("rows.gz", "1 1:1\n", 64 * kMiB);
  EXPECT_LT(std::filesystem::file_size(folder_ / "rows.gz"), kMiB);
  const std::string error = error_within({.name = "rows"}, 8 * kMiB);
  EXPECT_THAT(error, HasSubstr("rows.gz: unpacks to more than 8.0 MiB, and --memory allows 8.0 MiB; its format allows 2.0 GiB here"));
  DataReader reader(folder_ / "rows.gz", {8 * kMiB});
  EXPECT_LE(unpacked_bytes(reader, kMostPackedText), 8 * kMiB + 1);
}

TEST_F(DataLimits, APackedIdxFileIsUnpackedAsFarAsItsHeaderSays) {
  write_bomb("mini/train-images-idx3-ubyte.gz", test::big_endian({0x803, 2, 2, 2}), 256 * kMiB);
  write("mini/train-labels-idx1-ubyte", test::big_endian({0x801, 2}) + test::bytes_of({0, 1}));
  EXPECT_THAT(error_of({.name = "mini"}), StartsWith("mini/train-images-idx3-ubyte.gz: is longer than its header says: 9 bytes"));
  DataReader reader(folder_ / "mini/train-images-idx3-ubyte.gz");
  EXPECT_EQ(unpacked_bytes(reader, 25), 25u);
  EXPECT_EQ(reader.unpacked_bytes(), 25u);
  // A header that announces as much as there is still meets the memory.
  write_bomb("mini/train-images-idx3-ubyte.gz", test::big_endian({0x803, 1 << 20, 16, 16}), 256 * kMiB);
  EXPECT_THAT(error_within({.name = "mini"}, 4 * kMiB),
              HasSubstr("unpacks to more than 4.0 MiB, and --memory allows 4.0 MiB; its format allows 256.0 MiB here"));
}

TEST_F(DataLimits, HeadersThatPromiseMoreThanThereIsTakeNoMemory) {
  write("mini/train-images-idx3-ubyte", test::big_endian({0x803, 0x7FFFFFFF, 256, 256}) + "few");
  write("mini/train-labels-idx1-ubyte", test::big_endian({0x801, 2}) + test::bytes_of({0, 1}));
  EXPECT_THAT(error_of({.name = "mini"}), HasSubstr("is truncated: 3 bytes after the header, which promises 140737488289792"));
  const auto array = [](const std::string& shape) {
    const std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + ", }\n";
    return "\x93NUMPY" + test::bytes_of({1, 0, static_cast<int>(header.size()), 0}) + header;
  };
  write("set/features.npy", array("(1000000000, 1000)") + "few bytes");
  write("set/labels.npy", array("(3,)"));
  EXPECT_THAT(error_of({.name = "set"}), HasSubstr("is truncated: 9 bytes after the header, which promises 8000000000000"));
  write("set/features.npy", "\x93NUMPY" + test::bytes_of({2, 0, 0, 0, 0, 0x70}) + std::string(100, ' '));
  EXPECT_THAT(error_of({.name = "set"}), HasSubstr("announces a header of 1879048192 bytes; at most 65536 are read"));
  write("set/features.npy", "\x93NUMPY" + test::bytes_of({9, 0, 16, 0}) + std::string(100, ' '));
  EXPECT_THAT(error_of({.name = "set"}), HasSubstr("is of version 9 of the format; versions 1 to 3 can be read"));
}

TEST_F(DataLimits, APackedFileOfRecordsHasAtMostThePublishedNumber) {
  write_bomb("cifar/data_batch_1.bin.gz", "", std::uint64_t{50001} * 3073);
  write_bomb("cifar/test_batch.bin.gz", "", 3073);
  EXPECT_THAT(error_of({.name = "cifar"}), HasSubstr("unpacks to more than 50000 records of 3073 bytes"));
}

// A file with a hole has the size that it announces and none of the bytes.
TEST_F(DataLimits, AFileLargerThanTheMemoryIsRefusedBeforeItIsRead) {
  write("rows", "1 1:1\n");
  std::filesystem::resize_file(folder_ / "rows", std::uint64_t{1} << 40);
  EXPECT_THAT(error_within({.name = "rows"}, 0), AllOf(HasSubstr("has 1.0 TiB, and at most "), HasSubstr("--memory can lower")));
  std::filesystem::resize_file(folder_ / "rows", 2 * kMiB);
  EXPECT_THAT(error_within({.name = "rows"}, kMiB), HasSubstr("has 2.0 MiB, and at most 1.0 MiB are read; --memory allows 1.0 MiB"));
}

TEST_F(DataLimits, RowsThatTakeMoreThanTheMemoryAreRefused) {
  std::string text = "name,y\n";
  for (int row = 0; row < 2000; ++row) text += "n" + std::to_string(row % 999) + "," + std::to_string(row % 2) + "\n";
  write("t.csv", text);
  EXPECT_THAT(error_within({.name = "t.csv"}, kMiB), HasSubstr("would take 7.7 MiB of memory, --memory allows 1.0 MiB"));
}

// Thousands of empty members take thousands of steps and no more.
TEST_F(DataLimits, EmptyMembersCostTheirBytes) {
  write_packed("one", "");
  std::string empty = test::read_bytes(folder_ / "one"), many;
  std::filesystem::remove(folder_ / "one");
  for (int i = 0; i < 20000; ++i) many += empty;
  write("rows.gz", many);
  EXPECT_THAT(error_of({.name = "rows"}), StartsWith("rows.gz: the file is empty"));
  write("rows.gz", many + "x");
  EXPECT_THAT(error_of({.name = "rows"}),
              HasSubstr("1 bytes follow the end of the gzip stream at its byte " + std::to_string(many.size())));
}

TEST_F(DataLimits, PipesAndDevicesAreRefusedAtOnce) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", folder_ / "zero");
  for (const char* name : {"pipe", "zero"}) {
    EXPECT_THROW(DataReader(folder_ / name), DataError) << name;
    EXPECT_THROW(static_cast<void>(sha256_of_file(folder_ / name)), DataError) << name;
    EXPECT_THAT(error_of({.name = (folder_ / name).string()}), HasSubstr("was not found"));
  }
  std::filesystem::create_directories(folder_ / "mini");
  std::filesystem::create_symlink("/dev/zero", folder_ / "mini/x-train-images-idx3-ubyte");
  write("mini/train-labels-idx1-ubyte", "");
  EXPECT_THAT(error_of({.name = "mini"}), StartsWith("mini/x-train-images-idx3-ubyte: is a device"));
}

}  // namespace
}  // namespace fl
