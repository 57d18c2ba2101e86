#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/compressors/operator_case.hpp"
#include "tests/fl_core/cpu/op_cases.hpp"
#include "tests/support/sanitized.hpp"

namespace fl {
namespace {

using namespace fl::test;
using testing::HasSubstr;

template <class T>
class SparseOperators : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(SparseOperators, Precisions);

template <class T>
std::vector<T> vector_of(std::size_t n, Pattern pattern, std::uint32_t salt = 0) {
  return TestBlock<T>(1, n, pattern, salt).e;
}

Value text(const char* s) { return Value{std::string(s)}; }
Value integer(std::int64_t i) { return Value{i}; }
Value real(double x) { return Value{x}; }

TYPED_TEST(SparseOperators, IdentityIsExactUnlessTheFormatIsNarrower) {
  using T = TypeParam;
  const Scope scope = model_scope(1000);
  const std::vector<T> x = vector_of<T>(1000, Pattern::uniform);
  for (const char* format : {"native", "fp32", "fp64"}) {
    const bool narrower = sizeof(T) == 8 && std::string(format) == "fp32";
    auto op = make_compressor<T>("identity", {{"format", text(format)}});
    const auto sent = compress(*op, scope, x);
    EXPECT_EQ(sent.dense == x, !narrower) << format;
    EXPECT_EQ(op->contract(scope).omega.has_value(), !narrower) << format;
    EXPECT_LE(squared_distance(sent.dense, x), (1 - *op->contract(scope).delta) * squared_norm(x)) << format;
    EXPECT_EQ(op->published_bits(sent.message, scope), 1000.0 * (std::string(format) == "fp64" ? 64 : 32)) << format;
  }
}

TYPED_TEST(SparseOperators, IdentityInHalfPrecisionKeepsItsContractInsideItsDomain) {
  using T = TypeParam;
  const Scope scope = model_scope(5000);
  auto op = make_compressor<T>("identity", {{"format", text("fp16")}});
  std::vector<T> x = vector_of<T>(5000, Pattern::uniform);
  for (std::size_t j = 0; j < x.size(); ++j)
    x[j] = std::copysign(std::max(std::fabs(x[j]), T(0x1p-14)), x[j]) * static_cast<T>(1 << (j % 16));
  const auto sent = compress(*op, scope, x);
  for (std::size_t j = 0; j < x.size(); ++j) {
    ASSERT_LE(std::fabs(sent.dense[j] - x[j]), T(0x1p-11) * std::fabs(x[j]));
    ASSERT_EQ(sent.state[j], x[j] - sent.dense[j]);
  }
  const Contract contract = op->contract(scope);
  EXPECT_LE(squared_distance(sent.dense, x), (1 - *contract.delta) * squared_norm(x));
  EXPECT_EQ(contract.domain.sent.least, 0x1p-14);
  EXPECT_EQ(op->published_bits(sent.message, scope), 5000.0 * 16);
}

TYPED_TEST(SparseOperators, TopKIsAContractionAndTightForEqualMagnitudes) {
  using T = TypeParam;
  for (const Scope& scope : {model_scope(1000), bucket_scope(1000, 300, false)})
    for (const Pattern pattern : {Pattern::uniform, Pattern::constant, Pattern::ties, Pattern::layered}) {
      const std::vector<T> x = vector_of<T>(1000, pattern);
      auto op = make_compressor<T>("top_k", {{"ratio", real(0.07)}});
      const double delta = *op->contract(scope).delta, error = squared_distance(compress(*op, scope, x).dense, x);
      EXPECT_LE(error, (1 - delta) * squared_norm(x) * (1 + 1e-6));
      if (pattern == Pattern::constant && scope.segments.size() == 1) {
        EXPECT_NEAR(error, (1 - delta) * squared_norm(x), 1e-6 * error);
      }
    }
  // Buckets of 300, 300, 300, 100 keep 21, 21, 21, 7.
  EXPECT_EQ(*make_compressor<T>("top_k", {{"ratio", real(0.07)}})->contract(bucket_scope(1000, 300, false)).delta, 0.07);
  EXPECT_EQ(*make_compressor<T>("top_k", {{"k", integer(3)}})->contract(bucket_scope(1000, 300, false)).delta, 0.01);
}

TYPED_TEST(SparseOperators, TopKCountsAsPublished) {
  using T = TypeParam;
  const Scope scope = model_scope(500);
  const std::vector<T> x = vector_of<T>(500, Pattern::constant);
  const auto bits = [&](const std::vector<std::pair<std::string, Value>>& fields) {
    auto op = make_compressor<T>("top_k", fields);
    const auto sent = compress(*op, scope, x);
    return std::pair(sent.message.num_sent, op->published_bits(sent.message, scope));
  };
  EXPECT_EQ(bits({{"k", integer(3)}}), std::pair(std::size_t{3}, 96.0));
  EXPECT_EQ(bits({{"k", integer(3)}, {"published_bits_per_value", integer(64)}}), std::pair(std::size_t{3}, 192.0));
  EXPECT_EQ(bits({{"k", integer(3)}, {"count_index_bits", Value{true}}}), std::pair(std::size_t{3}, 3.0 * (32 + 9)));
  // The published tie rule sends all of them and counts k.
  EXPECT_EQ(bits({{"k", integer(3)}, {"ties", text("all")}}), std::pair(std::size_t{500}, 96.0));
}

TYPED_TEST(SparseOperators, ImpossibleCountsAreRefusedBeforeAnythingRuns) {
  using T = TypeParam;
  for (const char* name : {"top_k", "random_k"}) {
    EXPECT_THAT(refusal([&] { make_compressor<T>(name, {{"k", integer(0)}}); }), HasSubstr("k"));
    EXPECT_THAT(refusal([&] { make_compressor<T>(name, {{"k", integer(-4)}}); }), HasSubstr("-4"));
    EXPECT_THAT(refusal([&] { make_compressor<T>(name, {{"ratio", real(0)}}); }), HasSubstr("ratio"));
    EXPECT_THAT(refusal([&] { make_compressor<T>(name, {{"ratio", real(1.5)}}); }), HasSubstr("1.5"));
    EXPECT_THAT(refusal([&] { make_compressor<T>(name, {{"k", integer(4)}, {"ratio", real(0.5)}}); }), HasSubstr("both"));
    auto op = make_compressor<T>(name, {{"k", integer(301)}});
    EXPECT_EQ(refusal([&] { op->check(model_scope(301)); }), "");
    const std::string why = refusal([&] { op->check(bucket_scope(1000, 300, false)); });
    EXPECT_THAT(why, HasSubstr("301"));
    EXPECT_THAT(why, HasSubstr("300"));
    EXPECT_THAT(why, HasSubstr("ratio"));
  }
}

TYPED_TEST(SparseOperators, RandomKIsUnbiasedOrAContractionInExpectation) {
  FL_ONLY_ARITHMETIC();
  using T = TypeParam;
  constexpr std::size_t kSize = 40;
  constexpr int kRounds = 20000;
  const Scope scope = bucket_scope(kSize, 16, false);
  const std::vector<T> x = vector_of<T>(kSize, Pattern::uniform);
  for (const bool scaled : {false, true}) {
    auto op = make_compressor<T>("random_k", {{"k", integer(4)}, {"scaled", Value{scaled}}});
    std::vector<double> mean(kSize, 0);
    double error = 0;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      const auto sent = compress(*op, scope, x, 1, round);
      for (std::size_t j = 0; j < kSize; ++j) mean[j] += sent.dense[j] / static_cast<double>(kRounds);
      error += squared_distance(sent.dense, x) / kRounds;
    }
    const Contract contract = op->contract(scope);
    if (!scaled) {
      // Segments of 16, 16, 8: the worst fraction is 4/16.
      EXPECT_EQ(*contract.delta, 0.25);
      EXPECT_EQ(contract.delta_holds, Contract::Holds::in_expectation);
      EXPECT_LE(error, (1 - *contract.delta) * squared_norm(x) * 1.02);
      EXPECT_GE(error, 0.5 * squared_norm(x));
      continue;
    }
    EXPECT_EQ(*contract.omega, 3.0);
    EXPECT_LE(error, *contract.omega * squared_norm(x) * 1.05);
    for (std::size_t j = 0; j < kSize; ++j) EXPECT_NEAR(mean[j], x[j], 5 * std::sqrt(3.0 / kRounds) * std::fabs(x[j]) + 1e-6) << j;
  }
}

TYPED_TEST(SparseOperators, RandomKDependsOnRoundAndClientOnly) {
  using T = TypeParam;
  const Scope scope = model_scope(1000);
  const std::vector<T> x = vector_of<T>(1000, Pattern::uniform), y = vector_of<T>(1000, Pattern::uniform, 1);
  auto op = make_compressor<T>("random_k", {{"k", integer(20)}});
  const auto index = [&](const std::vector<T>& v, std::uint32_t round, std::uint32_t client) {
    const auto sent = compress(*op, scope, v, 1, round, client);
    return std::vector<std::uint32_t>(sent.message.index.begin(), sent.message.index.end());
  };
  EXPECT_EQ(index(x, 3, 7), index(y, 3, 7));
  EXPECT_NE(index(x, 3, 7), index(x, 4, 7));
  EXPECT_NE(index(x, 3, 7), index(x, 3, 8));
}

TYPED_TEST(SparseOperators, HardThresholdIsAbsolute) {
  using T = TypeParam;
  const Scope scope = bucket_scope(1000, 300, true);
  std::size_t d = 0;
  for (const Segment& segment : scope.segments) d += segment.size();
  for (const Pattern pattern : {Pattern::uniform, Pattern::ties, Pattern::huge, Pattern::denormal}) {
    const std::vector<T> x = vector_of<T>(1000, pattern);
    auto op = make_compressor<T>("hard_threshold", {{"threshold", real(0.5)}});
    const auto sent = compress(*op, scope, x);
    const Contract contract = op->contract(scope);
    EXPECT_DOUBLE_EQ(*contract.kappa, 0.5 * std::sqrt(static_cast<double>(d)));
    double error = 0;
    for (const Segment& segment : scope.segments)
      for (std::size_t j = segment.begin; j < segment.end; ++j) {
        EXPECT_LT(std::fabs(sent.dense[j] - x[j]), T(0.5));
        error += std::pow(static_cast<double>(sent.dense[j]) - x[j], 2);
      }
    EXPECT_LE(error, *contract.kappa * *contract.kappa);
    EXPECT_EQ(op->published_bits(sent.message, scope), 32.0 * static_cast<double>(sent.message.elements()));
  }
}

// The smallest entry of a ramp that is kept tells the threshold that was used.
template <class T>
double threshold_used(const std::vector<std::pair<std::string, Value>>& fields, double step_size) {
  std::vector<T> x(10000);
  for (std::size_t j = 0; j < x.size(); ++j) x[j] = static_cast<T>(1e-4 * static_cast<double>(j));
  auto op = make_compressor<T>("hard_threshold", fields);
  return 1e-4 * compress(*op, model_scope(x.size()), x, step_size).message.index[0];
}

TYPED_TEST(SparseOperators, HardThresholdFollowsItsRules) {
  using T = TypeParam;
  const Value lambda = text("lambda");
  EXPECT_NEAR(threshold_used<T>({{"threshold", real(0.30005)}}, 0.1), 0.3001, 1e-9);
  EXPECT_NEAR(threshold_used<T>({{"threshold", real(0.30005)}, {"rule", lambda}}, 0.5), 0.1501, 1e-9);
  for (const char* rule : {"gamma", "gamma_steps"})
    EXPECT_NEAR(threshold_used<T>({{"threshold", real(0.30005)}, {"rule", text(rule)}}, 0.5), 0.1501, 1e-9);
  // 1/(2 sqrt k), k = 4
  EXPECT_NEAR(threshold_used<T>({{"threshold", text("1/(2*sqrt(k))+0.00005")}, {"k", integer(4)}}, 1), 0.2501, 1e-9);
  // lambda = sqrt(epsilon/d)/gamma: the threshold on the step is sqrt(epsilon/d) whatever gamma is. d = 10000
  const std::vector<std::pair<std::string, Value>> epsilon = {
      {"threshold", text("sqrt(epsilon/d)/gamma")}, {"epsilon", real(100.01)}, {"rule", lambda}};
  EXPECT_NEAR(threshold_used<T>(epsilon, 0.25), 0.1001, 1e-9);
  EXPECT_NEAR(threshold_used<T>(epsilon, 4), 0.1001, 1e-9);
}

TYPED_TEST(SparseOperators, HardThresholdRefusesWhatIsNotAPositiveNumber) {
  using T = TypeParam;
  const auto make = [](const Value& threshold) {
    return refusal([&] { make_compressor<T>("hard_threshold", {{"threshold", threshold}}); });
  };
  EXPECT_THAT(make(real(0)), HasSubstr("must be a positive number"));
  EXPECT_THAT(make(real(-0.5)), HasSubstr("-0.5"));
  EXPECT_NE(make(real(std::numeric_limits<double>::quiet_NaN())), "");
  EXPECT_NE(make(real(std::numeric_limits<double>::infinity())), "");
  EXPECT_NE(make(text("0/0")), "");
  const auto check = [](const char* rule) {
    return refusal([&] { make_compressor<T>("hard_threshold", {{"threshold", text(rule)}})->check(model_scope(10)); });
  };
  EXPECT_THAT(check("1/(2*sqrt(k))"), HasSubstr("is required, because threshold = \"1/(2*sqrt(k))\" names it"));
  EXPECT_THAT(check("d-10"), HasSubstr("positive"));
  EXPECT_THAT(check("gama"), HasSubstr("gamma"));
  EXPECT_EQ(check("1/d"), "");
}

TYPED_TEST(SparseOperators, ValuesAreRoundedBeforeTheStateMoves) {
  using T = TypeParam;
  const Scope scope = model_scope(2000);
  const std::vector<T> x = vector_of<T>(2000, Pattern::uniform);
  for (const char* name : {"top_k", "random_k", "hard_threshold"}) {
    auto op = make_compressor<T>(name, {{"value_format", text("fp16")}});
    const auto sent = compress(*op, scope, x);
    EXPECT_EQ(sent.message.values, WireValue::fp16);
    ASSERT_GT(sent.message.num_sent, 0u);
    bool rounded = false;
    for (std::size_t j = 0; j < x.size(); ++j) {
      ASSERT_EQ(sent.state[j], x[j] - sent.dense[j]) << name;
      rounded = rounded || (sent.dense[j] != 0 && sent.state[j] != 0);
    }
    EXPECT_TRUE(rounded) << name;
  }
}

TYPED_TEST(SparseOperators, AMeanIsTheEstimateOfASinglePhase) {
  using T = TypeParam;
  auto op = make_compressor<T>("top_k");
  const Scope scope = model_scope(3);
  EXPECT_EQ(op->num_phases(), 1);
  EXPECT_EQ(op->message_length(0, scope), 3u);
  EXPECT_EQ(op->cohort_state_size(scope), 0u);
  const std::vector<T> mean = {T(1), T(-2), T(0.5)};
  std::vector<T> estimate(3);
  op->absorb_mean(0, scope, mean, nullptr, estimate.data());
  EXPECT_EQ(estimate, mean);
}

}  // namespace
}  // namespace fl
