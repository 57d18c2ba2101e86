#include "scenarios/data/libsvm.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <sstream>

#include "fl_core/config/error.hpp"
#include "scenarios/data/bytes.hpp"
#include "scenarios/data/catalog.hpp"
#include "tests/support/test_data.hpp"

namespace fl {
namespace {

template <class T>
class Libsvm : public ::testing::Test {};
using Precisions = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Libsvm, Precisions);

template <class T>
Dataset<T> parse(const std::string& text, const LibsvmFormat& format = {}) {
  return parse_libsvm<T>(text, "f", format);
}

template <class T>
std::vector<T> vector_of(const Buffer<T>& buffer) {
  return {buffer.begin(), buffer.end()};
}

TYPED_TEST(Libsvm, ReadsDenseRows) {
  const auto data = parse<TypeParam>("1 1:0.5 2:-2e-1 3:+3\n-1 2:.25 3:1.\n");
  EXPECT_FALSE(data.is_sparse);
  EXPECT_EQ(data.num_rows, 2u);
  EXPECT_EQ(data.num_features, 3u);
  const auto t = [](double x) { return static_cast<TypeParam>(x); };
  EXPECT_EQ(vector_of(data.dense), (std::vector<TypeParam>{t(0.5), t(-0.2), t(3), t(0), t(0.25), t(1)}));
  EXPECT_EQ(data.label, (std::vector<std::int32_t>{1, 0}));
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"-1", "1"}));
}

TYPED_TEST(Libsvm, ReadsSparseRowsWithoutTheirZeros) {
  const auto data = parse<TypeParam>("2 9:1 10:0\n1\n1 1:2.5 20:1", {.storage = Storage::sparse});
  EXPECT_EQ(vector_of(data.sparse.row_begin), (std::vector<std::uint64_t>{0, 1, 1, 3}));
  EXPECT_EQ(vector_of(data.sparse.column), (std::vector<std::uint32_t>{8, 0, 19}));
  EXPECT_EQ(vector_of(data.sparse.value), (std::vector<TypeParam>{1, static_cast<TypeParam>(2.5), 1}));
  EXPECT_EQ(data.num_features, 20u);
  EXPECT_FALSE(data.all_ones());
}

TYPED_TEST(Libsvm, KeepsNoValuesWhenAllAreOne) {
  const auto data = parse<TypeParam>("1 3:1 9:1.0\n0 8:1e0\n");
  EXPECT_TRUE(data.is_sparse);
  EXPECT_TRUE(data.sparse.value.empty());
  EXPECT_TRUE(data.all_ones());
}

TYPED_TEST(Libsvm, ChoosesStorageByTheQuarter) {
  EXPECT_TRUE(parse<TypeParam>("1 1:2 4:0\n").is_sparse);       // 1 of 4 is not more than a quarter
  EXPECT_FALSE(parse<TypeParam>("1 1:2 2:1 4:0\n").is_sparse);  // 2 of 4
  EXPECT_FALSE(parse<TypeParam>("1 1:2 4:0\n", {.storage = Storage::dense}).is_sparse);
}

TYPED_TEST(Libsvm, NumbersClassesByAscendingLabel) {
  using Labels = std::vector<std::int32_t>;
  EXPECT_EQ(parse<TypeParam>("1 1:1\n0 1:1\n").label, (Labels{1, 0}));
  EXPECT_EQ(parse<TypeParam>("1 1:1\n2 1:1\n").label, (Labels{0, 1}));
  EXPECT_EQ(parse<TypeParam>("+1 1:1\n-1 1:1\n").label, (Labels{1, 0}));
  const auto many = parse<TypeParam>("10 1:1\n9 1:1\n-3 1:1\n10.0 1:1\n");
  EXPECT_EQ(many.label, (Labels{2, 1, 0, 2}));
  EXPECT_EQ(many.class_names, (std::vector<std::string>{"-3", "9", "10"}));
}

TYPED_TEST(Libsvm, ReadsTargets) {
  const auto data = parse<TypeParam>("0.5 1:1\n-2e3 1:2\n", {.labels = LabelKind::target});
  EXPECT_EQ(data.target, (std::vector<double>{0.5, -2000}));
  EXPECT_EQ(data.num_classes, 0u);
  EXPECT_TRUE(data.label.empty());
}

TYPED_TEST(Libsvm, SkipsBlankLinesCommentsAndCarriageReturns) {
  const auto data = parse<TypeParam>("# head\r\n\r\n1 1:2 # why\r\n  \t\n0\t2:3\t \r\n");
  EXPECT_EQ(data.num_rows, 2u);
  EXPECT_EQ(vector_of(data.dense), (std::vector<TypeParam>{2, 0, 0, 3}));
}

