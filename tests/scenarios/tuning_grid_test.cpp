#include "scenarios/sweep/tuning_grid.hpp"

#include <gtest/gtest.h>

namespace fl {
namespace {

using Side = TuningGrid::Side;

TuningGrid numbers(std::vector<double> values, const std::string& type = "number") {
  TuneKey key{"a.b", {}};
  for (const double value : values) key.values.push_back(type == "integer" ? Value{static_cast<std::int64_t>(value)} : Value{value});
  return {std::move(key), type};
}
TuningGrid texts(const std::vector<std::string>& values, const std::string& type) {
  TuneKey key{"a.b", {}};
  for (const std::string& value : values) key.values.push_back(Value{value});
  return {std::move(key), type};
}
std::string shown(const TuningGrid& grid) {
  std::string text;
  for (const Value& value : grid.values()) text += (text.empty() ? "" : " ") + to_string(value);
  return text;
}
bool accepts_all(const Value&) { return true; }
TuningGrid::Accepts at_most(double bound) {
  return [bound](const Value& value) {
    const auto* whole = std::get_if<std::int64_t>(&value.data);
    return (whole != nullptr ? static_cast<double>(*whole) : std::get<double>(value.data)) <= bound;
  };
}
TuningGrid::Accepts at_least_one() {
  return [](const Value& value) { return std::get<std::int64_t>(value.data) >= 1; };
}

TEST(TuningGrid, SortsNumbersAndKnowsItsEnds) {
  const TuningGrid grid = numbers({0.3, 0.1, 1.0, 0.3});
  EXPECT_EQ(shown(grid), "0.1 0.3 1.0");
  EXPECT_EQ(grid.end_at(0), Side::low);
  EXPECT_EQ(grid.end_at(1), std::nullopt);
  EXPECT_EQ(grid.end_at(2), Side::high);
  EXPECT_EQ(numbers({0.1}).end_at(0), std::nullopt) << "a single value is no grid";
}

TEST(TuningGrid, GoesOnByTheRatioOfItsTwoOutermostValues) {
  TuningGrid grid = numbers({0.1, 0.3, 0.6});
  EXPECT_TRUE(grid.extend(Side::high, accepts_all));
  EXPECT_TRUE(grid.extend(Side::low, accepts_all));
  EXPECT_EQ(shown(grid), "0.0333333333333 0.1 0.3 0.6 1.2");
  EXPECT_TRUE(grid.why_ended(Side::high).empty());
}

TEST(TuningGrid, TriesABoundAndEndsThere) {
  TuningGrid grid = numbers({0.1, 0.5});
  EXPECT_TRUE(grid.extend(Side::high, at_most(1)));
  EXPECT_EQ(shown(grid), "0.1 0.5 1.0");
  EXPECT_TRUE(grid.is_at_bound(Side::high));
  EXPECT_FALSE(grid.extend(Side::high, at_most(1)));
}

TEST(TuningGrid, EndsBeforeABoundThatIsNotTaken) {
  TuningGrid grid = numbers({0.1, 0.5});
  const auto below_one = [](const Value& value) { return std::get<double>(value.data) < 1; };
  EXPECT_FALSE(grid.extend(Side::high, below_one));
  EXPECT_EQ(shown(grid), "0.1 0.5");
  EXPECT_TRUE(grid.is_at_bound(Side::high));
  EXPECT_FALSE(grid.is_at_bound(Side::low));
}

TEST(TuningGrid, IntegersStayWhole) {
  TuningGrid grid = numbers({2, 5}, "integer");
  EXPECT_TRUE(grid.extend(Side::high, at_most(20)));    // 12.5
  EXPECT_TRUE(grid.extend(Side::high, at_most(20)));    // 33.8
  EXPECT_TRUE(grid.extend(Side::low, at_least_one()));  // 0.8
  EXPECT_EQ(shown(grid), "1 2 5 13 20");
  EXPECT_FALSE(grid.extend(Side::low, at_least_one()));
  EXPECT_TRUE(grid.is_at_bound(Side::low));
}

TEST(TuningGrid, RulesGoOnWhereTheirRatioIsKnown) {
  TuningGrid grid = texts({"3/(L+l2)", "1/(L+l2)"}, "number or rule");
  EXPECT_EQ(shown(grid), "\"1/(L+l2)\" \"3/(L+l2)\"");
  EXPECT_TRUE(grid.extend(Side::high, accepts_all));
  EXPECT_EQ(to_string(grid.values().back()), "\"3.0*(3/(L+l2))\"");
  EXPECT_TRUE(grid.extend(Side::high, accepts_all));
  EXPECT_EQ(to_string(grid.values().back()), "\"3.0*(3.0*(3/(L+l2)))\"");

  TuningGrid other = texts({"1/(L+100)", "1/L"}, "number or rule");
  EXPECT_EQ(other.end_at(1), Side::high) << "1/L is larger whatever L is";
  EXPECT_FALSE(other.extend(Side::high, accepts_all)) << "by how much depends on L";
  EXPECT_FALSE(other.is_at_bound(Side::high)) << "so it remains an edge";
  EXPECT_NE(other.why_ended(Side::high), "");
}

TEST(TuningGrid, NamesHaveNoOrder) {
  EXPECT_EQ(texts({"constant", "step"}, "choice").end_at(0), std::nullopt);
  EXPECT_EQ(shown(texts({"step", "constant"}, "choice")), "\"step\" \"constant\"");
  EXPECT_EQ(TuningGrid(TuneKey{"a.b", {Value{true}, Value{false}}}, "true or false").end_at(1), std::nullopt);
}

TEST(TuningGrid, ZeroHasNoRatio) {
  TuningGrid grid = numbers({0.0, 0.5, 0.9});
  EXPECT_FALSE(grid.extend(Side::low, accepts_all));
  EXPECT_FALSE(grid.is_at_bound(Side::low));
  EXPECT_TRUE(grid.extend(Side::high, accepts_all));
}

}  // namespace
}  // namespace fl
