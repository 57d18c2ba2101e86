#include "fl_core/config/options.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace fl {
namespace {

enum class Colour { red, green };

struct Everything {
  bool flag = true;
  std::int64_t count = 3;
  double ratio = 0.5;
  std::string word = "x";
  Expression rule = Expression("1/L");
  std::vector<double> numbers = {1, 2};
  std::vector<std::int64_t> widths = {3};
  std::vector<std::string> names;
  Colour colour = Colour::red;
};

void describe(Schema& s, Everything& o) {
  s.field("flag", o.flag, "a flag");
  s.field("count", o.count, "a count").at_least(1).at_most(9);
  s.field("ratio", o.ratio, "a ratio").above(0).at_most(1).unit("1/s");
  s.field("word", o.word, "a word").required();
  s.field("rule", o.rule, "a rule").above(0);
  s.field("numbers", o.numbers, "numbers").below(10);
  s.field("widths", o.widths, "widths").at_least(1);
  s.field("names", o.names, "names");
  s.choice("colour", o.colour, {{Colour::red, "red"}, {Colour::green, "green"}}, "a colour");
}

void validate(const Everything& o, Problems& problems) {
  if (o.count > 5 && !o.flag) problems.push_back({"count", "must be <= 5 without flag"});
}

Value text(const std::string& s) { return Value{s}; }
Value integer(std::int64_t i) { return Value{i}; }

class OptionsTest : public testing::Test {
 protected:
  // "" when the value was taken.
  std::string assign(const std::string& name, const Value& value) { return schema.find(name)->assign(value).value_or(""); }
  std::string shown(const std::string& name) { return to_string(schema.find(name)->value()); }

