#include "study/output/numbers.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

namespace fl {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Numbers, ExactTextReadsBackAsTheSameDouble) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const auto value = std::bit_cast<double>(std::uint64_t{random()});
    if (std::isnan(value)) continue;
    EXPECT_EQ(std::strtod(exact_text(value).c_str(), nullptr), value);
  }
}

TEST(Numbers, ExactTextIsShortAndWholeNumbersAreWhole) {
  EXPECT_EQ(exact_text(0.1), "0.1");
  EXPECT_EQ(exact_text(5e-324), "5e-324");
  EXPECT_EQ(exact_text(1e-9), "1e-09");
  EXPECT_EQ(exact_text(100000), "100000");
  EXPECT_EQ(exact_text(-128000000), "-128000000");
  EXPECT_EQ(exact_text(1e300), "1e+300");
  EXPECT_EQ(exact_text(0), "0");
  EXPECT_EQ(exact_text(kNaN), "");
  EXPECT_EQ(exact_text(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(Numbers, PlusMinusShowsTwoDigitsOfTheWidth) {
  EXPECT_EQ(plus_minus(0.853104, 0.000423), "0.85310 +- 0.00042");
  EXPECT_EQ(plus_minus(3.184e-9, 1.23e-10), "3.18e-09 +- 1.2e-10");
  EXPECT_EQ(plus_minus(12345.6, 789.1), "12346 +- 789");
  EXPECT_EQ(plus_minus(0.3, 0.5), "0.30 +- 0.50");
  EXPECT_EQ(plus_minus(0.31840001, 0), "0.3184 +- 0");
  EXPECT_EQ(plus_minus(0.31840001, kNaN), "0.3184");
  EXPECT_EQ(plus_minus(kNaN, kNaN), "-");
  EXPECT_EQ(plus_minus(1e-9, 1e-3), "1.0e-09 +- 1.0e-03");
}

TEST(Numbers, BitsForPeople) {
  EXPECT_EQ(human_bits(0), "0 bit");
  EXPECT_EQ(human_bits(999), "999 bit");
  EXPECT_EQ(human_bits(1234), "1.234 kbit");
  EXPECT_EQ(human_bits(999949), "999.9 kbit");
  EXPECT_EQ(human_bits(999951), "1 Mbit");
  EXPECT_EQ(human_bits(1.23456e13), "12.35 Tbit");
  EXPECT_EQ(human_bits(5e24), "5e+06 Ebit");
  EXPECT_EQ(human_bits(kNaN), "-");
}

TEST(Numbers, SecondsForPeople) {
  EXPECT_EQ(human_seconds(0.04), "0.0 s");
  EXPECT_EQ(human_seconds(12.34), "12.3 s");
  EXPECT_EQ(human_seconds(59.97), "1:00");
  EXPECT_EQ(human_seconds(245), "4:05");
  EXPECT_EQ(human_seconds(3599.6), "1:00:00");
  EXPECT_EQ(human_seconds(3723), "1:02:03");
  EXPECT_EQ(human_seconds(kNaN), "-");
}

TEST(Numbers, WidthsCountCodePoints) {
  EXPECT_EQ(display_width("top-1%"), 6u);
  EXPECT_EQ(display_width("λ=0.1"), 5u);
  EXPECT_EQ(clip("λλλ", 2), "λλ");
  EXPECT_EQ(clip("abc", 5), "abc");
  EXPECT_EQ(clip("abc", 0), "");
  EXPECT_EQ(one_line("a\nb\tc\x7f"), "a b c ");
}

TEST(Numbers, LongLabelsLoseTheirMiddle) {
  EXPECT_EQ(shown_label("top-5%"), "top-5%");
  const std::string longest(kMostLabelColumns, 'x');
  EXPECT_EQ(shown_label(longest), longest);
  const std::string text = shown_label("begin" + std::string(20000, 'x') + "end\n");
  EXPECT_EQ(text.size(), kMostLabelColumns);
  EXPECT_TRUE(text.starts_with("begin") && text.ends_with("end ") && text.find("x...x") != std::string::npos) << text;
  std::string wide;
  for (int i = 0; i < 100; ++i) wide += "\u00e9";  // two bytes each
  EXPECT_EQ(display_width(shown_label(wide)), kMostLabelColumns);
  EXPECT_EQ(shown_label(wide).size(), 2 * (kMostLabelColumns - 3) + 3);
}

}  // namespace
}  // namespace fl
