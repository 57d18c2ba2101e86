// Tests the dial between the clients' data and their speeds, links and times.
#include "timing/client_quantiles.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "fl_core/random/normal.hpp"
#include "tests/timing/timed_parts.hpp"

namespace fl {
namespace {

using testing::HasSubstr;

constexpr std::size_t kClients = 2000;

std::vector<double> scores_of(Follows follows, double correlation, const ClientFacts& facts) {
  ClientQuantiles quantiles;
  quantiles.open({follows, correlation}, facts, Purpose::devices);
  std::vector<double> scores;
  for (std::uint32_t i = 0; i < facts.num_clients; ++i) scores.push_back(quantiles.score(i));
  return scores;
}

struct Quantiles : testing::Test {
  std::vector<std::uint32_t> rows = test::mixed_rows(kClients);
  std::vector<double> row_numbers{rows.begin(), rows.end()}, labels;
  ClientFacts facts() const { return {kClients, 3, rows, labels}; }
};

// For the Gaussian copula the rank correlation is (6 / pi) asin(rho / 2); its standard error is about 1 / sqrt(N).
TEST_F(Quantiles, TheRankCorrelationIsThatOfTheCopula) {
  for (const double rho : {-0.9, -0.5, 0.0, 0.3, 0.7, 0.95}) {
    const double expected = 6 / std::numbers::pi * std::asin(rho / 2);
    EXPECT_NEAR(test::rank_correlation(scores_of(Follows::rows, rho, facts()), row_numbers), expected, 4 / std::sqrt(1.0 * kClients))
        << rho;
  }
}

TEST_F(Quantiles, CorrelationOneIsTheOrderOfTheRows) {
  EXPECT_DOUBLE_EQ(test::rank_correlation(scores_of(Follows::rows, 1, facts()), row_numbers), 1);
  EXPECT_DOUBLE_EQ(test::rank_correlation(scores_of(Follows::rows, -1, facts()), row_numbers), -1);
}

TEST_F(Quantiles, CorrelationZeroDoesNotDependOnTheRows) {
  const std::vector<double> scores = scores_of(Follows::rows, 0, facts());
  std::ranges::reverse(rows);
  EXPECT_EQ(scores_of(Follows::rows, 0, facts()), scores);
  EXPECT_EQ(scores_of(Follows::nothing, 0, facts()), scores);
}

// Whatever the correlation is, the numbers are standard normal: a dial of the order alone.
TEST_F(Quantiles, TheDistributionStays) {
  std::vector<std::uint32_t> equal(kClients, 7);
  for (const auto& [rho, of] : {std::pair{0.0, rows}, std::pair{0.6, rows}, std::pair{1.0, rows}, std::pair{1.0, equal}}) {
    rows = of;
    std::vector<double> scores = scores_of(Follows::rows, rho, facts());
    std::ranges::sort(scores);
    double distance = 0;  // Kolmogorov-Smirnov; above 1.63 / sqrt(N) with probability 0.01
    for (std::size_t i = 0; i < scores.size(); ++i)
      distance = std::max(distance, std::fabs(normal_probability(scores[i]) - (static_cast<double>(i) + 0.5) / kClients));
    EXPECT_LT(distance, 1.63 / std::sqrt(1.0 * kClients)) << rho;
  }
}

TEST_F(Quantiles, LabelsAreFollowedToo) {
  for (std::size_t i = 0; i < kClients; ++i) labels.push_back(std::fmod(0.618034 * static_cast<double>(i), 1.0));
  EXPECT_DOUBLE_EQ(test::rank_correlation(scores_of(Follows::labels, 1, facts()), labels), 1);
  EXPECT_NEAR(test::rank_correlation(scores_of(Follows::labels, 0.8, facts()), labels), 6 / std::numbers::pi * std::asin(0.4), 0.06);
}

TEST_F(Quantiles, SeedsAndPurposesDrawOtherNumbers) {
  ClientFacts other = facts();
  other.seed = 4;
  ClientQuantiles network;
  network.open({}, facts(), Purpose::network);
  std::vector<double> links;
  for (std::uint32_t i = 0; i < kClients; ++i) links.push_back(network.score(i));
  const std::vector<double> devices = scores_of(Follows::nothing, 0, facts());
  EXPECT_NEAR(test::rank_correlation(devices, links), 0, 0.09);
  EXPECT_NEAR(test::rank_correlation(devices, scores_of(Follows::nothing, 0, other)), 0, 0.09);
  EXPECT_EQ(devices, scores_of(Follows::nothing, 0, facts()));
}

// A client keeps its device when clients are added.
TEST_F(Quantiles, DrawsDoNotDependOnTheNumberOfClients) {
  const std::vector<double> all = scores_of(Follows::nothing, 0, facts()), few = scores_of(Follows::nothing, 0, {10, 3});
  EXPECT_TRUE(std::equal(few.begin(), few.end(), all.begin()));
}

TEST_F(Quantiles, WhatIsNotKnownCannotBeFollowed) {
  const ClientFacts nothing{kClients, 3};
  EXPECT_THAT(test::refusal([&] { (void)scores_of(Follows::rows, 0.5, nothing); }), HasSubstr("follows: = \"rows\" needs the number of"));
  EXPECT_THAT(test::refusal([&] { (void)scores_of(Follows::labels, 0.5, facts()); }), HasSubstr("needs classes"));
  Problems problems;
  validate_quantiles({Follows::nothing, 0.5}, problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].where, "correlation");
}

}  // namespace
}  // namespace fl
