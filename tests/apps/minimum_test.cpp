// Tests what runs say of f*: its error bound, data whose columns differ by many orders of magnitude, and functions without a minimum.
#include <gmock/gmock.h>

#include <cmath>
#include <sstream>

#include "tests/support/binary.hpp"

namespace fl {
namespace {

using test::Outcome;
using testing::HasSubstr;
using testing::Not;

class MinimumTest : public test::BinaryTest {
 protected:
  // Writes 200 rows in the format of LIBSVM: a time in milliseconds, three ordinary columns, and a label that follows two of them.
  void write_times(bool is_separable) const {
    std::ostringstream rows;
    rows.precision(15);
    for (int r = 0; r < 200; ++r) {
      const double a = std::sin(1.0 * r), b = std::cos(2.7 * r), c = std::sin(4.1 * r), noise = is_separable ? 0 : 0.8 * std::sin(9.3 * r);
      rows << (a + b + noise > 0 ? "+1" : "-1") << " 1:" << 1.7e12 + 1e9 * std::sin(0.3 * r) << " 2:" << a << " 3:" << b << " 4:" << c
           << '\n';
    }
    write("times.svm", rows.str());
  }
  Outcome run(const std::string& l2, const std::string& more = "") const {
    write("times.toml", "name = 'times'\nrounds = 2\nprecision = 'float64'\n[data]\npath = 'times.svm'\nformat = 'libsvm'\n" +
                            std::string("[partition]\nclients = 4\n[model]\nkind = 'logistic_regression'\nl2 = ") + l2 +
                            "\n[local]\nkind = 'gradient'\nlearning_rate = '1/(L+l2)'\n" + more);
    return fedbits({"run", "times.toml", "--out", "out" + std::to_string(++count_)});
  }
  static double number_behind(const std::string& text, const std::string& name) {
    const std::size_t at = text.find(name);
    EXPECT_NE(at, std::string::npos) << name << " in " << text;
    return at == std::string::npos ? std::nan("") : std::stod(text.substr(at + name.size()));
  }
  mutable int count_ = 0;
};

// A column of large numbers gave f_gap = 1e-9 at a loss that was 0.4 above the minimum.
TEST_F(MinimumTest, AColumnOfTimesLeavesTheGapAsItIs) {
  write_times(false);
  const Outcome outcome = run("0.01");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const double loss = number_behind(outcome.out, "train_loss "), gap = number_behind(outcome.out, "f_gap ");
  EXPECT_GT(gap, 0.1) << outcome.out;
  EXPECT_GT(loss, gap);
  const std::string told = fedbits({"run", "times.toml", "--out", "told", "-v"}).out, mark = "run ";
  const Outcome explained = fedbits({"explain", told.substr(told.find(mark) + mark.size(), 8), "--out", "told"});
  EXPECT_LT(number_behind(explained.out, "f_star_error"), 1e-12) << explained.out;
  EXPECT_THAT(run("0.01", "[stop]\nf_gap = 1e-6\n").out, HasSubstr("rounds 2")) << "two steps do not get there";
}

// The shortest study of all: separable classes without l2.
TEST_F(MinimumTest, WithoutAMinimumTheGapIsEmptyAndSaysSo) {
  write_times(true);
  const Outcome outcome = run("0");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, Not(HasSubstr("f_gap 0")));
  EXPECT_THAT(outcome.out, HasSubstr("f_gap is empty in 1 of 1 runs"));
  const Outcome reported = fedbits({"report", "out1", "-o", "report.html"});
  EXPECT_EQ(reported.code, 0) << reported.err;
  EXPECT_THAT(read("report.html"), HasSubstr("f_gap is empty in 1 of 1 runs"));
  const Outcome needed = run("0", "[stop]\nf_gap = 1e-3\n");
  EXPECT_EQ(needed.code, 2);
  EXPECT_THAT(needed.err, HasSubstr("stop.f_gap: needs a minimum of f, and none was found"));
  const Outcome started = run("0", "[start]\nkind = 'optimum'\n");
  EXPECT_EQ(started.code, 2);
  EXPECT_THAT(started.err, HasSubstr("start.kind"));
}

}  // namespace
}  // namespace fl
