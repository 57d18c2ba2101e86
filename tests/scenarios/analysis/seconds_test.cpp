// Tests comparisons at equal simulated seconds, time to a target, and the rate below which a method's messages pay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "scenarios/analysis/break_even.hpp"
#include "scenarios/analysis/equal_bits.hpp"
#include "tests/scenarios/analysis/synthetic_study.hpp"

namespace fl {
namespace {

using test::MadeStore;
using testing::ElementsAre;
using testing::Optional;

// A curve of rounds that send as many bits each.
std::vector<std::pair<std::uint64_t, double>> falling_by(double step, std::size_t rounds) {
  std::vector<std::pair<std::uint64_t, double>> curve;
  for (std::size_t r = 0; r <= rounds; ++r) curve.emplace_back(r == 0 ? 0 : 100, 10 - step * static_cast<double>(r));
  return curve;
}

// Both methods send the same bits and fall by the same amount in a round; `slow` takes twice as long for one.
Study study_of_slow_and_fast(const MadeStore& made) { return read_study(made.store(), {.baseline = "fast"}); }
void add_slow_and_fast(MadeStore& made) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const double own = 0.01 + 0.0001 * static_cast<double>(seed * seed);
    made.add({.method = "fast", .level = "1", .seed = seed, .rounds = falling_by(0.05, 100), .round_s = 1});
    made.add({.method = "slow", .level = "1", .seed = seed, .rounds = falling_by(0.05 + own, 100), .round_s = 2});
  }
}

TEST(Seconds, MethodsAreComparedWhereTheirTimesMeet) {
  MadeStore made;
  add_slow_and_fast(made);
  const Study study = study_of_slow_and_fast(made);
  ASSERT_TRUE(study.knows(Against::seconds));
  const auto by_seconds = compare_at_equal_bits(study, 0, Against::seconds), by_bits = compare_at_equal_bits(study, 0, Against::bits_up);
  ASSERT_EQ(by_seconds.size(), 1U);
  EXPECT_DOUBLE_EQ(by_seconds[0].budget_bits.mean, 100) << "the fast runs end after 100 s";
  EXPECT_DOUBLE_EQ(by_bits[0].budget_bits.mean, 10000);
  EXPECT_EQ(by_seconds[0].verdict, Verdict::worse) << "it has played half of the rounds";
  EXPECT_EQ(by_bits[0].verdict, Verdict::better);
}

TEST(Seconds, ATargetIsReachedAtATime) {
  MadeStore made;
  add_slow_and_fast(made);
  const auto to = bits_to_target(study_of_slow_and_fast(made), 0, Against::seconds, 7.5);
  ASSERT_EQ(to.size(), 2U);
  EXPECT_EQ(to[0].bits.median, 50);
  EXPECT_EQ(to[1].bits.median, 84) << "42 rounds of 2 s";
}

TEST(Seconds, RunsWithoutAClockHaveNone) {
  MadeStore made;
  made.add({.method = "fast", .level = "1", .rounds = falling_by(0.05, 10)});
  made.add({.method = "slow", .level = "1", .rounds = falling_by(0.05, 10), .round_s = 1});
  const Study study = study_of_slow_and_fast(made);
  EXPECT_FALSE(study.knows(Against::seconds));
  EXPECT_TRUE(study.knows(Against::bits_up));
}

// ---- the rate below which messages pay

// Two methods, of which the first is the baseline.
Study study_of_messages(double base_s, double base_bits, double own_s, double own_bits) {
  Study study;
  study.methods = {"none", "own"};
  study.panels = {{.cells = {0, 1}}};
  study.cells = {{.method = 0, .panel = 0, .runs = {0}, .first = {0}}, {.method = 1, .panel = 0, .runs = {1}, .first = {0}}};
  study.runs.resize(2);
  study.runs[0].message_s = base_s;
  study.runs[0].message_bits = base_bits;
  study.runs[1].message_s = own_s;
  study.runs[1].message_bits = own_bits;
  return study;
}

TEST(BreakEven, IsTheRateAtWhichBothTakeAsLong) {
  const Study study = study_of_messages(0.1, 1e6, 0.3, 2e5);
  const std::optional<double> rate = break_even_rate(study, study.cells[1]);
  ASSERT_TRUE(rate.has_value());
  EXPECT_DOUBLE_EQ(*rate, 4e6);
  EXPECT_DOUBLE_EQ(0.1 + 1e6 / *rate, 0.3 + 2e5 / *rate);
  EXPECT_FALSE(break_even_rate(study, study.cells[0]).has_value()) << "of the baseline";
}

TEST(BreakEven, MayBeEveryRateOrNone) {
  const Study cheap = study_of_messages(0.3, 1e6, 0.1, 2e5), longer = study_of_messages(0.1, 2e5, 0.1, 1e6),
              unknown = study_of_messages(kNotMeasured, kNotMeasured, 0.1, 1e6);
  EXPECT_THAT(break_even_rate(cheap, cheap.cells[1]), Optional(std::numeric_limits<double>::infinity()));
  EXPECT_THAT(break_even_rate(longer, longer.cells[1]), Optional(0.0));
  EXPECT_FALSE(break_even_rate(unknown, unknown.cells[1]).has_value());
}

}  // namespace
}  // namespace fl
