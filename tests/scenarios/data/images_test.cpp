// Tests IDX and CIFAR files: published files, small files with known pixels, and damaged files.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <numeric>
#include <vector>

#include "scenarios/data/bytes.hpp"
#include "scenarios/data/normalise.hpp"
#include "tests/support/data_folder.hpp"
#include "tests/support/test_data.hpp"

namespace fl {
namespace {

using test::big_endian;
using test::bytes_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

template <class T>
std::vector<int> first_labels(const Dataset<T>& data, std::size_t count) {
  return {data.label.begin(), data.label.begin() + static_cast<std::ptrdiff_t>(count)};
}
template <class T>
std::vector<int> pixels_of(const Dataset<T>& data, std::size_t begin, std::size_t count) {
  return {data.images.pixels.begin() + begin, data.images.pixels.begin() + begin + count};
}
template <class T>
std::vector<T> features_of(const Dataset<T>& data, std::uint32_t row) {
  std::vector<T> features(data.num_features);
  data.gather({&row, 1}, features.data());
  return features;
}

// Two training images and one test image of 2x3.
class Idx : public test::DataFolderTest {
 protected:
  void write_set(const std::string& prefix = "mini/", const std::string& test_name = "t10k") {
    write(prefix + "train-images-idx3-ubyte", images_);
    write(prefix + "train-labels-idx1-ubyte", labels_);
    write(prefix + test_name + "-images-idx3-ubyte", big_endian({0x803, 1, 2, 3}) + bytes_of({9, 8, 7, 6, 5, 4}));
    write(prefix + test_name + "-labels-idx1-ubyte", big_endian({0x801, 1}) + bytes_of({1}));
  }
  std::string images_ = big_endian({0x803, 2, 2, 3}) + bytes_of({0, 51, 102, 153, 204, 255, 1, 2, 3, 4, 5, 6});
  std::string labels_ = big_endian({0x801, 2}) + bytes_of({2, 0});
};

TEST_F(Idx, ReadsTrainingAndTestSet) {
  write_set();
  const auto data = load({.name = "mini"});
  EXPECT_EQ(data.train.num_rows, 2u);
  EXPECT_THAT(data.train.shape, ElementsAre(1, 2, 3));
  EXPECT_EQ(data.train.num_classes, 3u);
  EXPECT_THAT(data.train.label, ElementsAre(2, 0));
  EXPECT_THAT(pixels_of(data.train, 0, 12), ElementsAre(0, 51, 102, 153, 204, 255, 1, 2, 3, 4, 5, 6));
  ASSERT_TRUE(data.test.has_value());
  EXPECT_EQ(data.test->num_classes, 3u);
  EXPECT_THAT(data.test->label, ElementsAre(1));
  EXPECT_FALSE(load({.name = "mini", .test = "none"}).test.has_value());
  EXPECT_EQ(load({.name = "mini", .rows = 1}).train.num_rows, 1u);
  EXPECT_EQ(load({.name = "mini", .rows = 1}).train.num_classes, 3u);
  EXPECT_EQ(load({.name = (folder_ / "mini").string()}).train.num_rows, 2u);
}

TEST_F(Idx, ReadsPackedFilesAndEmnistNames) {
  write_packed("emnist/emnist-letters-train-images-idx3-ubyte.gz", images_);
  write_packed("emnist/emnist-letters-train-labels-idx1-ubyte.gz", labels_);
  write_packed("emnist/emnist-letters-test-images-idx3-ubyte.gz", big_endian({0x803, 1, 2, 3}) + bytes_of({9, 8, 7, 6, 5, 4}));
  write_packed("emnist/emnist-letters-test-labels-idx1-ubyte.gz", big_endian({0x801, 1}) + bytes_of({1}));
  const auto data = load({.name = "emnist"});
  EXPECT_THAT(pixels_of(data.train, 6, 6), ElementsAre(1, 2, 3, 4, 5, 6));
  ASSERT_TRUE(data.test.has_value());
  EXPECT_THAT(pixels_of(*data.test, 0, 6), ElementsAre(9, 8, 7, 6, 5, 4));
}

TEST_F(Idx, NormalisesAsAsked) {
  write_set();
  using Normalise = ImageOptions::Normalise;
  const auto with = [this](const ImageOptions& images) { return load({.name = "mini", .formats = {.images = images}}); };
  EXPECT_THAT(features_of(with({}).train, 0), ElementsAre(0, 51 / 255.0, 102 / 255.0, 153 / 255.0, 204 / 255.0, 1));
  EXPECT_THAT(features_of(with({.normalise = Normalise::none}).train, 0), ElementsAre(0, 51, 102, 153, 204, 255));
  const auto given = with({.normalise = Normalise::standard, .mean = {0.5}, .deviation = {0.25}});
  EXPECT_NEAR(features_of(given.train, 0)[5], 2.0, 1e-12);
  EXPECT_NEAR(features_of(*given.test, 0)[0], (9 / 255.0 - 0.5) / 0.25, 1e-12);

  // From the training set alone: its features have mean 0 and mean square 1.
  const auto own = with({.normalise = Normalise::standard});
  double sum = 0, squares = 0;
  for (const std::uint32_t row : {0u, 1u})
    for (const double x : features_of(own.train, row)) {
      sum += x;
      squares += x * x;
    }
  EXPECT_NEAR(sum, 0, 1e-12);
  EXPECT_NEAR(squares, 12, 1e-12);
  EXPECT_EQ(own.test->images.mean, own.train.images.mean);
  EXPECT_EQ(own.test->images.deviation, own.train.images.deviation);
  EXPECT_THAT(
      error_of({.name = "mini", .formats = {.images = {.normalise = Normalise::standard, .mean = {0.5, 0.5}, .deviation = {1, 1}}}}),
      HasSubstr("hold 2 numbers, the images of \"mini\" have 1 channels"));
}

TEST_F(Idx, RefusesDamagedFiles) {
  write_set();
  const std::string images = "mini/train-images-idx3-ubyte", labels = "mini/train-labels-idx1-ubyte";
  const auto error_with = [this](const std::string& file, const std::string& bytes) {
    write_set();
    write(file, bytes);
    return error_of({.name = "mini"});
  };
  EXPECT_THAT(error_with(images, labels_), StartsWith(images + ": is too short for the header of an IDX file of images"));
  EXPECT_THAT(error_with(images, big_endian({0x801, 2, 2, 3}) + std::string(12, 'x')),
              StartsWith(images + ": begins with 0x00000801; an IDX file of images begins with 0x00000803"));
  EXPECT_THAT(error_with(images, images_.substr(0, 20)),
              StartsWith(images + ": is truncated: 4 bytes after the header, which promises 12"));
  EXPECT_THAT(error_with(images, images_ + "x"), StartsWith(images + ": is longer than its header says: 13 bytes"));
  EXPECT_THAT(error_with(images, big_endian({0x803, 2, 0, 3})), StartsWith(images + ": its header has a dimension of 0"));
  EXPECT_THAT(error_with(images, big_endian({0x803, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF})),
              StartsWith(images + ": its header has a dimension of"));
  EXPECT_THAT(error_with(images, ""), StartsWith(images + ": is too short"));
  EXPECT_THAT(error_with(labels, big_endian({0x801, 3}) + bytes_of({0, 1, 2})),
              AllOf(StartsWith(labels + ": holds 3 labels, but"), HasSubstr("holds 2 images")));
  EXPECT_THAT(error_with("mini/t10k-labels-idx1-ubyte", big_endian({0x801, 1}) + bytes_of({3})),
              StartsWith("mini/t10k-labels-idx1-ubyte: holds the label 3; the training set has 3 classes"));
  EXPECT_THAT(error_with("mini/t10k-images-idx3-ubyte", big_endian({0x803, 1, 3, 2}) + bytes_of({9, 8, 7, 6, 5, 4})),
              StartsWith("mini: test images have another size than training images"));
  write_set();
  EXPECT_THAT(error_of({.name = "mini", .rows = 3}), StartsWith(images + ": rows = 3 were asked for, the file has 2"));
  EXPECT_THAT(error_of({.name = "mini", .test = "other"}), StartsWith("data.test: a data set in the format idx has a test set of its own"));
  std::filesystem::remove(folder_ / labels);
  EXPECT_THAT(error_of({.name = "mini"}), StartsWith("mini: the file *train-labels-idx1-ubyte of this data set is missing"));
}

TEST_F(Idx, RefusesDamagedPackedFiles) {
  write_set();
  write_packed("packed.gz", images_);
  std::string packed = test::read_bytes(folder_ / "packed.gz");
  std::filesystem::remove(folder_ / "mini/train-images-idx3-ubyte");
  write("mini/train-images-idx3-ubyte.gz", packed.substr(0, packed.size() - 9));
  EXPECT_THAT(error_of({.name = "mini"}), HasSubstr("the gzip stream ends early"));
  packed[packed.size() - 6] ^= 1;
  write("mini/train-images-idx3-ubyte.gz", packed);
  EXPECT_THAT(error_of({.name = "mini"}), HasSubstr("the gzip stream is damaged"));
}

TEST_F(Idx, OptionsOfImagesAreRefusedElsewhere) {
  write("rows", "1 1:1\n2 1:2\n");
  EXPECT_THAT(error_of({.name = "rows", .formats = {.images = {.normalise = ImageOptions::Normalise::none}}}),
              HasSubstr("data set \"rows\" has no images; data.normalise is for images"));
  EXPECT_THAT(error_of({.name = "rows", .formats = {.images = {.augment = {.flip = true}}}}), HasSubstr("data.augment is for images"));
}

TEST_F(Idx, TwoSetsInOneFolderAreRefused) {
  write_set();
  std::filesystem::copy_file(folder_ / "mini/train-images-idx3-ubyte", folder_ / "mini/train-images-idx3-ubyte.gz");
  EXPECT_EQ(error_of({.name = "mini"}), "no error");  // one name, plain and packed
  std::filesystem::copy_file(folder_ / "mini/train-images-idx3-ubyte", folder_ / "mini/letters-train-images-idx3-ubyte");
  EXPECT_THAT(
      error_of({.name = "mini"}),
      StartsWith("mini: both letters-train-images-idx3-ubyte and train-images-idx3-ubyte may be meant by *train-images-idx3-ubyte"));
}

TEST_F(Idx, FileAsAPipeIsRefusedAtOnce) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(DataReader(folder_ / "pipe"), DataError);
}

// First labels, a few pixels of the first image, its sum, and the published mean and deviation.
struct Published {
  const char* name;
  std::vector<int> labels, pixels;  // pixels 402 .. 409 of the first image
  int sum;
  double mean, deviation;  // to four digits
};

class PublishedIdx : public testing::TestWithParam<Published> {};

TEST_P(PublishedIdx, IsReadAsPublished) {
  const Published& is = GetParam();
  FL_NEED_DATA(path, is.name);
  const auto data = load_data<float>({.name = is.name, .formats = {.images = {.normalise = ImageOptions::Normalise::standard}}},
                                     DataCatalog(path.parent_path()));
  EXPECT_EQ(data.train.num_rows, 60000u);
  EXPECT_THAT(data.train.shape, ElementsAre(1, 28, 28));
  EXPECT_EQ(data.train.num_classes, 10u);
  EXPECT_EQ(first_labels(data.train, 10), is.labels);
  EXPECT_EQ(pixels_of(data.train, 402, 8), is.pixels);
  EXPECT_EQ(std::accumulate(data.train.images.pixels.begin(), data.train.images.pixels.begin() + 784, 0), is.sum);
  EXPECT_NEAR(data.train.images.mean[0], is.mean, 5e-5);
  EXPECT_NEAR(data.train.images.deviation[0], is.deviation, 5e-5);
  ASSERT_TRUE(data.test.has_value());
  EXPECT_EQ(data.test->num_rows, 10000u);
}

INSTANTIATE_TEST_SUITE_P(
    Sets, PublishedIdx,
    testing::Values(Published{"mnist", {5, 0, 4, 1, 9, 2, 1, 3, 1, 4}, {0, 0, 0, 81, 240, 253, 253, 119}, 27525, 0.1307, 0.3081},
                    Published{
                        "fashion-mnist", {9, 0, 0, 3, 0, 2, 7, 2, 5, 5}, {0, 0, 237, 226, 217, 223, 222, 219}, 76247, 0.2860, 0.3530}),
    [](const auto& set) { return std::string(set.index == 0 ? "Mnist" : "FashionMnist"); });

// Records of CIFAR: labels, then 3072 bytes that count on from `begin`.
std::string record(std::initializer_list<int> labels, int begin) {
  std::string bytes = bytes_of(labels);
  for (int i = 0; i < 3072; ++i) bytes += static_cast<char>(begin + i / 1024);
  return bytes;
}

class Cifar : public test::DataFolderTest {};

TEST_F(Cifar, ReadsTheBatchesThatAreThere) {
  write("ten/data_batch_1.bin", record({3}, 10) + record({9}, 20));
  write_packed("ten/data_batch_2.bin.gz", record({0}, 30));
  write("ten/test_batch.bin", record({7}, 40));
  const auto data = load({.name = "ten"});
  EXPECT_THAT(data.train.shape, ElementsAre(3, 32, 32));
  EXPECT_EQ(data.train.num_classes, 10u);
  EXPECT_THAT(data.train.label, ElementsAre(3, 9, 0));
  EXPECT_THAT(pixels_of(data.train, 3072 + 1023, 2), ElementsAre(20, 21));
  EXPECT_THAT(pixels_of(data.train, 2 * 3072, 1), ElementsAre(30));
  EXPECT_THAT(data.test->label, ElementsAre(7));
  EXPECT_EQ(data.train.class_names[3], "3");
  write("ten/batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  EXPECT_EQ(load({.name = "ten"}).train.class_names[3], "d");
  EXPECT_THAT(load({.name = "ten", .rows = 2}).train.label, ElementsAre(3, 9));
  const auto colours = load({.name = "ten", .formats = {.images = {.normalise = ImageOptions::Normalise::standard}}});
  EXPECT_NEAR(colours.train.images.mean[1], (11 + 21 + 31) / 3.0 / 255, 1e-12);
  EXPECT_THAT(error_of({.name = "ten", .formats = {.table = {.label = "fine"}}}), HasSubstr("CIFAR-10 has one label"));
}

TEST_F(Cifar, ReadsFineAndCoarseLabels) {
  write("hundred/train.bin", record({19, 99}, 0) + record({4, 7}, 1));
  write("hundred/test.bin", record({1, 50}, 2));
  const auto fine = load({.name = "hundred"});
  EXPECT_EQ(fine.train.num_classes, 100u);
  EXPECT_THAT(fine.train.label, ElementsAre(99, 7));
  EXPECT_THAT(pixels_of(fine.train, 3072, 1), ElementsAre(1));
  const auto coarse = load({.name = "hundred", .formats = {.table = {.label = "coarse"}}});
  EXPECT_EQ(coarse.train.num_classes, 20u);
  EXPECT_THAT(coarse.train.label, ElementsAre(19, 4));
  EXPECT_THAT(coarse.test->label, ElementsAre(1));
  EXPECT_THAT(error_of({.name = "hundred", .formats = {.table = {.label = "both"}}}), HasSubstr("must be \"fine\" or \"coarse\""));
}

TEST_F(Cifar, RefusesDamagedFiles) {
  write("ten/data_batch_1.bin", record({3}, 10));
  EXPECT_THAT(error_of({.name = "ten"}), StartsWith("ten/test_batch.bin: this file of the data set is missing"));
  write("ten/test_batch.bin", record({3}, 10).substr(1));
  EXPECT_THAT(error_of({.name = "ten"}), StartsWith("ten/test_batch.bin: has 3072 bytes, which is no whole number of records of 3073"));
  EXPECT_EQ(error_of({.name = "ten", .test = "none"}), "no error");
  write("ten/test_batch.bin", record({3}, 10) + record({10}, 10));
  EXPECT_THAT(error_of({.name = "ten"}), StartsWith("ten/test_batch.bin: record 2 has the label 10; labels are 0 to 9"));
  write("hundred/train.bin", record({3, 99}, 1) + record({20, 5}, 1));
  write("hundred/test.bin", record({3, 99}, 1));
  for (const char* label : {"fine", "coarse"})  // whichever is meant
    EXPECT_THAT(error_of({.name = "hundred", .formats = {.table = {.label = label}}}),
                StartsWith("hundred/train.bin: record 2 has the label 20 of a group; labels are 0 to 19"));
  write("ten/data_batch_3.bin", record({3}, 10));
  EXPECT_THAT(error_of({.name = "ten"}), StartsWith("ten/data_batch_2.bin: this file of the data set is missing"));
  std::filesystem::remove(folder_ / "ten/data_batch_3.bin");
  write("ten/batches.meta.txt", "a\nb\n");
  EXPECT_THAT(error_of({.name = "ten"}), StartsWith("ten/batches.meta.txt: names 2 classes, there are 10"));
}

TEST(PublishedCifar, IsReadAsPublished) {
  FL_NEED_DATA(path, "cifar10");
  const auto data = load_data<float>({.name = "cifar10", .formats = {.images = {.normalise = ImageOptions::Normalise::standard}}},
                                     DataCatalog(path.parent_path()));
  EXPECT_EQ(data.train.num_rows % 10000, 0u);
  ASSERT_TRUE(data.test.has_value());
  EXPECT_EQ(data.test->num_rows, 10000u);
  std::vector<int> of_class(10);
  for (const std::int32_t label : data.test->label) ++of_class[static_cast<std::size_t>(label)];
  EXPECT_EQ(of_class, std::vector<int>(10, 1000));
  // The published statistics of the 50,000 training images; a batch of them comes near.
  const double mean[] = {0.4914, 0.4822, 0.4465}, deviation[] = {0.2470, 0.2435, 0.2616};
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(data.train.images.mean[c], mean[c], 0.002);
    EXPECT_NEAR(data.train.images.deviation[c], deviation[c], 0.002);
  }
  EXPECT_EQ(data.train.class_names[0], "airplane");
}

}  // namespace
}  // namespace fl
