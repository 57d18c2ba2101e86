// Tests CSV columns that could be misread silently: repeated names, missing cells, columns of mixed kinds.
#include <gmock/gmock.h>

#include "fl_core/random/random.hpp"
#include "scenarios/data/csv.hpp"
#include "scenarios/data/hold_out.hpp"
#include "tests/support/data_folder.hpp"

namespace fl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class CsvColumns : public test::DataFolderTest {
 protected:
  [[nodiscard]] std::string error_with(const std::string& text, const TableOptions& table = {},
                                       LabelKind labels = LabelKind::classes) const {
    write("t.csv", text);
    return error_of({.name = "t.csv", .labels = labels, .formats = {.table = table}});
  }
  [[nodiscard]] LoadedData<double> with(const std::string& text, const TableOptions& table = {},
                                        LabelKind labels = LabelKind::classes) const {
    write("t.csv", text);
    return load({.name = "t.csv", .labels = labels, .formats = {.table = table}});
  }
  static std::vector<double> features_of(const Dataset<double>& data, std::uint32_t row) {
    std::vector<double> features(data.num_features);
    data.gather({&row, 1}, features.data());
    return features;
  }
};

constexpr auto kMean = MissingValues::mean;
constexpr auto kDrop = MissingValues::drop;

TEST_F(CsvColumns, ANameThatStandsTwiceIsRefusedWithBothPlaces) {
  EXPECT_THAT(error_with("x,other,x,y\n1,2,3,0\n4,5,6,1\n"),
              StartsWith("t.csv:1:9: the column name \"x\" stands already at 1:1; columns are found by their names"));
  write("set/train.csv", "x,y\n1,0\n2,1\n");
  write("set/test.csv", "x,y,\"x\"\n1,0,5\n");
  EXPECT_THAT(error_of({.name = "set"}), StartsWith("set/test.csv:1:5: the column name \"x\" stands already at 1:1"));
}

TEST_F(CsvColumns, KindsComeFromTheWholeColumn) {
  // The first cell decides nothing: a column of numbers that begins with a word is an error at the word.
  EXPECT_THAT(error_with("x,y\nlow,0\n2,1\n3,0\n"), StartsWith("t.csv:2:1: \"low\" is not a finite number, as 2 of the 3 cells"));
  EXPECT_THAT(error_with("x,y\n1,0\n 1e400,1\n3,0\n"), StartsWith("t.csv:3:2: \"1e400\" is not a finite number"));
  EXPECT_THAT(error_with("x,y\n1,0\n0x10,1\n3,0\n"), StartsWith("t.csv:3:1: \"0x10\" is not a finite number"));
  EXPECT_THAT(error_with("x,y\n-inf,0\n2,1\n"), StartsWith("t.csv:2:1: \"-inf\" is not a finite number, as 1 of the 2 cells"));
  const auto words = with("x,y\n1,0\nlow,1\nhigh,0\n");  // mostly words: three names
  EXPECT_EQ(words.train.num_features, 3u);
  const auto declared = with("x,y\nlow,0\n2,1\n3,0\n", {.categories = {"x"}});
  EXPECT_EQ(declared.train.num_features, 3u);
}

TEST_F(CsvColumns, AMissingValueIsAnErrorWithItsPlace) {
  for (const char* text : {"", "NA", "n/a", "NaN", "nan", "null", "?", "\"\""})
    EXPECT_THAT(error_with("x,z,y\n" + std::string(text) + ",a,0\n2,b,1\n3,c,0\n"),
                AllOf(StartsWith("t.csv:2:1: the value of column \"x\" is missing ("), HasSubstr("data.missing = \"drop\"")))
        << text;
  EXPECT_THAT(error_with("x,z,y\n1,a,0\n2,?,1\n"), StartsWith("t.csv:3:3: the value of column \"z\" is missing (\"?\")"));
  EXPECT_THAT(error_with("x,y\n1,0\n2,\n"), StartsWith("t.csv:3:3: the value of column \"y\" is missing"));
  // In a column that is listed, a text such as ? is a name, and a blank is missing all the same.
  EXPECT_EQ(with("z,y\n?,0\nNA,1\n", {.categories = {"z"}}).train.num_features, 2u);
  EXPECT_THAT(error_with("z,y\na,0\n,1\n", {.categories = {"z"}}), StartsWith("t.csv:3:1: the value of column \"z\" is missing"));
}

