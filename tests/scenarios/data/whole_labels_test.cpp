// Tests labels and ids of 64 bits: different ones stay different in every format.
#include <gmock/gmock.h>

#include <cstring>

#include "scenarios/data/libsvm.hpp"
#include "scenarios/data/whole_number.hpp"
#include "tests/support/data_folder.hpp"

namespace fl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(WholeNumber, IsExactOrNone) {
  const std::pair<const char*, std::int64_t> good[] = {{"0", 0},
                                                       {"-0", 0},
                                                       {"+7", 7},
                                                       {"-1.0", -1},
                                                       {"2.", 2},
                                                       {"3e2", 300},
                                                       {"1.5e1", 15},
                                                       {"120e-1", 12},
                                                       {".5e1", 5},
                                                       {"0e999999", 0},
                                                       {"9007199254740993", 9007199254740993},
                                                       {"9223372036854775807", INT64_MAX},
                                                       {"-9223372036854775808", INT64_MIN},
                                                       {"0.000", 0},
                                                       {"00012", 12},
                                                       {"1000000000000000000000e-3", 1000000000000000000}};
  for (const auto& [text, value] : good) EXPECT_EQ(whole_number_in(text), value) << text;
  for (const char* text : {"",
                           "-",
                           "+",
                           ".",
                           "e5",
                           "1e",
                           "0.5",
                           "1.00000000000000000000001",
                           "9223372036854775808",
                           "1e19",
                           "1e999999",
                           "1e9999999999",
                           "0x10",
                           "1 ",
                           " 1",
                           "+-1",
                           "--1",
                           "1e+-2",
                           "nan",
                           "inf",
                           "1.0.0",
                           "1e2.0",
                           "12a"})
    EXPECT_EQ(whole_number_in(text), std::nullopt) << text;
}

TEST(WholeLabels, OfLibsvmAreExact) {
  const auto data =
      parse_libsvm<float>("9007199254740993 1:1\n9007199254740992 1:2\n9007199254740993.0 1:3\n-9223372036854775808 1:4\n", "f");
  EXPECT_THAT(data.class_names, ElementsAre("-9223372036854775808", "9007199254740992", "9007199254740993"));
  EXPECT_THAT(data.label, ElementsAre(2, 1, 2, 0));
  const auto test = parse_libsvm<float>("9007199254740992 1:1\n", "t", format_like(data));
  EXPECT_THAT(test.label, ElementsAre(1));
  EXPECT_THROW((void)parse_libsvm<float>("9007199254740994 1:1\n", "t", format_like(data)), DataError);
  for (const char* text : {"9223372036854775808 1:1\n", "1e30 1:1\n", "1.00000000000000000000001 1:1\n"}) {
    try {
      (void)parse_libsvm<float>(text, "f");
      FAIL() << text;
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), AllOf(StartsWith("f:1:1: the label "), HasSubstr("is not a whole number of 64 bits")));
    }
  }
}

class WholeLabelFiles : public test::DataFolderTest {
 protected:
  template <class E>
  static std::string array(const std::string& type, const std::vector<E>& entries) {
    std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + std::to_string(entries.size()) + ",), }\n";
    std::string bytes = "\x93NUMPY" + test::bytes_of({1, 0, static_cast<int>(header.size()), 0}) + header;
    return bytes + std::string(reinterpret_cast<const char*>(entries.data()), entries.size() * sizeof(E));
  }
};

TEST_F(WholeLabelFiles, OfNumpyAreExact) {
  write("set/features.npy", array<double>("<f8", {1, 2, 3}));
  write("set/labels.npy", array<std::int64_t>("<i8", {9007199254740993, 9007199254740992, INT64_MIN}));
  const auto data = load({.name = "set"});
  EXPECT_THAT(data.train.class_names, ElementsAre("-9223372036854775808", "9007199254740992", "9007199254740993"));
  EXPECT_THAT(data.train.label, ElementsAre(2, 1, 0));
  EXPECT_THAT(error_of({.name = "set", .labels = LabelKind::target}),
              StartsWith("set/labels.npy: the target 9007199254740993 of row 0 (from 0) is beyond 2^53"));
  write("set/labels.npy", array<double>("<f8", {1, 1e300, 2}));
  EXPECT_THAT(error_of({.name = "set"}), StartsWith("set/labels.npy: the label of row 1 (from 0) is beyond 2^53"));
  write("set/labels.npy", array<double>("<f8", {1, 0.5, 2}));
  EXPECT_THAT(error_of({.name = "set"}), StartsWith("set/labels.npy: the label 0.5 of row 1 (from 0) is no whole number"));
}

TEST_F(WholeLabelFiles, IdsOfRatingsAreExact) {
  write("a/u.data", "9007199254740993\t1\t3\t1\n9007199254740992\t1\t4\t2\n");
  const auto data = load({.name = "a"});
  EXPECT_EQ(data.train.vocabulary.num_users, 2u);
  EXPECT_THAT(data.train.client_begin, ElementsAre(0, 1, 2));
  write("a/u.data", "9223372036854775808\t1\t3\t1\n");
  EXPECT_THAT(error_of({.name = "a"}), StartsWith("a/u.data:1:1: the user \"9223372036854775808\" is no whole number"));
}

// The first line of ratings.csv is a header; a file without one would lose a rating, another order of columns would exchange them.
TEST_F(WholeLabelFiles, RatingsNeedTheirHeader) {
  write("a/ratings.csv", "5,20,3.0,900\n2,30,4.0,100\n");
  EXPECT_THAT(error_of({.name = "a"}),
              StartsWith("a/ratings.csv:1:1: the header is userId,movieId,rating,timestamp, and the column \"5\""));
  write("a/ratings.csv", "userId,movieId,timestamp,rating\n5,20,900,3\n");
  EXPECT_THAT(error_of({.name = "a"}), StartsWith("a/ratings.csv:1:16: the header is"));
}

}  // namespace
}  // namespace fl
