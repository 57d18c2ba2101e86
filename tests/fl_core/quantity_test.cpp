// Tests quantities with units, and options that are lists of tables.
#include "fl_core/config/quantity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fl_core/config/table_field.hpp"

namespace fl {
namespace {

using testing::HasSubstr;

TEST(QuantityTest, UnitsAreFactors) {
  EXPECT_EQ(read_quantity("10M", decimal_units()), 1e7);
  EXPECT_EQ(read_quantity("1.5G", decimal_units()), 1.5e9);
  EXPECT_EQ(read_quantity("2T", decimal_units()), 2e12);
  EXPECT_EQ(read_quantity("1e3", decimal_units()), 1000);
  EXPECT_EQ(read_quantity("2K", binary_units()), 2048);
  EXPECT_EQ(read_quantity("50ms", time_units()), 0.05);
  EXPECT_EQ(read_quantity("10us", time_units()), 1e-5);
  EXPECT_EQ(read_quantity("0.5", no_units()), 0.5);
}

TEST(QuantityTest, OtherTextsAreNoQuantities) {
  for (const char* text : {"", "M", "10 M", "10MM", "10m", "ten", "10ms", "+5", "0x10"})
    EXPECT_EQ(read_quantity(text, decimal_units()), std::nullopt) << text;
  EXPECT_EQ(read_quantity("5", time_units()), std::nullopt) << "a time in a text needs its unit";
  EXPECT_EQ(read_quantity("5K", no_units()), std::nullopt);
}

TEST(QuantityTest, AFieldTakesNumbersAndTexts) {
  double rate = 1;
  Schema schema;
  Field& field = quantity_field(schema, "rate", rate, decimal_units(), "a rate").above(0).at_most(1e9).unit("bit/s");
  EXPECT_EQ(field.assign(Value{std::string("10M")}), std::nullopt);
  EXPECT_EQ(rate, 1e7);
  EXPECT_EQ(to_string(field.value()), "1e+07");
  EXPECT_EQ(field.assign(Value{std::int64_t{5}}), std::nullopt);
  EXPECT_EQ(rate, 5);
  for (const char* text : {"2G", "0", "-3M", "inf", "nan", "1 M"}) EXPECT_NE(field.assign(Value{std::string(text)}), std::nullopt) << text;
  EXPECT_NE(field.assign(Value{std::nan("")}), std::nullopt);
  EXPECT_NE(field.assign(Value{true}), std::nullopt);
  EXPECT_EQ(rate, 5) << "a value that is refused changes nothing";
}

struct Row {
  std::string name;
  double share = 0;
};
void describe(Schema& schema, Row& row) {
  schema.field("name", row.name, "of the row");
  schema.field("share", row.share, "of all").above(0).at_most(1).required();
}
void validate(const Row& row, Problems& problems) {
  if (row.name == "bad") problems.push_back({"name", "is bad"});
}

Value row_value(std::vector<std::pair<std::string, Value>> members) {
  Value value;
  value.data = Value::Table(std::move(members));
  return value;
}
Value rows_value(std::vector<Value> rows) {
  Value value;
  value.data = Value::List(std::move(rows));
  return value;
}

TEST(TableFieldTest, RowsAreReadAndWritten) {
  std::vector<Row> rows;
  Schema schema;
  Field& field = table_list_field(schema, "rows", rows, "the rows");
  EXPECT_TRUE(field.takes_tables);
  EXPECT_THAT(field.doc, HasSubstr("share, of all"));
  const Value value =
      rows_value({row_value({{"name", Value{std::string("a")}}, {"share", Value{0.5}}}), row_value({{"share", Value{0.25}}})});
  ASSERT_EQ(field.assign(value), std::nullopt);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].name, "a");
  EXPECT_EQ(rows[1].share, 0.25);
  EXPECT_EQ(to_string(field.value()), "[{ name = \"a\", share = 0.5 }, { share = 0.25 }]");
}

TEST(TableFieldTest, RefusalsNameTheElement) {
  std::vector<Row> rows = {{"kept", 1}};
  Schema schema;
  Field& field = table_list_field(schema, "rows", rows, "the rows");
  const auto why = [&field](Value value) { return field.assign(value).value_or(""); };
  const Value good = row_value({{"share", Value{0.5}}});
  EXPECT_THAT(why(Value{3.0}), HasSubstr("must be a list of tables"));
  EXPECT_THAT(why(rows_value({good, Value{3.0}})), HasSubstr("element 2 must be a table, is 3.0"));
  EXPECT_THAT(why(rows_value({row_value({{"shaer", Value{0.5}}})})), HasSubstr("element 1 has no key \"shaer\"; did you mean \"share\"?"));
  EXPECT_THAT(why(rows_value({good, row_value({{"share", Value{1.5}}})})), HasSubstr("element 2 its share must be > 0, <= 1, is 1.5"));
  EXPECT_THAT(why(rows_value({row_value({})})), HasSubstr("element 1 needs share: of all"));
  EXPECT_THAT(why(rows_value({row_value({{"share", Value{0.5}}, {"name", Value{std::string("bad")}}})})), HasSubstr("its name is bad"));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].name, "kept");
}

}  // namespace
}  // namespace fl