TEST_F(CsvColumns, RowsWithMissingValuesAreDropped) {
  const auto data = with("x,z,y\n1,a,0\nNA,b,1\n3,?,0\n4,d,1\n5,a,\n", {.missing = kDrop});
  EXPECT_EQ(data.num_dropped_rows, 3u);
  EXPECT_EQ(data.train.num_rows, 2u);
  EXPECT_THAT(features_of(data.train, 0), ElementsAre(1, 1, 0));  // b is the name of a row that is left out, and no feature
  EXPECT_THAT(features_of(data.train, 1), ElementsAre(4, 0, 1));
  EXPECT_THAT(data.train.label, ElementsAre(0, 1));
  EXPECT_EQ(with("x,y\n1,0\n2,1\n", {.missing = kDrop}).num_dropped_rows, 0u);
  EXPECT_THAT(error_with("x,y\n,0\n?,1\n", {.missing = kDrop}), HasSubstr("t.csv: every row has a missing value"));
  write("set/train.csv", "x,y\n1,0\n2,1\n");
  write("set/test.csv", "x,unused,y\n5,,0\nnan,1,1\n");
  const auto both = load({.name = "set", .formats = {.table = {.missing = kDrop}}});
  EXPECT_EQ(both.num_dropped_rows, 0u);
  EXPECT_EQ(both.num_dropped_test_rows, 1u);
  EXPECT_EQ(both.test->num_rows, 1u);
}

TEST_F(CsvColumns, AMeanStandsForMissingNumbers) {
  write("set/train.csv", "x,z,y\n1,7,0\nNA,8,1\n3,,0\n8,9,1\n");
  write("set/test.csv", "z,x,y\n?,5,0\n1,,1\n");
  const auto data = load({.name = "set", .formats = {.table = {.missing = kMean}}});
  EXPECT_THAT(features_of(data.train, 1), ElementsAre(4, 8));
  EXPECT_THAT(features_of(data.train, 2), ElementsAre(3, 8));
  EXPECT_THAT(features_of(*data.test, 0), ElementsAre(5, 8));  // the means are those of the training rows
  EXPECT_THAT(features_of(*data.test, 1), ElementsAre(4, 1));
  EXPECT_EQ(data.num_dropped_rows, 0u);
  EXPECT_THAT(error_with("x,z,y\n1,a,0\n2,?,1\n", {.missing = kMean}), StartsWith("t.csv:3:3: the value of column \"z\" is missing"));
  EXPECT_THAT(error_with("x,y\n1,0\n2,\n", {.missing = kMean}), HasSubstr("a label has no mean"));
  EXPECT_THAT(error_with("x,z,y\n,1,0\n?,2,1\n", {.missing = kMean}), HasSubstr("column \"x\" has no value in the training rows"));
}

// Rows that are held out at random take no part in the mean.
TEST_F(CsvColumns, AMeanIsOfTheTrainingRowsAlone) {
  std::string text = "x,y\n";
  for (int row = 0; row < 40; ++row) text += (row == 7 ? "NA" : std::to_string(row * row)) + "," + std::to_string(row % 2) + "\n";
  write("t.csv", text);
  for (const std::uint64_t seed : {1u, 2u}) {
    const Shard test = held_out_rows(40, 0.25, seed);
    double sum = 0, count = 0;
    for (int row = 0; row < 40; ++row) {
      if (row == 7 || std::binary_search(test.begin(), test.end(), static_cast<std::uint32_t>(row))) continue;
      sum += row * row;
      ++count;
    }
    const auto data = load({.name = "t.csv", .formats = {.table = {.missing = kMean}}, .test_fraction = 0.25, .test_seed = seed});
    EXPECT_EQ(count, test.size() == 10 && std::binary_search(test.begin(), test.end(), 7u) ? 30 : 29);
    EXPECT_DOUBLE_EQ(features_of(data.train, 7)[0], sum / count);
  }
}

