// Tests operators with state per client: thresholds from fitted distributions, and entries that wait for their variance.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compressors/support/incomplete_gamma.hpp"
#include "tests/compressors/operator_case.hpp"
#include "tests/fl_core/cpu/op_cases.hpp"

namespace fl {
namespace {

using namespace fl::test;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using Vector = std::vector<double>;

Value text(const char* s) { return Value{std::string(s)}; }
Value integer(std::int64_t i) { return Value{i}; }
Value real(double x) { return Value{x}; }

std::size_t sent_by(Compressor<double>& op, const Vector& x) { return compress(op, model_scope(x.size()), x, 1, 1).message.num_sent; }

// ---- the inverse of the incomplete gamma function: tables of chi squared with 1, 2, 3 and 10 degrees of freedom, halved ----

TEST(IncompleteGamma, AgreesWithTables) {
  EXPECT_NEAR(inverse_regularised_gamma(0.5, 0.95), 3.841458820694124 / 2, 1e-11);
  EXPECT_NEAR(inverse_regularised_gamma(1.0, 0.99), -std::log(0.01), 1e-11);
  EXPECT_NEAR(inverse_regularised_gamma(1.5, 0.95), 7.814727903251179 / 2, 1e-11);
  EXPECT_NEAR(inverse_regularised_gamma(5.0, 0.05), 3.940299136119060 / 2, 1e-11);
  for (const double a : {0.05, 0.7, 3.0, 40.0})
    for (const double p : {0.01, 0.5, 0.999}) EXPECT_NEAR(regularised_gamma(a, inverse_regularised_gamma(a, p)), p, 1e-12) << a;
}

// ---- SIDCo ----

// Magnitudes 1 .. 8, whose mean is 4.5: the exponential's quantile at r = 0.25 is 4.5 ln 4 = 6.238, at 0.5 it is 3.119.
TEST(Sidco, OneExponentialStage) {
  const Vector x = {1, -2, 3, -4, 5, -6, 7, -8};
  auto quarter = make_compressor<double>("sidco", {{"ratio", real(0.25)}, {"stages", integer(1)}});
  EXPECT_THAT(compress(*quarter, model_scope(8), x, 1, 1).dense, ElementsAre(0, 0, 0, 0, 0, 0, 7, -8));
  auto half = make_compressor<double>("sidco", {{"ratio", real(0.5)}, {"stages", integer(1)}});
  EXPECT_EQ(sent_by(*half, x), 5u);  // 4 .. 8
}

// Two stages for r = 1/16 with a first ratio of 1/4: 4.5 ln 4 = 6.238 leaves 7 and 8; then 7 + (7.5 - 7) ln 4 = 7.693 leaves 8. One stage
// asks for 4.5 ln 16 = 12.48, and nothing is left.
TEST(Sidco, StagesFitWhatLiesAboveTheLast) {
  const Vector x = {1, -2, 3, -4, 5, -6, 7, -8};
  auto two = make_compressor<double>("sidco", {{"ratio", real(0.0625)}, {"stages", integer(2)}});
  EXPECT_THAT(compress(*two, model_scope(8), x, 1, 1).dense, ElementsAre(0, 0, 0, 0, 0, 0, 0, -8));
  auto one = make_compressor<double>("sidco", {{"ratio", real(0.0625)}, {"stages", integer(1)}});
  EXPECT_EQ(sent_by(*one, x), 0u);
}

// Mean 4.5, variance 6: mean^2/var = 3.375, alpha = 2.25 * 4.375 = 9.84375, q = 1.1875, t = alpha (1 - r^q) / q: at 1/2 4.650 (four are
// left), at 1/4 6.691 (two).
TEST(Sidco, ParetoUsesMeanAndVariance) {
  const Vector x = {1, -2, 3, -4, 5, -6, 7, -8};
  auto op = make_compressor<double>("sidco", {{"ratio", real(0.5)}, {"stages", integer(1)}, {"fit", text("pareto")}});
  EXPECT_EQ(sent_by(*op, x), 4u);
  auto quarter = make_compressor<double>("sidco", {{"ratio", real(0.25)}, {"stages", integer(1)}, {"fit", text("pareto")}});
  EXPECT_EQ(sent_by(*quarter, x), 2u);
}

// Where the numbers come from the distribution that is fitted, about the wanted ones are sent.
TEST(Sidco, EachFitFindsItsOwnDistribution) {
  RandomSequence random(5, Purpose::synthetic_data);
  constexpr std::size_t kSize = 40000;
  Vector exponential(kSize), gamma(kSize), pareto(kSize);
  for (std::size_t j = 0; j < kSize; ++j) {
    const double sign = random.uniform() < 0.5 ? -1 : 1, u = 1 - random.uniform();
    exponential[j] = -sign * std::log(u);
    gamma[j] = sign * random.gamma(0.5);
    pareto[j] = sign * (std::pow(u, -0.2) - 1) / 0.2;  // shape 0.2, which has a variance
  }
  const auto ratio = [&](const Vector& x, const char* fit, double wanted) {
    auto op = make_compressor<double>("sidco", {{"ratio", real(wanted)}, {"fit", text(fit)}, {"stages", integer(1)}});
    return static_cast<double>(sent_by(*op, x)) / (wanted * kSize);
  };
  EXPECT_NEAR(ratio(exponential, "exponential", 0.01), 1, 0.15);
  EXPECT_NEAR(ratio(pareto, "pareto", 0.01), 1, 0.2);
  EXPECT_NEAR(ratio(gamma, "gamma_pareto", 0.01), 1, 0.2);
  EXPECT_GT(ratio(gamma, "exponential", 0.01), 1.5) << "the fits do not differ";
}

// One exponential stage on 1 .. 8 sends nothing at r = 1/16, so after two rounds there is another stage; two stages send one of eight,
// twice as many as wanted, so after two more rounds it is gone again.
TEST(Sidco, AdaptsItsStagesForEachClient) {
  const Vector x = {1, -2, 3, -4, 5, -6, 7, -8};
  auto op = make_compressor<double>("sidco", {{"ratio", real(0.0625)}, {"update_every", integer(2)}});
  ASSERT_EQ(op->client_state_size(model_scope(8)), 3u);
  Vector memory(3, 0.0);
  std::vector<std::size_t> sent;
  for (std::uint32_t round = 1; round <= 6; ++round) {
    const auto outcome = compress(*op, model_scope(8), x, 1, round, 0, memory);
    sent.push_back(outcome.message.num_sent);
    memory = outcome.memory;
  }
  EXPECT_THAT(sent, ElementsAre(0, 0, 1, 1, 0, 0));
}

// ---- variance-based compression: the published rule for three rounds ----

TEST(VarianceBased, FollowsThePublishedRule) {
  constexpr double kAlpha = 1.5, kZeta = 0.9;
  auto op = make_compressor<double>("variance_based", {{"alpha", real(kAlpha)}, {"zeta", real(kZeta)}});
  const std::vector<Vector> g = {{1, 1, -0.5, 0.001}, {1, -1, -0.5, 0.001}, {1, 1, -0.5, 0.001}, {1, 1, 0.2, 0.001}};
  Vector r(4, 0.0), v(4, 0.0), memory(8, 0.0);
  bool has_sent = false;
  for (std::uint32_t round = 0; round < g.size(); ++round) {
    const auto sent = compress(*op, model_scope(4), g[round], 1, round, 0, memory);
    memory = sent.memory;
    double largest = 0;
    std::vector<bool> ready(4);
    for (std::size_t j = 0; j < 4; ++j) {
      r[j] += g[round][j];
      v[j] += g[round][j] * g[round][j];
      ready[j] = r[j] * r[j] > kAlpha * v[j];
      if (ready[j]) largest = std::max(largest, std::fabs(r[j]));
    }
    for (std::size_t j = 0; j < 4; ++j) {
      // Powers of two between the largest one and 2^-6 of it.
      const double top = std::exp2(std::floor(std::log2(largest))), size = std::fabs(r[j]);
      double power = std::exp2(std::floor(std::log2(size)));
      if (size - power > 0.5 * power) power *= 2;
      power = std::min(power, top);
      const bool is_sent = ready[j] && power >= top / 64;
      EXPECT_EQ(sent.dense[j], is_sent ? std::copysign(power, r[j]) : 0.0) << "entry " << j << ", round " << round;
      has_sent = has_sent || is_sent;
      v[j] = is_sent ? 0 : kZeta * v[j];
      r[j] = is_sent ? 0 : r[j];
      EXPECT_NEAR(memory[j], r[j], 1e-15);
      EXPECT_NEAR(memory[4 + j], v[j], 1e-15);
    }
  }
  EXPECT_TRUE(has_sent);
}

TEST(VarianceBased, SaysThatItKeepsItsErrors) {
  auto op = make_compressor<double>("variance_based");
  EXPECT_NE(op->contract(model_scope(4)).no_memory, "");
  EXPECT_EQ(op->client_state_size(model_scope(4)), 8u);
}

}  // namespace
}  // namespace fl
