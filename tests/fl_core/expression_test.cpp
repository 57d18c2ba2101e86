#include "fl_core/config/expression.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fl {
namespace {

const std::map<std::string, double> kNames = {{"L", 4}, {"L_max", 9}, {"l2", 0.5}, {"k", 25}, {"gamma", 0.1}, {"theory", 7}};

double value_of(const std::string& text) { return Expression(text).resolve(kNames); }

std::string error_of(const std::string& text) {
  try {
    return "value " + std::to_string(value_of(text));
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(Expression, FollowsTheGrammar) {
  EXPECT_EQ(value_of("1/(L+l2)"), 1 / 4.5);
  EXPECT_EQ(value_of("L/1e4"), 4e-4);
  EXPECT_EQ(value_of(" 1 / ( 2 * sqrt( k ) ) "), 0.1);
  EXPECT_EQ(value_of("theory"), 7);
  EXPECT_EQ(value_of("2*theory"), 14);
  EXPECT_EQ(value_of("8-4-2"), 2);
  EXPECT_EQ(value_of("8/4/2"), 1);
  EXPECT_EQ(value_of("2+3*4"), 14);
  EXPECT_EQ(value_of("2^3^2"), 512);
  EXPECT_EQ(value_of("-2^2"), -4);
  EXPECT_EQ(value_of("2^-1"), 0.5);
  EXPECT_EQ(value_of("2*-L"), -8);
  EXPECT_EQ(value_of("min(L, 3, k)"), 3);
  EXPECT_EQ(value_of("max(L, 3, sqrt(k))"), 5);
  EXPECT_EQ(value_of(".5e1"), 5);
}

TEST(Expression, WithoutNamesIsANumberAtOnce) {
  const Expression quarter("1/4");
  EXPECT_TRUE(quarter.is_number());
  EXPECT_EQ(quarter.resolve({}), 0.25);
  EXPECT_EQ(quarter.text(), "0.25");
  EXPECT_EQ(Expression(1e-5).text(), "1e-05");
  EXPECT_TRUE(Expression().is_number());
  const Expression rule("1 / (L + l2)");
  EXPECT_FALSE(rule.is_number());
  EXPECT_EQ(rule.text(), "1/(L+l2)");
}

TEST(Expression, SyntaxErrorsNameThePosition) {
  EXPECT_EQ(error_of("1/(L+"), "\"1/(L+\": expected a number, a name or \"(\" at position 6");
  EXPECT_EQ(error_of("1/(L+l2"), "\"1/(L+l2\": expected \")\" at position 8");
  EXPECT_EQ(error_of("1/(L+l2))"), "\"1/(L+l2))\": expected an operator or the end at position 9");
  EXPECT_EQ(error_of("2 L"), "\"2 L\": expected an operator or the end at position 3");
  EXPECT_EQ(error_of("2L"), "\"2L\": expected an operator at position 2");
  EXPECT_EQ(error_of(""), "\"\": expected a number, a name or \"(\" at position 1");
  EXPECT_EQ(error_of("log(L)"), "\"log(L)\": unknown function \"log\" (known: sqrt, min, max) at position 1");
  EXPECT_EQ(error_of("sqrt(1, 2)"), "\"sqrt(1, 2)\": sqrt takes one value at position 10");
  EXPECT_EQ(error_of("1e999"), "\"1e999\": a number out of range at position 1");
  EXPECT_EQ(error_of("."), "\".\": expected a number at position 1");
  EXPECT_EQ(error_of("1 # 2"), "\"1 # 2\": expected an operator or the end at position 3");
}

TEST(Expression, RefusesUnknownNamesWithTheNearest) {
  EXPECT_EQ(error_of("1/Lmax"), "\"1/Lmax\": unknown name \"Lmax\"; did you mean \"L_max\"? (known here: L, L_max, gamma, k, l2, theory)");
  EXPECT_THROW(static_cast<void>(Expression("L").resolve({})), ConfigError);
}

TEST(Expression, RefusesWhatIsNotFinite) {
  EXPECT_EQ(error_of("1/0"), "\"1/0\": must be finite, is inf");
  EXPECT_EQ(error_of("1/(L-4)"), "\"1/(L-4)\": must be finite, is inf with L = 4.0");
  EXPECT_NE(error_of("sqrt(0-L)").find("must be finite"), std::string::npos);
  EXPECT_NE(error_of("min(1, 0/0)").find("must be finite"), std::string::npos);
}

TEST(Expression, NestingIsBounded) {
  const std::string many(900, '(');
  EXPECT_NE(error_of(many).find("levels deep"), std::string::npos);
  EXPECT_NE(error_of(std::string(900, '-') + "1").find("levels deep"), std::string::npos);
  EXPECT_NE(error_of(std::string(100000, '(')).find("characters"), std::string::npos);
  EXPECT_EQ(value_of(std::string(50, '(') + "L" + std::string(50, ')')), 4);
}

}  // namespace
}  // namespace fl
