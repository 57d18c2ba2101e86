// Tests that data in other packings and under other names than the published ones are recognised.
#include <gmock/gmock.h>

#include "tests/support/data_folder.hpp"

namespace fl {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Packing = test::DataFolderTest;

TEST_F(Packing, OthersThanGzipAreNamedWithTheCommandThatUnpacks) {
  const auto error_with = [this](const std::string& name, const std::string& begin) {
    write(name, begin + std::string(200, '\0'));
    return error_of({.name = name});
  };
  EXPECT_THAT(error_with("a.bz2", "BZh91AY"), AllOf(HasSubstr("a.bz2: is packed with bzip2"), HasSubstr("bunzip2 -k")));
  EXPECT_THAT(error_with("a.csv", "BZh91AY"), HasSubstr("a.csv: is packed with bzip2")) << "told by its bytes, not by its name";
  EXPECT_THAT(error_with("a.xz", "\3757zXZ"), HasSubstr("is packed with xz"));
  EXPECT_THAT(error_with("a.zip", "PK\x03\x04"), AllOf(HasSubstr("is packed with zip"), HasSubstr("unzip")));
  EXPECT_THAT(error_with("a.zst", "\x28\xB5\x2F\xFD"), HasSubstr("is packed with zstd"));
}

TEST_F(Packing, FilesOfMnistMayHaveDotsInTheirNames) {
  write("mnist/train-images.idx3-ubyte", test::bytes_of({0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 10, 20, 30, 40}));
  write("mnist/train-labels.idx1-ubyte", test::bytes_of({0, 0, 8, 1, 0, 0, 0, 2, 1, 0}));
  EXPECT_EQ(load({.name = "mnist"}).train.num_rows, 2u);
  write("mnist/train-images-idx3-ubyte", test::bytes_of({0, 0, 8, 3}));
  EXPECT_THAT(error_of({.name = "mnist"}), HasSubstr("keep one of them in this folder"));
}

}  // namespace
}  // namespace fl