TYPED_TEST(Libsvm, KeepsTheFirstRowsAllFeaturesAndAllClasses) {
  const auto data = parse<TypeParam>("1 1:2\n0 2:2\n5 7:3\n", {.num_rows = 2});
  EXPECT_EQ(data.num_rows, 2u);
  EXPECT_EQ(data.num_features, 7u);
  EXPECT_EQ(data.num_classes, 3u);
  EXPECT_EQ(data.label, (std::vector<std::int32_t>{1, 0}));
  EXPECT_THROW(validate_for_classification(parse<TypeParam>("1 1:2\n1 2:2\n5 7:3\n", {.num_rows = 2})), DataError);
  EXPECT_EQ(parse<TypeParam>("1 1:2\n0 2:2\n", {.labels = LabelKind::target, .num_rows = 1}).target, std::vector<double>{1});
  EXPECT_THROW(parse<TypeParam>("1 1:2\n", {.num_rows = 2}), DataError);
}

TYPED_TEST(Libsvm, ReadsATestSetLikeItsTrainingSet) {
  const auto train = parse<TypeParam>("1 1:1 5:2\n3 2:1\n2 2:1\n");
  const auto test = parse<TypeParam>("3 1:1 2:1 3:1 4:1 5:1\n", format_like(train));
  EXPECT_EQ(test.num_features, 5u);
  EXPECT_EQ(test.is_sparse, train.is_sparse);
  EXPECT_EQ(test.label, (std::vector<std::int32_t>{2}));
  EXPECT_EQ(test.class_names, train.class_names);
}

TYPED_TEST(Libsvm, RefusesOneClassForClassification) {
  EXPECT_NO_THROW(validate_for_classification(parse<TypeParam>("1 1:1\n2 1:1\n")));
  EXPECT_THROW(validate_for_classification(parse<TypeParam>("1 1:1\n1 1:1\n")), DataError);
  EXPECT_THROW(validate_for_classification(parse<TypeParam>("1 1:1\n", {.labels = LabelKind::target})), DataError);
}

// Every decimal is the double nearest to it, whichever way it is read.
TEST(LibsvmNumbers, AreRoundedCorrectly) {
  for (const char* text : {"0.1", "22.080000", "1.585000", "123456789.012345", "0.000000000000001", "3.14159265358979312", "1e-310", "5e22",
                           "-7.25e-3", "999999999999999", "9007199254740993", "0.30000000000000004"}) {
    const auto data = parse<double>("1 1:" + std::string(text) + "\n", {.storage = Storage::dense});
    EXPECT_EQ(data.dense[0], std::strtod(text, nullptr)) << text;
  }
}

struct RealSet {
  const char* name;
  std::size_t num_rows, num_features;
  bool is_sparse, all_ones;
};
class RealSets : public ::testing::TestWithParam<RealSet> {};

// The slow reading of a line, by the standard library.
void compare_with_streams(const std::filesystem::path& path, const Dataset<double>& data) {
  std::ifstream in(path);
  std::string line;
  for (std::size_t row = 0; std::getline(in, line); ++row) {
    std::istringstream words(line);
    double label = 0, value = 0;
    std::size_t index = 0;
    char colon = 0;
    words >> label;
    ASSERT_EQ(std::stod(data.class_names[static_cast<std::size_t>(data.label[row])]), label) << "row " << row;
    std::uint64_t at = data.is_sparse ? data.sparse.row_begin[row] : 0;
    while (words >> index >> colon >> value) {
      if (!data.is_sparse) {
        ASSERT_EQ(data.dense_row(row)[index - 1], value) << "row " << row;
      } else if (value != 0) {
        ASSERT_EQ(data.sparse.column[at], index - 1) << "row " << row;
        ASSERT_EQ(data.sparse.value.empty() ? 1.0 : data.sparse.value[at], value) << "row " << row;
        ++at;
      }
    }
    if (data.is_sparse) {
      ASSERT_EQ(at, data.sparse.row_begin[row + 1]) << "row " << row;
    }
  }
}

TEST_P(RealSets, HaveTheirShapeAndEveryNumber) {
  const RealSet& set = GetParam();
  FL_NEED_DATA(path, set.name);
  const auto data = read_libsvm<double>(path, set.name);
  EXPECT_EQ(data.num_rows, set.num_rows);
  EXPECT_EQ(data.num_features, set.num_features);
  EXPECT_EQ(data.num_classes, 2u);
  EXPECT_EQ(data.is_sparse, set.is_sparse);
  EXPECT_EQ(data.all_ones(), set.all_ones);
  EXPECT_NO_THROW(validate_for_classification(data));
  compare_with_streams(path, data);
  const DataInfo* info = find_data_info(set.name);
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->rows, set.num_rows);
  EXPECT_EQ(info->features, set.num_features);
  EXPECT_EQ(info->classes, 2u);
}
INSTANTIATE_TEST_SUITE_P(All, RealSets,
                         ::testing::Values(RealSet{"libsvm/a9a", 32561, 123, true, true}, RealSet{"libsvm/a9a.t", 16281, 122, true, true},
                                           RealSet{"libsvm/w8a", 49749, 300, true, true}, RealSet{"libsvm/w8a.t", 14951, 300, true, true},
                                           RealSet{"libsvm/mushrooms", 8124, 112, true, true},
                                           RealSet{"libsvm/australian", 690, 14, false, false},
                                           RealSet{"libsvm/madelon", 2000, 500, false, false}),
                         [](const auto& test) {
                           std::string name = std::string(test.param.name).substr(7);
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace fl