TEST_F(CsvColumns, FirstRowsAreLinesOfTheFile) {
  write("t.csv", "x,y\n1,0\n?,1\n3,1\n4,0\n");
  const auto data = load({.name = "t.csv", .rows = 3, .formats = {.table = {.missing = kDrop}}});
  EXPECT_EQ(data.train.num_rows, 2u);
  EXPECT_EQ(data.num_dropped_rows, 1u);
}

TEST_F(CsvColumns, LabelsOfOneNumberAreRefused) {
  EXPECT_THAT(error_with("x,y\n1,1\n2,0\n3,1.0\n"), StartsWith("t.csv:4:3: the label \"1.0\" is the same number as \"1\" at 2:3;"));
  // Beyond 2^53 whole numbers stay different, and in their order.
  const auto data = with("x,y\n1,9007199254740993\n2,9007199254740992\n3,9007199254740994\n");
  EXPECT_THAT(data.train.class_names, ElementsAre("9007199254740992", "9007199254740993", "9007199254740994"));
  EXPECT_THAT(data.train.label, ElementsAre(1, 0, 2));
  EXPECT_THAT(error_with("x,y\n1,1\n2,\n", {}, LabelKind::target), HasSubstr("column \"y\" is missing"));
  EXPECT_THAT(error_with("x,y\n1,1\n2,high\n", {}, LabelKind::target), StartsWith("t.csv:3:3: the target \"high\" is not a finite number"));
}

TEST_F(CsvColumns, NumbersThatDoNotFitIntoFloat32AreRefused) {
  write("t.csv", "x,y\n1,0\n1e39,1\n");
  EXPECT_NO_THROW(static_cast<void>(load<double>({.name = "t.csv"})));
  try {
    static_cast<void>(load<float>({.name = "t.csv"}));
    FAIL() << "an infinite feature was taken";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("t.csv:3:1: \"1e39\" does not fit into float32"));
  }
}

TEST_F(CsvColumns, ByteZeroIsRefusedAndTheMarkOfUtf8IsNoText) {
  EXPECT_THAT(error_with(std::string("x,y\n1,a\0b\n", 10)), StartsWith("t.csv:2:4: the byte 0 is no part of a text"));
  const auto data = with(
      "\xEF\xBB\xBF"
      "x,y\r\n1,0\r\n2,1\r\n",
      {.label = "x"});
  EXPECT_THAT(data.train.class_names, ElementsAre("1", "2"));
}

// Columns are found without walking along the header: 100,000 of them would take ten thousand million steps.
TEST_F(CsvColumns, AWideTableTakesTheTimeOfItsBytes) {
  std::string header, row;
  for (int c = 0; c < 100000; ++c) header += "column" + std::to_string(c) + ",", row += std::to_string(c % 7) + ",";
  const auto data = with(header + "y\n" + row + "0\n" + row + "1\n");
  EXPECT_EQ(data.train.num_features, 100000u);
  EXPECT_EQ(features_of(data.train, 1)[99999], 99999 % 7);
}

// A test column is found by its name and never by a number.
TEST_F(CsvColumns, ANameOfDigitsIsNoPlace) {
  write("set/train.csv", "1,2,y\n5,6,0\n7,8,1\n");
  write("set/test.csv", "1,x,y\n5,6,0\n");
  EXPECT_THAT(error_of({.name = "set"}), StartsWith("set/test.csv: has no column \"2\", which the training file has"));
}

}  // namespace
}  // namespace fl
