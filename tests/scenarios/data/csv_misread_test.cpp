// Tests tables that would be read as something that their author did not mean: each is an error with its place and a way out.
#include <gmock/gmock.h>

#include "scenarios/data/csv.hpp"
#include "tests/support/data_folder.hpp"

namespace fl {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class MisreadTables : public test::DataFolderTest {
 protected:
  [[nodiscard]] std::string error_with(const std::string& text, const TableOptions& table = {},
                                       LabelKind labels = LabelKind::classes) const {
    write("t.csv", text);
    return error_of({.name = "t.csv", .labels = labels, .formats = {.table = table}});
  }
  // A table of `rows` lines, the line i by line(i).
  template <class Line>
  [[nodiscard]] static std::string rows_of(std::size_t rows, const std::string& header, const Line& line) {
    std::string text = header + "\n";
    for (std::size_t i = 0; i < rows; ++i) text += line(i) + "\n";
    return text;
  }
};

TEST_F(MisreadTables, AFirstLineOfNumbersIsARow) {
  EXPECT_THAT(error_with("0.001,0.299,-0.274,yes\n-0.992,0.06,1.34,no\n"),
              AllOf(StartsWith("t.csv:1:1: the number \"0.001\" stands in the first line"), HasSubstr("x1,x2,label")));
  EXPECT_THAT(error_with("39,clerk,<=50K\n50,manager,>50K\n"), StartsWith("t.csv:1:1: the number \"39\" stands in the first line"));
  EXPECT_THAT(error_with("clerk,39,<=50K\nmanager,50,>50K\n"), StartsWith("t.csv:1:7: the number \"39\""));
  EXPECT_THAT(error_with("5,3,0\n4,1,1\n"), StartsWith("t.csv:1:1: the number \"5\""));
  EXPECT_THAT(error_with("1e400,a\n1,0\n"), testing::Not(HasSubstr("first line"))) << "a text that is no finite number may be a name";
}

TEST_F(MisreadTables, NamesThatCountUpAreNames) {
  EXPECT_EQ(error_with("0,1,2,label\n0.5,0.1,2,0\n0.4,1,3,1\n"), "no error");
  EXPECT_EQ(error_with("label,1,2\n0,0.1,2\n1,1,3\n", {.label = "label"}), "no error");
  EXPECT_EQ(error_with("2001,2002,2003,label\n5,6,7,0\n6,7,8,1\n"), "no error");
}

TEST_F(MisreadTables, FractionsAreNoClasses) {
  EXPECT_THAT(error_with("x,label\n1,0.7\n2,0.2\n"),
              AllOf(StartsWith("t.csv:2:3: the label \"0.7\" is no whole number"), HasSubstr("data.labels = \"target\"")));
  EXPECT_THAT(error_with("x,label\n1,1\n2,0\n3,0.5\n"), StartsWith("t.csv:4:3: the label \"0.5\""));
  EXPECT_EQ(error_with("x,label\n1,0.7\n2,0.2\n", {}, LabelKind::target), "no error");
  EXPECT_EQ(error_with("x,label\n1,0.0\n2,1.0\n"), "no error") << "these are whole numbers";
  EXPECT_EQ(error_with("x,label\n1,0.7\n2,0.2\n", {.categories = {"label"}}), "no error") << "declared names";
}

TEST_F(MisreadTables, AsManyLabelsAsRowsAreNoClasses) {
  const auto price = [](std::size_t i) { return std::to_string(i % 3) + "," + std::to_string(1000 + 7 * i); };
  EXPECT_THAT(error_with(rows_of(60, "x,price", price)), HasSubstr("the label's column \"price\" has 60 values in 60 rows"));
  EXPECT_EQ(error_with(rows_of(60, "x,price", price), {}, LabelKind::target), "no error");
  EXPECT_EQ(error_with(rows_of(10, "x,price", price)), "no error") << "a small table may have a class for each row";
}

TEST_F(MisreadTables, OtherSeparatorsAreNamed) {
  EXPECT_THAT(error_with("x;y;label\n1,5;2;0\n"), StartsWith("t.csv:1:1: the first line holds no comma but a semicolon"));
  EXPECT_THAT(error_with("x\ty\tlabel\n1\t2\t0\n"), StartsWith("t.csv:1:1: the first line holds no comma but a tab"));
}

TEST_F(MisreadTables, AnIndexWithoutANameIsNoFeature) {
  const auto row = [](std::size_t i) { return std::to_string(i) + "," + std::to_string(i % 5) + "," + std::to_string(i % 2); };
  EXPECT_THAT(error_with(rows_of(4, ",x,label", row)),
              AllOf(StartsWith("t.csv:1:1: the first column has no name and counts the rows"), HasSubstr("index=False")));
  EXPECT_THAT(error_with(rows_of(4, "Unnamed: 0,x,label", row)), StartsWith("t.csv:1:1: the first column has no name"));
  EXPECT_EQ(error_with(rows_of(4, "id,x,label", row)), "no error") << "a column with a name is what its author says";
}

TEST_F(MisreadTables, NumbersWithSeparatorsOfThousandsAreNoNames) {
  EXPECT_THAT(error_with("income,label\n\"12,345\",0\n\"1,000.5\",1\n"), StartsWith("t.csv:2:1: \"12,345\" has separators of thousands"));
  EXPECT_EQ(error_with("place,label\n\"Paris, 12\",0\n\"Rome, 1,000\",1\n"), "no error");
}

TEST_F(MisreadTables, ANameForEveryRowIsNoFeature) {
  const auto dated = [](std::size_t i) { return "2026-11-" + std::to_string(10 + i) + "," + std::to_string(i % 2); };
  const std::string text = rows_of(20, "day,label", dated);
  EXPECT_THAT(error_with(text), AllOf(StartsWith("t.csv:2:1: column \"day\" has 20 names in 20 rows"), HasSubstr("data.categories")));
  EXPECT_EQ(error_with(text, {.categories = {"day"}}), "no error");
}

}  // namespace
}  // namespace fl
