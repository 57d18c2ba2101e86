// Tests PowerSGD as a conversation of several workers: it is exact on low rank, the shared iteration finds the best approximation, and
// clients keep the part that the server did not receive.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fl_core/ops/cpu/linalg.hpp"
#include "tests/compressors/quantizer_support.hpp"

namespace fl::test {
namespace {

constexpr std::size_t kRows = 12, kCols = 9, kBias = 5, kP = kRows * kCols + kBias;

LayerTable table() { return {{{"weights", 0, kRows, kCols}, {"bias", kRows * kCols, kBias, 1}}}; }

// n workers with vectors x [n,P]; residuals [n,P]; what the server gets [P].
struct Workers {
  explicit Workers(std::int64_t rank, bool warm_start, std::uint32_t n_)
      : op(make_operator<double>("powersgd", {{"rank", Value{rank}}, {"warm_start", Value{warm_start}}})),
        scope(op->adapt(make_scope(table(), ScopeKind::tensor, 0, {}))),
        conversation(*op, scope, 7),
        n(n_),
        residual(n * kP) {
    op->check(scope);
    exec.workspace = &workspace;
    for (std::uint32_t k = 0; k < n; ++k) ids.push_back(k);
  }

  void round(const std::vector<double>& x, std::uint32_t number) {
    Senders<double> senders{.clients = ids, .state = {StateRule::residual, rows_view(residual.data(), n, kP)}};
    senders.input.add(1.0, rows_view<const double>(x.data(), n, kP));
    conversation.open(number);
    const Transcript<double> transcript = conversation.hold(exec, senders);
    estimate = transcript.mean;
    for (const auto& messages : transcript.messages) elements += messages[0].length;
  }

  // |estimate - mean x|^2 over the matrix
  [[nodiscard]] double error(const std::vector<double>& x) const {
    double sum = 0;
    for (std::size_t j = 0; j < kRows * kCols; ++j) {
      double mean = 0;
      for (std::uint32_t k = 0; k < n; ++k) mean += x[k * kP + j] / n;
      sum += (estimate[j] - mean) * (estimate[j] - mean);
    }
    return sum;
  }

