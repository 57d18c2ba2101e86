// Compares operators around operators, and sketches, with the results of their parts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "compressors/support/knapsack.hpp"
#include "tests/compressors/operator_case.hpp"

namespace fl {
namespace {

using namespace fl::test;
using testing::ElementsAre;
using testing::HasSubstr;
using Vector = std::vector<double>;

Value integer(std::int64_t i) { return Value{i}; }
Value real(double x) { return Value{x}; }
// { kind = name, key = value, ... }
Value inner(const char* name, const std::vector<std::pair<std::string, Value>>& settings = {}) {
  Value::Table table = {{"kind", Value{std::string(name)}}};
  table.insert(table.end(), settings.begin(), settings.end());
  Value value;
  value.data = std::move(table);
  return value;
}
Value list_of(Value::List values) {
  Value value;
  value.data = std::move(values);
  return value;
}
Value rounds(const std::vector<std::int64_t>& values) {
  Value::List list;
  for (const std::int64_t value : values) list.push_back(Value{value});
  return list_of(std::move(list));
}

Scope two_layers() {
  LayerTable table;
  table.layers.push_back({"first", 0, 4, 1});
  table.layers.push_back({"second", 4, 4, 1});
  return make_scope(table, ScopeKind::tensor, 0, {});
}
Scope one_layer(std::size_t n) {
  LayerTable table;
  table.layers.push_back({"only", 0, n, 1});
  return make_scope(table, ScopeKind::model, 0, {});
}

// ---- induced ----

// Top-2 leaves 1, -0.5, 0.25 and 2^-3, which natural compression represents exactly: nothing is lost. With 0.75 it is 0.5 or 1.
TEST(Induced, SendsWhatTheBiasedOperatorLeavesBehind) {
  auto op = make_compressor<double>("induced", {{"biased", inner("top_k", {{"k", integer(2)}})}, {"unbiased", inner("natural")}});
  const Vector x = {5.3, 1, -0.5, -7.1, 0.25, 0.125};
  const auto sent = compress(*op, one_layer(6), x);
  EXPECT_EQ(sent.dense, x);
  EXPECT_EQ(sent.state, Vector(6, 0.0));
  ASSERT_NE(sent.message.rest, nullptr);
  EXPECT_EQ(sent.message.num_sent, 2u);
  EXPECT_EQ(sent.message.elements(), 8u);
  EXPECT_EQ(op->published_bits(sent.message, one_layer(6)), 2 * 32 + 6 * 12.0);
  double mean = 0;
  for (std::uint32_t round = 0; round < 2000; ++round) {
    const double c = compress(*op, one_layer(3), {5.3, 0.75, -7.1}, 1, round).dense[1];
    ASSERT_TRUE(c == 0.5 || c == 1) << c;
    mean += c / 2000;
  }
  EXPECT_NEAR(mean, 0.75, 0.03);
  EXPECT_DOUBLE_EQ(*op->contract(one_layer(6)).omega, 0.125 * (1 - 2.0 / 6));
  EXPECT_FALSE(op->contract(one_layer(6)).delta.has_value());
}

TEST(Induced, RefusesPartsThatDoNotFit) {
  const auto refused = [](const Value& biased, const Value& unbiased) {
    auto op = make_compressor<double>("induced", {{"biased", biased}, {"unbiased", unbiased}});
    return refusal([&] { op->check(one_layer(10)); });
  };
  EXPECT_THAT(refused(inner("qsgd"), inner("natural")), HasSubstr("not a contraction"));
  EXPECT_THAT(refused(inner("top_k"), inner("random_k")), HasSubstr("not unbiased"));
  EXPECT_THAT(refused(inner("powersgd"), inner("natural")), HasSubstr("phases"));
  EXPECT_THAT(refused(inner("sidco"), inner("natural")), HasSubstr("remembers"));
  EXPECT_THAT(refusal([] { make_compressor<double>("induced", {{"biased", inner("top_kk")}}); }), HasSubstr("top_k"));
  EXPECT_THAT(refusal([] {
                make_compressor<double>("induced", {{"biased", inner("top_k", {{"ratios", real(0.1)}})}});
              }),
              HasSubstr("ratio"));
  EXPECT_THAT(refusal([] {
                make_compressor<double>("induced", {{"biased", inner("top_k", {{"ratio", real(2)}})}});
              }),
              HasSubstr("ratio must be"));
}

// ---- schedules ----

TEST(Schedule, ChangesTheOperatorByRounds) {
  auto op = make_compressor<double>(
      "schedule", {{"stages", list_of({inner("identity"), inner("top_k", {{"k", integer(2)}}), inner("top_k", {{"k", integer(1)}})})},
                   {"from", rounds({1, 3, 6})}});
  const Vector x = {1, -3, 2};
  const std::map<std::uint32_t, std::size_t> expected = {{1, 3}, {2, 3}, {3, 2}, {5, 2}, {6, 1}, {1000, 1}};
  for (const auto& [round, count] : expected) EXPECT_EQ(compress(*op, one_layer(3), x, 1, round).message.num_sent, count) << round;
  EXPECT_DOUBLE_EQ(*op->contract(one_layer(3)).delta, 1.0 / 3);
  EXPECT_THAT(refusal([] { make_compressor<double>("schedule", {{"from", rounds({2})}}); }), HasSubstr("begin with 1"));
  EXPECT_THAT(refusal([] { make_compressor<double>("schedule", {{"from", rounds({1, 5})}}); }), HasSubstr("one round for each"));
}

TEST(AdaQs, DoublesTheLevels) {
  auto op = make_compressor<double>("adaqs", {{"levels", integer(1)}, {"double_every", integer(2)}, {"max_levels", integer(4)}});
  const std::map<std::uint32_t, std::int64_t> levels = {{1, 1}, {2, 1}, {3, 2}, {4, 2}, {5, 4}, {7, 4}, {100, 4}};
  const Vector x = {0.3, -0.4, 1.2, 0.1};
  for (const auto& [round, s] : levels) {
    auto qsgd = make_compressor<double>("qsgd", {{"levels", integer(s)}});
    EXPECT_EQ(compress(*op, one_layer(4), x, 1, round).dense, compress(*qsgd, one_layer(4), x, 1, round).dense) << round;
  }
}

// |x| = 5: with c = 0.5 there are 3 levels of 5/3, with c = 0.1 one.
TEST(Dqsgd, TakesAsManyLevelsAsTheNormAsksFor) {
  const Vector x = {3, -4, 0, 0};
  for (const auto& [c, s] : std::map<double, std::int64_t>{{0.1, 1}, {0.5, 3}, {2.0, 10}}) {
    auto op = make_compressor<double>("dqsgd", {{"levels_per_unit", real(c)}});
    const auto sent = compress(*op, one_layer(4), x);
    EXPECT_EQ(sent.message.level_format.min_level, -s);
    for (std::size_t j = 0; j < 4; ++j) {
      const double level = sent.dense[j] * static_cast<double>(s) / 5;
      EXPECT_NEAR(level, std::round(level), 1e-12);
      EXPECT_LT(std::fabs(sent.dense[j] - x[j]), 5.0 / static_cast<double>(s));
    }
    EXPECT_DOUBLE_EQ(*op->contract(one_layer(4)).kappa, 2 / c);
  }
}

// ---- per layer ----

// Windows of two rounds: the first layer's norm halves, the second's stays.
TEST(Accordion, CompressesLittleWhereNormsChange) {
  auto op = make_compressor<double>(
      "accordion",
      {{"critical", inner("top_k", {{"k", integer(3)}})}, {"otherwise", inner("top_k", {{"k", integer(1)}})}, {"window", integer(2)}});
  const Scope scope = two_layers();
  Vector memory;
  std::vector<std::vector<std::uint32_t>> counts;
  for (std::uint32_t round = 1; round <= 6; ++round) {
    const double first = round <= 2 ? 1 : 0.4;
    const Vector x = {4 * first, 3 * first, 2 * first, first, 1, 2, 3, 4};
    const auto sent = compress(*op, scope, x, 1, round, 0, memory);
    memory = sent.memory;
    counts.push_back({sent.message.counts[0], sent.message.counts[1]});
  }
  const std::vector<std::uint32_t> both = {3, 3}, first_only = {3, 1}, none = {1, 1};
  EXPECT_THAT(counts, ElementsAre(both, both, first_only, first_only, none, none));
  // A smaller step size makes everything critical again.
  const auto slower = compress(*op, scope, Vector{1, 1, 1, 1, 1, 2, 3, 4}, 0.1, 7, 0, memory);
  EXPECT_EQ(slower.message.num_sent, 6u);
  auto dense = make_compressor<double>("accordion", {{"critical", inner("qsgd")}});
  EXPECT_THAT(refusal([&] { dense->check(scope); }), HasSubstr("some entries"));
}

// The dynamic programme against all 3^4 choices.
TEST(LGreCo, FindsTheCheapestChoiceWithinTheBudget) {
  const std::vector<std::vector<double>> cost = {{5, 2, 9}, {5, 1, 20}, {5, 4, 6}, {5, 3, 8}},
                                         error = {{4, 8, 0}, {3, 9, 1}, {2, 3, 1}, {6, 7, 2}};
  EXPECT_EQ(cheapest_within(cost, error, 3, 3), std::vector<std::size_t>(4, 0)) << "nothing errs so little";
  for (const double budget : {4.0, 10.0, 15.0, 18.0, 40.0}) {
    double best = 1e9;
    for (int code = 0; code < 81; ++code) {
      double c = 0, e = 0;
      for (int s = 0, rest = code; s < 4; ++s, rest /= 3) {
        c += cost[static_cast<std::size_t>(s)][static_cast<std::size_t>(rest % 3)];
        e += error[static_cast<std::size_t>(s)][static_cast<std::size_t>(rest % 3)];
      }
      if (e <= budget) best = std::min(best, c);
    }
    // As many steps as the budget has units: nothing is rounded.
    const std::vector<std::size_t> chosen = cheapest_within(cost, error, budget, static_cast<std::size_t>(budget));
    double c = 0, e = 0;
    for (std::size_t s = 0; s < 4; ++s) {
      c += cost[s][chosen[s]];
      e += error[s][chosen[s]];
    }
    EXPECT_EQ(c, best) << budget;
    EXPECT_LE(e, budget);
  }
}

// The first layer is nearly sparse, the second is flat. The reference keeps two of each; one entry of the first and three of the second
// cost as much and err less, and are not chosen because shorter is what is asked for: 1 and 2 err too much, 2 and 2 is the reference.
TEST(LGreCo, NeverErrsMoreThanTheReferenceAndIsNeverLonger) {
  const std::vector<Value> sizes = {inner("top_k", {{"k", integer(1)}}), inner("top_k", {{"k", integer(3)}}),
                                    inner("top_k", {{"k", integer(4)}})};
  auto reference = make_compressor<double>("top_k", {{"k", integer(2)}});
  Value candidates;
  candidates.data = Value::List(sizes.begin(), sizes.end());
  auto op = make_compressor<double>(
      "lgreco", {{"reference", inner("top_k", {{"k", integer(2)}})}, {"candidates", candidates}, {"adjust_every", integer(1)}});
  const Scope scope = two_layers();
  bool is_ever_shorter = false;
  for (const Vector& x : {Vector{9, 0.01, 0, 0, 1, 1, 1, 1}, Vector{9, 0, 0, 0, 8, 0, 0, 0}, Vector{1, 2, 3, 4, 4, 3, 2, 1}}) {
    const auto sent = compress(*op, scope, x), plain = compress(*reference, scope, x);
    EXPECT_LE(squared_distance(sent.dense, x), squared_distance(plain.dense, x) + 1e-12);
    EXPECT_LE(sent.message.num_sent, plain.message.num_sent);
    is_ever_shorter = is_ever_shorter || sent.message.num_sent < plain.message.num_sent;
  }
  EXPECT_TRUE(is_ever_shorter) << "a layer with one entry needs no second one";
  EXPECT_DOUBLE_EQ(*op->contract(scope).delta, 0.5);
}

// ---- the sketch ----

TEST(SketchedSgd, FindsTheHeavyEntriesOfTheMean) {
  constexpr std::size_t kSize = 400;
  std::vector<Vector> x(3, Vector(kSize));
  RandomSequence random(9, Purpose::synthetic_data);
  for (Vector& v : x)
    for (double& value : v) value = 0.01 * random.normal();
  // Heavy in the mean, though no client alone would choose 300; 17 is large at two clients and cancels.
  for (std::size_t i = 0; i < 3; ++i) x[i][5] += 3, x[i][300] += i == 0 ? 1.5 : 0.9, x[i][122] -= 2;
  x[0][17] += 10;
  x[1][17] -= 10;
  auto op = make_compressor<double>("sketched_sgd", {{"k", integer(3)}, {"rows", integer(5)}, {"columns", integer(100)}});
  const Scope scope = one_layer(kSize);
  Vector together, left(3 * kSize, -77);
  for (const Vector& v : x) together.insert(together.end(), v.begin(), v.end());
  const std::vector<std::uint32_t> clients = {0, 1, 2};
  Senders<double> senders{.clients = clients, .state = {StateRule::residual, rows_view(left.data(), 3, kSize)}};
  senders.input.add(1, rows_view<const double>(together.data(), 3, kSize));
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  Conversation<double> conversation(*op, scope, 7);
  conversation.open(0);
  const Transcript<double> transcript = conversation.hold(exec, senders);
  for (std::size_t j = 0; j < kSize; ++j) {
    const bool is_heavy = j == 5 || j == 122 || j == 300;
    EXPECT_NEAR(transcript.mean[j], is_heavy ? (x[0][j] + x[1][j] + x[2][j]) / 3 : 0.0, 1e-15) << j;
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(left[i * kSize + j], is_heavy ? 0.0 : x[i][j]) << j;
  }
  EXPECT_EQ(op->message_length(0, scope), 500u);
  EXPECT_EQ(op->message_length(1, scope), 3u);
}

// ---- Dryden ----

// Positive entries 8, 4, 1, 1 and negative ones -6, -2: half of each keeps 8 and 4 (mean 6) and -6.
TEST(Dryden, TreatsBothSidesApart) {
  auto op = make_compressor<double>("dryden", {{"ratio", real(0.5)}});
  const Vector x = {8, -6, 4, 1, -2, 0, 1};
  const auto sent = compress(*op, one_layer(7), x);
  EXPECT_THAT(sent.dense, ElementsAre(6, -6, 6, 0, 0, 0, 0));
  EXPECT_THAT(sent.state, ElementsAre(2, 0, -2, 1, -2, 0, 1));
  EXPECT_NEAR(squared_norm(sent.state), squared_norm(x) - 2 * 36 - 36, 1e-12);
  EXPECT_EQ(op->published_bits(sent.message, one_layer(7)), 64 + 3 * (3 + 1.0));
  // One side alone, and three rounds of error feedback by a plain loop.
  EXPECT_THAT(compress(*op, one_layer(3), Vector{2, 0, 4}).dense, ElementsAre(0, 0, 4));
  const auto plain = [](const Vector& p) {
    Vector c(p.size(), 0.0);
    for (const double sign : {1.0, -1.0}) {
      Vector side;
      for (const double v : p)
        if (sign * v > 0) side.push_back(sign * v);
      if (side.empty()) continue;
      std::sort(side.begin(), side.end(), std::greater<>());
      const double threshold = side[std::max<std::size_t>(1, side.size() / 2) - 1];
      double sum = 0, count = 0;
      for (const double v : side)
        if (v >= threshold) sum += v, ++count;
      for (std::size_t j = 0; j < p.size(); ++j)
        if (sign * p[j] >= threshold) c[j] = sign * sum / count;
    }
    return c;
  };
  const Vector g = {0.9, -0.35, 0.1, -1.2, 0.05, 0.6};
  Vector e(g.size(), 0.0);
  for (int step = 1; step <= 3; ++step) {
    Vector p = e;
    for (std::size_t j = 0; j < g.size(); ++j) p[j] += step * g[j];
    const auto outcome = compress(*op, one_layer(g.size()), p);
    const Vector c = plain(p);
    for (std::size_t j = 0; j < g.size(); ++j) EXPECT_NEAR(outcome.dense[j], c[j], 1e-15) << "entry " << j << ", step " << step;
    e = outcome.state;
  }
}

}  // namespace
}  // namespace fl