  Options options = Options::of<Everything>();
  Schema schema = options.schema();
};

TEST_F(OptionsTest, FieldsKeepTheirOrderAndDescription) {
  ASSERT_EQ(schema.fields().size(), 9u);
  EXPECT_EQ(schema.fields()[0].name, "flag");
  EXPECT_EQ(schema.fields()[8].name, "colour");
  const Field& ratio = *schema.find("ratio");
  EXPECT_EQ(ratio.type, "number");
  EXPECT_EQ(ratio.doc, "a ratio");
  EXPECT_EQ(ratio.unit_text, "1/s");
  EXPECT_EQ(ratio.constraint(), "> 0, <= 1");
  EXPECT_EQ(schema.find("numbers")->constraint(), "< 10");
  EXPECT_EQ(schema.find("flag")->constraint(), "");
  EXPECT_TRUE(schema.find("word")->is_required);
  EXPECT_EQ(schema.find("colour")->choices, (std::vector<std::string>{"red", "green"}));
  EXPECT_EQ(schema.find("nothing"), nullptr);
}

TEST_F(OptionsTest, AssignmentReachesTheStruct) {
  EXPECT_EQ(assign("flag", Value{false}), "");
  EXPECT_EQ(assign("count", integer(7)), "");
  EXPECT_EQ(assign("ratio", integer(1)), "");
  EXPECT_EQ(assign("word", text("y")), "");
  EXPECT_EQ(assign("rule", text("2*theory")), "");
  EXPECT_EQ(assign("numbers", Value{Value::List{integer(1), Value{0.25}}}), "");
  EXPECT_EQ(assign("widths", Value{Value::List{}}), "");
  EXPECT_EQ(assign("names", Value{Value::List{text("a"), text("b")}}), "");
  EXPECT_EQ(assign("colour", text("green")), "");
  const auto& o = options.as<Everything>();
  EXPECT_FALSE(o.flag);
  EXPECT_EQ(o.count, 7);
  EXPECT_EQ(o.ratio, 1.0);
  EXPECT_EQ(o.word, "y");
  EXPECT_EQ(o.rule.text(), "2*theory");
  EXPECT_EQ(o.numbers, (std::vector<double>{1, 0.25}));
  EXPECT_TRUE(o.widths.empty());
  EXPECT_EQ(o.names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(o.colour, Colour::green);
}

TEST_F(OptionsTest, BoundsNameConstraintAndValue) {
  EXPECT_EQ(assign("ratio", integer(-1)), "must be > 0, <= 1, is -1");
  EXPECT_EQ(assign("ratio", Value{0.0}), "must be > 0, <= 1, is 0");
  EXPECT_EQ(assign("ratio", Value{1.5}), "must be > 0, <= 1, is 1.5");
  EXPECT_EQ(assign("count", integer(0)), "must be >= 1, <= 9, is 0");
  EXPECT_EQ(assign("count", integer(10)), "must be >= 1, <= 9, is 10");
  EXPECT_EQ(assign("rule", integer(-1)), "must be > 0, is -1");
  EXPECT_EQ(assign("rule", text("1-2")), "must be > 0, is -1");
  EXPECT_EQ(assign("numbers", Value{Value::List{integer(9), integer(10)}}), "element 2 must be < 10, is 10");
  EXPECT_EQ(assign("widths", Value{Value::List{integer(0)}}), "element 1 must be >= 1, is 0");
  EXPECT_EQ(shown("ratio"), "0.5");
  EXPECT_EQ(shown("count"), "3");
  EXPECT_EQ(shown("rule"), "\"1/L\"");
  EXPECT_EQ(shown("numbers"), "[1.0, 2.0]");
}

TEST_F(OptionsTest, TypesAreChecked) {
  EXPECT_EQ(assign("flag", integer(1)), "must be true or false, is 1");
  EXPECT_EQ(assign("count", text("3")), "must be an integer, is \"3\"");
  EXPECT_EQ(assign("count", Value{2.5}), "must be an integer, is 2.5");
  EXPECT_EQ(assign("count", Value{2.0}), "must be an integer, is 2.0; write 2");
  EXPECT_EQ(assign("count", Value{true}), "must be an integer, is true");
  EXPECT_EQ(assign("ratio", text("half")), "must be a number, is \"half\"");
  EXPECT_EQ(assign("word", integer(3)), "must be a string, is 3");
  EXPECT_EQ(assign("rule", Value{true}), "must be a number or a rule such as \"1/L\", is true");
  EXPECT_EQ(assign("rule", text("1/(L")), "\"1/(L\": expected \")\" at position 5");
  EXPECT_EQ(assign("numbers", integer(3)), "must be a list, is 3");
  EXPECT_EQ(assign("numbers", Value{Value::List{text("a")}}), "element 1 must be a number, is \"a\"");
  EXPECT_EQ(assign("names", Value{Value::List{Value{Value::List{}}}}), "element 1 must be a string, is []");
  EXPECT_EQ(assign("colour", text("gren")), "must be one of red, green; did you mean \"green\"?");
  EXPECT_EQ(assign("colour", integer(1)), "must be a string");
}

TEST_F(OptionsTest, NumbersMustBeFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(assign("ratio", Value{nan}), "must be finite, is nan");
  EXPECT_EQ(assign("ratio", Value{inf}), "must be > 0, <= 1, is inf");
  EXPECT_EQ(assign("rule", Value{inf}), "must be finite, is inf");
  EXPECT_EQ(assign("rule", text("1/0")), "\"1/0\": must be finite, is inf");
  EXPECT_EQ(assign("numbers", Value{Value::List{Value{-inf}}}), "element 1 must be finite, is -inf");
}

TEST_F(OptionsTest, CopiesAreIndependentAndTyped) {
  Options copy = options;
  EXPECT_EQ(assign("count", integer(8)), "");
  EXPECT_EQ(options.as<Everything>().count, 8);
  EXPECT_EQ(copy.as<Everything>().count, 3);
  EXPECT_THROW(static_cast<void>(copy.as<NoOptions>()), Error);
  EXPECT_TRUE(Options().empty());
  EXPECT_THROW(static_cast<void>(Options().as<Everything>()), Error);
  Options none;
  EXPECT_TRUE(none.schema().fields().empty());
}

TEST_F(OptionsTest, ConditionsBetweenFieldsAreFound) {
  Problems problems;
  options.validate(problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(assign("flag", Value{false}), "");
  EXPECT_EQ(assign("count", integer(6)), "");
  options.validate(problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].where, "count");
}

TEST(Schema, RefusesTheSameNameTwice) {
  double a = 0, b = 0;
  Schema schema;
  schema.field("a", a, "");
  EXPECT_THROW(schema.field("a", b, ""), Error);
}

TEST(Value, IsWrittenAsToml) {
  EXPECT_EQ(to_string(Value{1.0}), "1.0");
  EXPECT_EQ(to_string(Value{0.1}), "0.1");
  EXPECT_EQ(to_string(Value{1e-7}), "1e-07");
  EXPECT_EQ(to_string(Value{1e22}), "1e+22");
  EXPECT_EQ(to_string(Value{std::int64_t{-5}}), "-5");
  EXPECT_EQ(to_string(Value{true}), "true");
  EXPECT_EQ(to_string(text("a\"b\\c\n\t\x01")), "\"a\\\"b\\\\c\\n\\t\\u0001\"");
  EXPECT_EQ(to_string(Value{Value::List{integer(1), text("a")}}), "[1, \"a\"]");
}

TEST(NearestName, FindsSlipsOfTheFingersOnly) {
  const std::vector<std::string> names = {"identity", "top_k", "random_k", "hard_threshold", "qsgd"};
  EXPECT_EQ(nearest_name("topk", names), "top_k");
  EXPECT_EQ(nearest_name("Top-K", names), "top_k");
  EXPECT_EQ(nearest_name("tpo_k", names), "top_k");
  EXPECT_EQ(nearest_name("hard_treshold", names), "hard_threshold");
  EXPECT_EQ(nearest_name("idenity", names), "identity");
  EXPECT_EQ(nearest_name("powersgd", names), "");
  EXPECT_EQ(nearest_name("", names), "");
  EXPECT_EQ(nearest_name("x", {}), "");
  EXPECT_EQ(nearest_name(std::string(1 << 20, 'a'), names), "");
}

TEST(ConfigError, ListsAllProblems) {
  const ConfigError two(std::vector<Problem>{{"f:1:2", "first"}, {"", "second"}});
  EXPECT_STREQ(two.what(), "f:1:2: first\nsecond");
  const ConfigError one("alone");
  ASSERT_EQ(one.problems().size(), 1u);
  EXPECT_EQ(one.problems()[0].message, "alone");
}

}  // namespace
}  // namespace fl
