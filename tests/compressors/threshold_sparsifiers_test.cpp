// Tests sparsifiers that choose their own threshold or probabilities, on examples calculated by hand, and in three steps of error feedback
// against plain loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/compressors/operator_case.hpp"
#include "tests/fl_core/cpu/op_cases.hpp"

namespace fl {
namespace {

using namespace fl::test;
using testing::ElementsAre;
using testing::HasSubstr;
using Vector = std::vector<double>;

Value integer(std::int64_t i) { return Value{i}; }
Value real(double x) { return Value{x}; }

// The entries that were sent, as numbers; 0 elsewhere.
Vector apply(Compressor<double>& op, const Vector& x, std::uint32_t round = 1) {
  return compress(op, model_scope(x.size()), x, 1, round).dense;
}

// Three steps of error feedback on growing inputs: the operator against `selected`, which says what is sent of p.
template <class Selected>
void expect_three_steps(Compressor<double>& op, Selected selected) {
  const Vector g = {0.9, -0.35, 0.1, -1.2, 0.05, 0.6};
  Vector e(g.size(), 0.0);
  for (std::uint32_t step = 1; step <= 3; ++step) {
    Vector p(g.size());
    for (std::size_t j = 0; j < g.size(); ++j) p[j] = e[j] + step * g[j];
    const auto sent = compress(op, model_scope(p.size()), p, 1, step);
    const Vector expected = selected(p, step);
    for (std::size_t j = 0; j < p.size(); ++j) {
      EXPECT_NEAR(sent.dense[j], expected[j], 1e-15) << "entry " << j << ", step " << step;
      e[j] = p[j] - expected[j];
      EXPECT_NEAR(sent.state[j], e[j], 1e-15) << "memory " << j << ", step " << step;
    }
  }
}

Vector kept_from(const Vector& p, double threshold) {
  Vector c = p;
  for (double& x : c)
    if (std::fabs(x) < threshold) x = 0;
  return c;
}

// ---- gradient dropping ----

TEST(AjiDropping, ExactIsTheKthLargestWithItsTies) {
  auto op = make_compressor<double>("aji_dropping", {{"k", integer(2)}, {"exact", Value{true}}});
  EXPECT_THAT(apply(*op, {1, -3, 2, 3, -1}), ElementsAre(0, -3, 0, 3, 0));
  EXPECT_THAT(apply(*op, {1, -2, 2, 3, -1}), ElementsAre(0, -2, 2, 3, 0));
  EXPECT_THAT(apply(*op, {0, 0, 0, 5, 0}), ElementsAre(0, 0, 0, 5, 0));
  expect_three_steps(*op, [](const Vector& p, std::uint32_t) {
    Vector sorted;
    for (const double x : p) sorted.push_back(std::fabs(x));
    std::sort(sorted.rbegin(), sorted.rend());
    return kept_from(p, sorted[1]);
  });
}

// A sample of 1,000 is drawn from ten thousand entries: about a tenth is kept, and exactly the largest entries.
TEST(AjiDropping, ASampleKeepsAboutTheRatio) {
  const Scope scope = model_scope(10000);
  const Vector x = TestBlock<double>(1, 10000, Pattern::uniform, 3).e;
  auto op = make_compressor<double>("aji_dropping", {{"ratio", real(0.1)}, {"sample", real(0.1)}});
  std::set<std::size_t> counts;
  for (std::uint32_t round = 1; round <= 5; ++round) {
    const auto sent = compress(*op, scope, x, 1, round);
    counts.insert(sent.message.num_sent);
    EXPECT_NEAR(static_cast<double>(sent.message.num_sent), 1000, 300);
    double least_kept = 1e9, most_dropped = 0;
    for (std::size_t j = 0; j < x.size(); ++j) {
      if (sent.dense[j] != 0) least_kept = std::min(least_kept, std::fabs(x[j]));
      if (sent.dense[j] == 0) most_dropped = std::max(most_dropped, std::fabs(x[j]));
    }
    EXPECT_GE(least_kept, most_dropped);
  }
  EXPECT_GT(counts.size(), 1u) << "every round drew the same sample";
}

// ---- the corrected threshold of deep gradient compression ----

// The threshold that the sample of this round gives, from the published steps.
Vector dgc(const Vector& p, std::uint32_t round, double density, double sample_part, double tolerance, int rounds) {
  const std::size_t d = p.size(), s = std::max<std::size_t>(1, static_cast<std::size_t>(sample_part * static_cast<double>(d)));
  const RandomStream stream(42, 0, round);
  Vector sample;
  for (std::size_t i = 0; i < s; ++i) sample.push_back(std::fabs(p[stream.bits(i) * static_cast<std::uint64_t>(d) >> 32]));
  std::sort(sample.rbegin(), sample.rend());
  const double wanted = density * static_cast<double>(d);
  double t = sample[std::max<std::size_t>(1, static_cast<std::size_t>(sample_part * wanted)) - 1];
  for (int i = 0; i < rounds; ++i) {
    const auto above = static_cast<double>(std::count_if(p.begin(), p.end(), [t](double x) { return std::fabs(x) >= t; }));
    if (above > (1 + tolerance) * wanted)
      t *= 1 + tolerance;
    else if (above < (1 - tolerance) * wanted)
      t *= 1 - tolerance;
    else
      break;
  }
  return kept_from(p, t);
}

TEST(DgcSampled, FollowsThePublishedStepsForThreeRounds) {
  auto op = make_compressor<double>("dgc_sampled", {{"ratio", real(0.34)}, {"sample", real(0.5)}});
  expect_three_steps(*op, [](const Vector& p, std::uint32_t step) { return dgc(p, step, 0.34, 0.5, 0.3, 10); });
  auto raw = make_compressor<double>("dgc_sampled", {{"ratio", real(0.34)}, {"sample", real(0.5)}, {"rounds", integer(0)}});
  expect_three_steps(*raw, [](const Vector& p, std::uint32_t step) { return dgc(p, step, 0.34, 0.5, 0.3, 0); });
}

// Tails as gradients have them; on bounded numbers steps of 30% are too coarse to settle.
Vector heavy_tailed(std::size_t n) {
  RandomSequence random(3, Purpose::synthetic_data);
  Vector x(n);
  for (double& value : x) value = random.normal() * std::exp(2 * random.normal());
  return x;
}

TEST(DgcSampled, CorrectionsBringTheNumberWithinTheTolerance) {
  const Vector x = heavy_tailed(20000);
  for (const double ratio : {0.2, 0.05, 0.01}) {
    auto op = make_compressor<double>("dgc_sampled", {{"ratio", real(ratio)}, {"sample", real(0.01)}});
    const auto sent = compress(*op, model_scope(x.size()), x, 1, 7);
    EXPECT_LE(static_cast<double>(sent.message.num_sent), 1.3 * ratio * 20000);
    EXPECT_GE(static_cast<double>(sent.message.num_sent), 0.7 * ratio * 20000);
  }
}

TEST(DgcSampled, WarmsUpByItsDensities) {
  Value densities;
  densities.data = Value::List{real(0.5), real(0.25)};
  auto op = make_compressor<double>("dgc_sampled", {{"ratio", real(0.02)}, {"warmup", densities}, {"warmup_rounds", integer(2)}});
  const Vector x = heavy_tailed(5000);
  for (const auto& [round, density] : std::map<std::uint32_t, double>{{1, 0.5}, {2, 0.5}, {3, 0.25}, {4, 0.25}, {5, 0.02}, {100, 0.02}}) {
    const auto sent = compress(*op, model_scope(x.size()), x, 1, round);
    EXPECT_NEAR(static_cast<double>(sent.message.num_sent), density * 5000, 0.3 * density * 5000) << "round " << round;
  }
  EXPECT_THAT(refusal([&] { make_compressor<double>("dgc_sampled", {{"warmup", densities}}); }), HasSubstr("warmup_rounds"));
}

// ---- Strom ----

TEST(Strom, GivesTauAwayStepByStep) {
  auto op = make_compressor<double>("strom", {{"tau", real(0.5)}});
  EXPECT_THAT(apply(*op, {0.5, 0.51, -7, 0, -0.2}), ElementsAre(0, 0.5, -0.5, 0, 0));
  expect_three_steps(*op, [](const Vector& p, std::uint32_t) {
    Vector c(p.size(), 0.0);
    for (std::size_t j = 0; j < p.size(); ++j)
      if (std::fabs(p[j]) > 0.5) c[j] = p[j] > 0 ? 0.5 : -0.5;
    return c;
  });
  // The rest of a large entry is sent in later rounds, even without new input.
  const auto first = compress(*op, model_scope(1), Vector{1.2});
  EXPECT_DOUBLE_EQ(first.state[0], 0.7);
  EXPECT_DOUBLE_EQ(compress(*op, model_scope(1), first.state).state[0], 0.7 - 0.5);
  EXPECT_EQ(op->published_bits(first.message, model_scope(1)), 32.0);
  EXPECT_EQ(first.message.values, WireValue::levels);
}

// ---- variance-optimal sparsification ----

// |x|_1 = 10, k = 2: p = (0.8, 0.6, 0.4, 0.2) adds up to 2, so every entry that is kept becomes 10/2.
TEST(Wangni, EntriesOfUncertainFateAllWeighTheSame) {
  auto op = make_compressor<double>("wangni", {{"k", integer(2)}});
  std::vector<int> kept(4, 0);
  constexpr int kRounds = 4000;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const Vector c = apply(*op, {4, -3, 2, 1}, round);
    for (std::size_t j = 0; j < 4; ++j) {
      if (c[j] == 0) continue;
      ++kept[j];
      ASSERT_DOUBLE_EQ(c[j], j == 1 ? -5.0 : 5.0);
    }
  }
  const double expected[] = {0.8, 0.6, 0.4, 0.2};
  for (std::size_t j = 0; j < 4; ++j) EXPECT_NEAR(kept[j] / static_cast<double>(kRounds), expected[j], 0.04) << j;
}

// k = 2: p = (1.6 -> 1, 0.2, 0.2), c = (2 - 3 + 2) / 0.4 = 2.5, p = (1, 0.5, 0.5). Without corrections p stays (1, 0.2, 0.2).
TEST(Wangni, CorrectionsSpendWhatCertainEntriesLeave) {
  auto corrected = make_compressor<double>("wangni", {{"k", integer(2)}});
  auto first = make_compressor<double>("wangni", {{"k", integer(2)}, {"corrections", integer(0)}});
  auto scaled = make_compressor<double>("wangni", {{"k", integer(2)}, {"scaled", Value{true}}});
  int drawn = 0;
  for (std::uint32_t round = 0; round < 200; ++round) {
    const Vector a = apply(*corrected, {8, 1, -1}, round), b = apply(*first, {8, 1, -1}, round), c = apply(*scaled, {8, 1, -1}, round);
    ASSERT_DOUBLE_EQ(a[0], 8);
    ASSERT_DOUBLE_EQ(b[0], 8);
    ASSERT_DOUBLE_EQ(c[0], 8 * 2.0 / 3);
    for (const std::size_t j : {1u, 2u}) {
      const double sign = j == 1 ? 1 : -1;
      ASSERT_DOUBLE_EQ(a[j], a[j] != 0 ? 2 * sign : 0);
      ASSERT_DOUBLE_EQ(b[j], b[j] != 0 ? 5 * sign : 0);
      drawn += a[j] != 0 ? 1 : 0;
    }
  }
  EXPECT_NEAR(drawn / 400.0, 0.5, 0.15);
}

// ---- Top-k, quantised ----

TEST(Qsparse, RoundsTheLargestEntriesToLevelsOfTheirNorm) {
  const Vector x = {3, 0.1, -4, 0.2};  // Top-2 has norm 5: with s = 5 the levels are exact
  auto plain = make_compressor<double>("qsparse", {{"k", integer(2)}, {"levels", integer(5)}, {"scaled", Value{false}}});
  auto scaled = make_compressor<double>("qsparse", {{"k", integer(2)}, {"levels", integer(5)}});
  const double beta = 2.0 / 25;  // min(2/25, sqrt(2)/5)
  const Vector c = apply(*plain, x), shrunk = apply(*scaled, x);
  for (std::size_t j = 0; j < 4; ++j) {
    EXPECT_NEAR(c[j], std::fabs(x[j]) > 1 ? x[j] : 0, 1e-15);
    EXPECT_NEAR(shrunk[j], c[j] / (1 + beta), 1e-15);
  }
  EXPECT_NEAR(*plain->contract(model_scope(4)).delta, 0.5 * (1 - beta), 1e-15);
  EXPECT_NEAR(*scaled->contract(model_scope(4)).delta, 0.5 / (1 + beta), 1e-15);
  auto coarse = make_compressor<double>("qsparse", {{"k", integer(2)}, {"levels", integer(1)}, {"scaled", Value{false}}});
  EXPECT_FALSE(coarse->contract(model_scope(4)).delta.has_value()) << "beta is above 1";
  const auto sent = compress(*plain, model_scope(4), x);
  EXPECT_EQ(plain->published_bits(sent.message, model_scope(4)), 32 + 2 * (2 + 1 + 3.0));
}

TEST(Qsparse, ItsSignOperatorIsSparseTernary) {
  const Vector x = {3, 0.1, -4, 0.2};
  auto sign = make_compressor<double>("qsparse", {{"k", integer(2)}, {"quantizer", Value{std::string("sign")}}});
  EXPECT_THAT(apply(*sign, x), ElementsAre(3.5, 0, -3.5, 0));
  auto stc = make_compressor<double>("stc", {{"k", integer(2)}});
  EXPECT_EQ(apply(*sign, x), apply(*stc, x));
}

}  // namespace
}  // namespace fl