  std::unique_ptr<Compressor<double>> op;
  Scope scope;
  Conversation<double> conversation;
  std::uint32_t n;
  std::vector<double> residual, estimate;
  std::vector<std::uint32_t> ids;
  std::size_t elements = 0;
  Workspace workspace;
  Exec exec;
};

std::vector<double> random_inputs(std::uint32_t n, std::uint64_t seed) {
  RandomSequence random(seed, Purpose::synthetic_data);
  std::vector<double> x(n * kP);
  for (double& v : x) v = random.normal();
  return x;
}

// Sum over i > r of sigma_i^2 of the mean matrix: no rank-r message can be closer.
double best_error(const std::vector<double>& x, std::uint32_t n, std::size_t r) {
  std::vector<double> mean(kRows * kCols, 0.0), U(kRows * kCols), S(kCols), V(kCols * kCols);
  for (std::size_t j = 0; j < mean.size(); ++j)
    for (std::uint32_t k = 0; k < n; ++k) mean[j] += x[k * kP + j] / n;
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  cpu::svd_small(exec, mean.data(), kRows, kCols, U.data(), S.data(), V.data());
  double sum = 0;
  for (std::size_t i = r; i < kCols; ++i) sum += S[i] * S[i];
  return sum;
}

TEST(PowerSgd, VectorsTravelUncompressedAndSizesAreThePapers) {
  Workers workers(2, true, 3);
  const std::vector<double> x = random_inputs(3, 1);
  workers.round(x, 0);
  EXPECT_EQ(workers.elements, 2 * (kRows + kCols) + kBias);
  for (std::size_t j = kRows * kCols; j < kP; ++j) {
    EXPECT_NEAR(workers.estimate[j], (x[j] + x[kP + j] + x[2 * kP + j]) / 3, 1e-15);
    EXPECT_EQ(workers.residual[kP + j], 0.0);
  }
}

TEST(PowerSgd, EnoughRankIsExactInOneRound) {
  Workers full(9, true, 2);
  const std::vector<double> x = random_inputs(2, 2);
  full.round(x, 0);
  EXPECT_LE(full.error(x), 1e-24);
  // Every worker's matrix is a multiple of one matrix of rank 1.
  Workers one(1, true, 2);
  std::vector<double> y(2 * kP, 0.0);
  for (std::size_t k = 0; k < 2; ++k)
    for (std::size_t i = 0; i < kRows; ++i)
      for (std::size_t j = 0; j < kCols; ++j)
        y[k * kP + i * kCols + j] = (static_cast<double>(i) - 4) * (static_cast<double>(j) + 1) * (k == 0 ? 1.0 : -3.0);
  one.round(y, 0);
  EXPECT_LE(one.error(y), 1e-22);
  for (const double e : one.residual) EXPECT_NEAR(e, 0.0, 1e-11);
}

TEST(PowerSgd, WarmStartConvergesToTheBestApproximation) {
  Workers workers(2, true, 3);
  const std::vector<double> x = random_inputs(3, 3);
  const double best = best_error(x, 3, 2);
  workers.round(x, 0);
  const double first = workers.error(x);
  EXPECT_GT(first, 1.01 * best);
  for (std::uint32_t round = 1; round < 400; ++round) workers.round(x, round);
  EXPECT_GE(workers.error(x), best * (1 - 1e-12));
  EXPECT_LE(workers.error(x), best * (1 + 1e-6));
}

TEST(PowerSgd, ColdStartDrawsANewFactorEveryRound) {
  Workers workers(2, false, 1);
  const std::vector<double> x = random_inputs(1, 4);
  workers.round(x, 0);
  const std::vector<double> first = workers.estimate;
  workers.round(x, 1);
  EXPECT_NE(workers.estimate, first);
  Workers again(2, false, 1);
  again.round(x, 0);
  EXPECT_EQ(again.estimate, first);
}

// mean of (x_i - e_i) = estimate, and no message is longer than its input
TEST(PowerSgd, ResidualsAreWhatTheServerDidNotGet) {
  Workers workers(2, true, 4);
  for (std::uint32_t round = 0; round < 5; ++round) {
    const std::vector<double> x = random_inputs(4, 10 + round);
    workers.round(x, round);
    for (std::size_t j = 0; j < kP; ++j) {
      double got = 0;
      for (std::size_t k = 0; k < 4; ++k) got += (x[k * kP + j] - workers.residual[k * kP + j]) / 4;
      EXPECT_NEAR(got, workers.estimate[j], 1e-13);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      double before = 0, after = 0;
      for (std::size_t j = 0; j < kP; ++j) {
        before += x[k * kP + j] * x[k * kP + j];
        after += workers.residual[k * kP + j] * workers.residual[k * kP + j];
      }
      EXPECT_LE(after, before);
    }
  }
}

TEST(PowerSgd, ARoundOfZerosDoesNotEndTheIteration) {
  Workers workers(2, true, 2);
  workers.round(std::vector<double>(2 * kP, 0.0), 0);
  for (const double v : workers.estimate) EXPECT_EQ(v, 0.0);
  const std::vector<double> x = random_inputs(2, 5);
  workers.round(x, 1);
  double norm = 0;
  for (std::size_t j = 0; j < kRows * kCols; ++j) norm += workers.estimate[j] * workers.estimate[j];
  EXPECT_GT(norm, 1.0);
}

TEST(PowerSgd, ScopesWithoutMatricesAreRefused) {
  const auto op = make_operator<float>("powersgd");
  EXPECT_THROW(op->check(op->adapt(make_scope(table(), ScopeKind::bucket, 16, {}))), ConfigError);
  EXPECT_THROW(op->check(op->adapt(make_scope(table(), ScopeKind::tensor, 0, {"weights"}))), ConfigError);
}

}  // namespace
}  // namespace fl::test
