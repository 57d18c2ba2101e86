#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "fl_core/ops/cpu/dense.hpp"
#include "fl_core/ops/cpu/gather.hpp"
#include "fl_core/ops/cpu/select.hpp"
#include "fl_core/random/subset_draws.hpp"
#include "tests/fl_core/cpu/op_cases.hpp"

namespace fl {
namespace {

using namespace fl::test;

template <class T>
class SparseOps : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(SparseOps, Precisions);

// A rule without bound(), so that the path for any functor is taken; it depends on the segment.
template <class T>
struct KeepPositive {
  bool operator()(T p, std::size_t segment) const { return p > static_cast<T>(0.1) * static_cast<T>(segment + 1); }
};

template <class T, class Keep>
std::string select_like_loop(std::uint32_t K, const Scope& scope, Pattern pattern, int terms, Keep keep, WireValue wire, StateRule rule,
                             bool in_place) {
  TestBlock<T> block(K, scope.P, pattern);
  const std::vector<T> p = evaluate(block.input(terms));
  std::vector<char> sent(p.size(), 0);
  for (std::uint32_t k = 0; k < K; ++k)
    for (std::size_t s = 0; s < scope.segments.size(); ++s)
      for (std::size_t j = scope.segments[s].begin; j < scope.segments[s].end; ++j) sent[k * scope.P + j] = keep(p[k * scope.P + j], s);
  std::vector<T>& state = in_place ? block.e : block.state;
  cpu::select_rows(block.exec, block.input(terms), scope, keep, wire, StateWrite<T>{rule, block.view(state)}, block.out());
  return check_sparse(p, sent, scope, wire, rule, block.payloads, state.data());
}

TYPED_TEST(SparseOps, SelectEqualsTheLoopOnEverySizeAndPattern) {
  using T = TypeParam;
  for (const std::size_t P : kOddSizes)
    for (const Pattern pattern : kPatterns) {
      const AtLeast<T> keep{pattern == Pattern::denormal ? std::numeric_limits<T>::min() / 2 : T(0.5)};
      const std::string fault = select_like_loop<T>(2, model_scope(P), pattern, 2, keep, kNativeWire<T>, StateRule::residual, true);
      EXPECT_EQ(fault, "") << "P=" << P << " pattern=" << static_cast<int>(pattern);
    }
}

TYPED_TEST(SparseOps, SelectEqualsTheLoopForEveryScopeStateAndFormat) {
  using T = TypeParam;
  for (const Scope& scope : {model_scope(5003), bucket_scope(5003, 64, false), bucket_scope(5003, 7, true), bucket_scope(9000, 2500, true)})
    for (const StateRule rule : {StateRule::none, StateRule::residual, StateRule::zero_where_sent})
      for (const WireValue wire : {WireValue::fp64, WireValue::fp32, WireValue::fp16})
        for (const bool in_place : {false, true})
          for (int terms = 1; terms <= 4; ++terms) {
            EXPECT_EQ(select_like_loop<T>(3, scope, Pattern::uniform, terms, AtLeast<T>{T(0.7)}, wire, rule, in_place), "");
            EXPECT_EQ(select_like_loop<T>(3, scope, Pattern::nan, terms, KeepPositive<T>{}, wire, rule, in_place), "");
          }
}

TYPED_TEST(SparseOps, SelectDoesNotDependOnTheBlock) {
  using T = TypeParam;
  const Scope scope = bucket_scope(3000, 700, false);
  TestBlock<T> whole(5, 3000, Pattern::uniform);
  TestBlock<T> split(5, 3000, Pattern::uniform);
  const AtLeast<T> keep{T(0.9)};
  const StateWrite<T> whole_state{StateRule::residual, whole.view(whole.g)}, split_state{StateRule::residual, split.view(split.g)};
  cpu::select_rows(whole.exec, whole.input(2), scope, keep, kNativeWire<T>, whole_state, whole.out());
  for (const auto& [first, count] : {std::pair<std::uint32_t, std::uint32_t>{0, 1}, {1, 3}, {4, 1}})
    cpu::select_rows(split.exec, split.input(2).slice(first, count), scope, keep, kNativeWire<T>, split_state.slice(first, count),
                     split.out().subspan(first, count));
  EXPECT_TRUE(same(whole.g.data(), split.g.data(), whole.g.size()));
  for (int k = 0; k < 5; ++k) {
    ASSERT_EQ(whole.payloads[k].num_sent, split.payloads[k].num_sent);
    EXPECT_TRUE(std::equal(whole.payloads[k].index.begin(), whole.payloads[k].index.end(), split.payloads[k].index.begin()));
  }
}

TYPED_TEST(SparseOps, RowsMayLieAnywhere) {
  using T = TypeParam;
  TestBlock<T> block(3, 100, Pattern::uniform);
  const std::uint32_t rows[3] = {2, 0, 1};
  Affine<T> input;
  input.add(T(1), BatchView<const T>{block.e.data(), rows, 3, 100, 100});
  const std::vector<T> p = evaluate(input);
  EXPECT_TRUE(same(p.data(), block.e.data() + 200, 100));
  cpu::select_rows(block.exec, input, model_scope(100), AtLeast<T>{T(0.5)}, kNativeWire<T>,
                   StateWrite<T>{StateRule::residual, {block.state.data(), rows, 3, 100, 100}}, block.out());
  std::vector<char> sent;
  for (const T x : p) sent.push_back(std::fabs(x) >= T(0.5));
  std::vector<T> state(block.state.begin() + 200, block.state.end());
  state.insert(state.end(), block.state.begin(), block.state.begin() + 200);
  EXPECT_EQ(check_sparse(p, sent, model_scope(100), kNativeWire<T>, StateRule::residual, block.payloads, state.data()), "");
}

TYPED_TEST(SparseOps, SteadyStateAllocatesNothing) {
  using T = TypeParam;
  TestBlock<T> block(2, 5000, Pattern::uniform);
  const void* memory[2] = {nullptr, nullptr};
  for (int round = 0; round < 3; ++round) {
    for (int k = 0; k < 2; ++k) block.payloads[k].clear(5000);
    cpu::select_rows(block.exec, block.input(2), model_scope(5000), AtLeast<T>{T(0.2)}, kNativeWire<T>, StateWrite<T>{}, block.out());
    for (int k = 0; k < 2; ++k) {
      if (round > 0) {
        EXPECT_EQ(memory[k], block.payloads[k].index.data());
      }
      memory[k] = block.payloads[k].index.data();
    }
  }
}

TYPED_TEST(SparseOps, DenseSendsEverythingInEveryFormat) {
  using T = TypeParam;
  for (const Pattern pattern : kPatterns)
    for (const WireValue wire : {WireValue::fp64, WireValue::fp32, WireValue::fp16})
      for (const StateRule rule : {StateRule::none, StateRule::residual, StateRule::zero_where_sent}) {
        const Scope scope = bucket_scope(4099, 300, true);
        TestBlock<T> block(2, 4099, pattern);
        const std::vector<T> p = evaluate(block.input(2));
        const StateWrite<T> state{rule, block.view(block.g)};
        const std::vector<T> before = block.g;
        cpu::dense_rows(block.exec, block.input(2), scope, wire, state, block.out());
        cpu::send_excluded(block.exec, block.input(2), scope, state, block.out());
        for (std::size_t k = 0; k < 2; ++k) {
          std::size_t at = 0, outside = 0;
          for (const Segment& segment : scope.segments)
            for (std::size_t j = segment.begin; j < segment.end; ++j, ++at) {
              const T x = p[k * 4099 + j], c = wire_value(wire, x);
              ASSERT_TRUE(same(block.payloads[k].value[at], c)) << j;
              const T expected = rule == StateRule::none ? before[k * 4099 + j] : state_where_sent(rule, x, c);
              ASSERT_TRUE(same(block.g[k * 4099 + j], expected)) << j;
            }
          EXPECT_EQ(block.payloads[k].num_sent, at);
          for (const Segment& segment : scope.excluded)
            for (std::size_t j = segment.begin; j < segment.end; ++j, ++outside) {
              ASSERT_TRUE(same(block.payloads[k].excluded[outside], p[k * 4099 + j]));
              if (rule != StateRule::none && std::isfinite(p[k * 4099 + j])) {
                ASSERT_EQ(block.g[k * 4099 + j], T(0));
              }
            }
          EXPECT_EQ(block.payloads[k].excluded.size(), outside);
        }
      }
}

TYPED_TEST(SparseOps, GatherTakesTheGivenEntries) {
  using T = TypeParam;
  const Scope scope = bucket_scope(4099, 1500, false);
  for (const StateRule rule : {StateRule::none, StateRule::residual, StateRule::zero_where_sent}) {
    TestBlock<T> block(3, 4099, Pattern::uniform);
    const std::vector<T> p = evaluate(block.input(2));
    const std::vector<T> factor = {T(1), T(2.5), T(-3)};
    const std::vector<std::uint32_t> k = {3, 0, 1099};
    const std::vector<std::uint32_t> clients = {5, 9, 1};
    cpu::random_subset_rows<T>(block.exec, scope, k, SubsetDraw{7, 1, clients}, block.out());
    cpu::gather_rows<T>(block.exec, block.input(2), scope, factor, WireValue::fp16, StateWrite<T>{rule, block.view(block.e)}, block.out());
    for (std::size_t client = 0; client < 3; ++client) {
      const Payload<T>& payload = block.payloads[client];
      ASSERT_EQ(payload.num_sent, 1102u);
      for (std::size_t i = 0; i < payload.num_sent; ++i) {
        const std::size_t j = payload.index[i];
        const T x = p[client * 4099 + j], c = wire_value(WireValue::fp16, factor[j / 1500] * x);
        ASSERT_EQ(payload.value[i], c);
        if (rule != StateRule::none) {
          ASSERT_TRUE(same(block.e[client * 4099 + j], state_where_sent(rule, x, c)));
        }
      }
      std::set<std::size_t> sent(payload.index.begin(), payload.index.end());
      for (std::size_t j = 0; rule != StateRule::none && j < 4099; ++j)
        if (sent.count(j) == 0) {
          ASSERT_EQ(block.e[client * 4099 + j], p[client * 4099 + j]);
        }
    }
  }
}

TEST(RandomSubset, HasExactlyKAscendingPositionsAndOneSetPerClientRoundAndSegment) {
  for (const std::size_t P : kOddSizes) {
    const Scope scope = model_scope(P);
    for (const std::size_t k : {std::size_t{1}, P / 3, P / 2 + 1, P - 1, P}) {
      if (k < 1 || k > P) continue;
      TestBlock<float> block(2, P, Pattern::zeros);
      const std::vector<std::uint32_t> kept = {static_cast<std::uint32_t>(k)}, clients = {3, 4};
      cpu::random_subset_rows<float>(block.exec, scope, kept, SubsetDraw{11, 2, clients}, block.out());
      for (const auto& payload : block.payloads) {
        ASSERT_EQ(payload.num_sent, k);
        EXPECT_TRUE(std::is_sorted(payload.index.begin(), payload.index.end(), std::less_equal<>()));
        EXPECT_LT(payload.index[k - 1], P);
      }
      if (P > 400 && k > 2 && k < P - 2) {
        EXPECT_FALSE(std::equal(block.payloads[0].index.begin(), block.payloads[0].index.end(), block.payloads[1].index.begin()));
      }
      // Alone, client 4 draws the same.
      TestBlock<float> alone(1, P, Pattern::zeros);
      cpu::random_subset_rows<float>(alone.exec, scope, kept, SubsetDraw{11, 2, std::span(clients).subspan(1)}, alone.out());
      EXPECT_TRUE(std::equal(alone.payloads[0].index.begin(), alone.payloads[0].index.end(), block.payloads[1].index.begin()));
    }
  }
}

// Draws in batches and lists in blocks of words, which a subset of many words needs several of.
TEST(RandomSubset, IsTheOneOfThePlainAlgorithm) {
  for (const std::size_t P : {std::size_t{1000}, std::size_t{70001}, std::size_t{200003}})
    for (const std::size_t k : {std::size_t{100}, P / 50, P / 3, P - 100}) {
      const std::vector<std::uint32_t> kept = {static_cast<std::uint32_t>(k)}, clients = {3};
      TestBlock<float> block(1, P, Pattern::zeros);
      cpu::random_subset_rows<float>(block.exec, model_scope(P), kept, SubsetDraw{11, 2, clients}, block.out());
      std::vector<bool> drawn(P);
      draw_subset(RandomStream(11, 3, 2), P, k, [&](std::size_t t) {
        const bool is_new = !drawn[t];
        drawn[t] = true;
        return is_new;
      });
      std::vector<std::uint32_t> expected;
      for (std::size_t j = 0; j < P; ++j)
        if (drawn[j] != draws_the_others(P, k)) expected.push_back(static_cast<std::uint32_t>(j));
      const auto& index = block.payloads[0].index;
      ASSERT_EQ(std::vector<std::uint32_t>(index.begin(), index.end()), expected) << k << " of " << P;
    }
}

TEST(RandomSubset, EveryPairIsEquallyLikely) {
  constexpr std::size_t kSize = 6, kDraws = 30000;
  const Scope scope = model_scope(kSize);
  TestBlock<float> block(1, kSize, Pattern::zeros);
  std::vector<int> count(kSize * kSize, 0);
  const std::vector<std::uint32_t> kept = {2}, clients = {0};
  for (std::uint32_t round = 0; round < kDraws; ++round) {
    cpu::random_subset_rows<float>(block.exec, scope, kept, SubsetDraw{5, round, clients}, block.out());
    ++count[block.payloads[0].index[0] * kSize + block.payloads[0].index[1]];
  }
  double chi_squared = 0;
  const double expected = kDraws / 15.0;
  for (std::size_t a = 0; a < kSize; ++a)
    for (std::size_t b = a + 1; b < kSize; ++b) chi_squared += std::pow(count[a * kSize + b] - expected, 2) / expected;
  EXPECT_LT(chi_squared, 36.1);  // 14 degrees of freedom, p = 0.001
}

}  // namespace
}  // namespace fl
