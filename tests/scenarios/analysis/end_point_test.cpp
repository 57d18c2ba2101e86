#include "scenarios/results/end_point.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace fl {
namespace {

using testing::HasSubstr;

// Round 0 at the start and then rounds of the given bits.
RunTrace trace_of(const std::vector<double>& values, const std::vector<std::uint64_t>& bits, const char* measure = "f_gap") {
  std::vector<RoundRow> rows(values.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    rows[r].round = r;
    rows[r].bits_up = r == 0 ? 0 : bits[r - 1];
    (std::string(measure) == "f_gap" ? rows[r].f_gap : rows[r].test_accuracy) = values[r];
  }
  return make_trace(rows, measure);
}

template <class Value>
RunTrace rounds_of_ten_bits(std::size_t rounds, Value value) {
  std::vector<double> values;
  for (std::size_t r = 0; r <= rounds; ++r) values.push_back(value(static_cast<double>(r)));
  return trace_of(values, std::vector<std::uint64_t>(rounds, 10));
}

EndPoint at(const RunTrace& trace, double budget, double window = kWindow) { return end_point(trace, Against::bits_up, budget, window); }

// By hand: from 80 to 100 bits v is 5 (80 to 85), 4 (to 94), 3 (to 99) and 2: (5*5 + 9*4 + 5*3 + 1*2) / 20.
TEST(EndPoint, IsTheMeanOfTheStepFunctionWeightedByBits) {
  const RunTrace trace = trace_of({9, 5, 4, 3, 2, 1}, {70, 15, 9, 5, 1});
  const EndPoint end = at(trace, 100);
  EXPECT_NEAR(end.value, 78.0 / 20, 1e-12);
  EXPECT_EQ(end.last, 1);
  EXPECT_EQ(end.num_evaluations, 4u);  // at 85, 94, 99 and 100 bits
  EXPECT_NEAR(end.net_change, (4 * 4 + 5 * 3 + 1 * 2) / 10.0 - (5 * 5 + 5 * 4) / 10.0, 1e-12);
  EXPECT_NEAR(end.deviation, std::sqrt((5 * 25 + 9 * 16 + 5 * 9 + 1 * 4) / 20.0 - 3.9 * 3.9), 1e-12);
  EXPECT_FALSE(end.carries_claim());
  EXPECT_EQ(why_no_claim(end), "4 evaluations in the last 20% of the bits; a claim needs 5 or more");
}

TEST(EndPoint, TheWindowIsAShareOfTheBudgetAndCountsItsEnds) {
  const RunTrace trace = rounds_of_ten_bits(20, [](double r) { return 100 - r; });
  EXPECT_NEAR(at(trace, 200).value, (84 + 83 + 82 + 81) / 4.0, 1e-12);
  EXPECT_EQ(at(trace, 200).num_evaluations, 5u);
  EXPECT_EQ(why_no_claim(at(trace, 200)), "");
  EXPECT_NEAR(at(trace, 100, 0.5).value, (95 + 94 + 93 + 92 + 91) / 5.0, 1e-12);
  EXPECT_EQ(at(trace, 100, 0.5).num_evaluations, 6u);
  EXPECT_EQ(at(trace, 100).num_evaluations, 3u);
  EXPECT_THAT(why_no_claim(at(trace, 100, 0.1), 0.1), HasSubstr("2 evaluations in the last 10%"));
  EXPECT_NEAR(end_point(trace, Against::round, 20).value, (84 + 83 + 82 + 81) / 4.0, 1e-12);
}

// Even and odd rounds differ by 0.3; the last value depends on where the budget falls, the end point does not.
TEST(EndPoint, PeriodTwoIsJudgedByItsMiddle) {
  const RunTrace trace = rounds_of_ten_bits(200, [](double r) { return 0.5 + (static_cast<int>(r) % 2 == 0 ? -0.15 : 0.15); });
  const EndPoint even = at(trace, 2000), odd = at(trace, 1990);
  EXPECT_NEAR(odd.last - even.last, 0.3, 1e-12);
  EXPECT_NEAR(even.value, 0.5, 1e-12);
  EXPECT_NEAR(odd.value, 0.5, 0.005);
  EXPECT_NEAR(even.deviation, 0.15, 1e-12);
  EXPECT_TRUE(even.oscillates);
  EXPECT_TRUE(odd.oscillates);
  EXPECT_TRUE(at(trace, 200).oscillates);  // five evaluations: all four steps change sides
}

TEST(EndPoint, AnOscillationOfADecreasingLossIsSeenWhereItExceedsTheProgress) {
  const auto swing = [](double amplitude) {
    return rounds_of_ten_bits(100,
                              [amplitude](double r) { return std::exp(-r / 50) + amplitude * (static_cast<int>(r) % 2 == 0 ? -1 : 1); });
  };
  EXPECT_TRUE(at(swing(0.1), 1000).oscillates);
  EXPECT_FALSE(at(swing(0.01), 1000).oscillates);  // the loss falls by 0.033 from one half of the window to the other
}

// A mean of the whole window lies above the last value by the progress within it: here v = exp(-r / 50).
TEST(EndPoint, ASmoothDecreaseDoesNotOscillate) {
  const RunTrace trace = rounds_of_ten_bits(1000, [](double r) { return std::exp(-r / 50); });
  for (const double budget : {200.0, 1000.0, 5000.0, 10000.0}) {
    const EndPoint end = at(trace, budget);
    EXPECT_FALSE(end.oscillates) << budget;
    EXPECT_FALSE(end.diverges) << budget;
    EXPECT_GT(end.value, end.last);
  }
  double sum = 0;
  for (int r = 80; r < 100; ++r) sum += std::exp(-r / 50.0) / 20;
  EXPECT_NEAR(at(trace, 1000).value, sum, 1e-12);
}

// Independent noise rarely counts as an oscillation (NumPy, 200,000 draws: 5% of 6 evaluations, 2% of 11, 0.1% of 41), and slowly decaying
// noise almost never does.
TEST(EndPoint, NoiseOfMinibatchesIsNoOscillation) {
  for (const std::size_t rounds : {25u, 50u, 200u}) {  // 6, 11 and 41 evaluations in the window
    std::size_t independent = 0, slow = 0;
    for (unsigned run = 0; run < 1000; ++run) {
      std::mt19937_64 engine(run);
      std::normal_distribution<double> normal(0, 0.05);
      double state = 0;
      independent +=
          at(rounds_of_ten_bits(rounds, [&](double) { return 1 + normal(engine); }), 10.0 * static_cast<double>(rounds)).oscillates;
      slow += at(rounds_of_ten_bits(rounds, [&](double) { return 1 + (state = 0.7 * state + normal(engine)); }),
                 10.0 * static_cast<double>(rounds))
                  .oscillates;
    }
    EXPECT_LE(independent, rounds == 25 ? 90u : 40u) << rounds;
    EXPECT_LE(slow, 20u) << rounds;
  }
}

TEST(EndPoint, RoundingOfAConstantIsNoOscillation) {
  EXPECT_FALSE(at(rounds_of_ten_bits(50, [](double) { return 0.3; }), 500).oscillates);
  EXPECT_FALSE(at(rounds_of_ten_bits(50, [](double r) { return 0.3 + (static_cast<int>(r) % 2) * 1e-16; }), 500).oscillates);
}

TEST(EndPoint, AnObjectiveFarAboveItsStartDiverges) {
  const auto growing = [](double r) { return std::exp(r / 38); };
  EXPECT_FALSE(at(rounds_of_ten_bits(100, growing), 900).diverges);  // the mean is 8.4 times the start
  EXPECT_TRUE(at(rounds_of_ten_bits(100, growing), 1000).diverges);  // 10.6 times
  std::vector<double> accuracy;
  for (int r = 0; r <= 20; ++r) accuracy.push_back(0.01 + 0.04 * r);
  EXPECT_FALSE(at(trace_of(accuracy, std::vector<std::uint64_t>(20, 10), "test_accuracy"), 200).diverges);  // no objective
  const EndPoint lost = at(rounds_of_ten_bits(20, [](double r) { return r > 18 ? INFINITY : 1; }), 200);
  EXPECT_TRUE(lost.diverges);
  EXPECT_FALSE(lost.carries_claim());
  EXPECT_EQ(why_no_claim(lost), "not finite there");
}

TEST(EndPoint, ABudgetThatTheRunDidNotReachHasNoValue) {
  const RunTrace trace = rounds_of_ten_bits(20, [](double r) { return 100 - r; });
  for (const double budget : {0.0, 201.0}) {
    EXPECT_TRUE(std::isnan(at(trace, budget).value)) << budget;
    EXPECT_EQ(why_no_claim(at(trace, budget)), "not measured there") << budget;
  }
}

// Rounds without bits leave several evaluations at one place: the last of them counts, once.
TEST(EndPoint, EvaluationsAtOnePlaceCountOnce) {
  const EndPoint end = at(trace_of({9, 4, 3, 2, 1, 0.5}, {80, 0, 0, 0, 20}), 100);
  EXPECT_EQ(end.num_evaluations, 2u);
  EXPECT_NEAR(end.value, 1, 1e-12);
}

}  // namespace
}  // namespace fl
