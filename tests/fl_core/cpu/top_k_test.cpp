#include "fl_core/ops/cpu/top_k.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "fl_core/ops/cpu/mask.hpp"
#include "tests/fl_core/cpu/op_cases.hpp"
#include "tests/support/sanitized.hpp"

namespace fl {
namespace {

using namespace fl::test;

template <class T>
class TopKRows : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(TopKRows, Precisions);

// Sorted by (magnitude, lowest index first): the specification.
template <class T>
void mark_largest(const T* p, std::size_t n, std::size_t k, TieRule ties, char* sent) {
  if (k == 0) return;
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto key = [p](std::size_t j) { return cpu::magnitude_key(p[j]); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) > key(b); });
  for (std::size_t i = 0; i < std::min(k, n); ++i) sent[order[i]] = 1;
  if (ties == TieRule::all_ties)
    for (std::size_t i = k; i < n && key(order[i]) == key(order[k - 1]); ++i) sent[order[i]] = 1;
}

template <class T>
struct TopKCase {
  std::uint32_t K = 1;
  Scope scope;
  Pattern pattern = Pattern::uniform;
  int terms = 2;
  std::vector<std::uint32_t> k;
  TieRule ties = TieRule::lowest_index;
  WireValue wire = kNativeWire<T>;
  StateRule rule = StateRule::residual;
  bool in_place = true;
};

template <class T>
std::string top_k_like_sort(const TopKCase<T>& c) {
  TestBlock<T> block(c.K, c.scope.P, c.pattern);
  const std::vector<T> p = evaluate(block.input(c.terms));
  std::vector<char> sent(p.size(), 0);
  for (std::uint32_t client = 0; client < c.K; ++client)
    for (std::size_t s = 0; s < c.scope.segments.size(); ++s) {
      const std::size_t begin = client * c.scope.P + c.scope.segments[s].begin;
      mark_largest(p.data() + begin, c.scope.segments[s].size(), c.k[s], c.ties, sent.data() + begin);
    }
  std::vector<T>& state = c.in_place ? block.g : block.state;
  cpu::top_k_rows<T>(block.exec, block.input(c.terms), c.scope, c.k, c.ties, c.wire, StateWrite<T>{c.rule, block.view(state)}, block.out());
  return check_sparse(p, sent, c.scope, c.wire, c.rule, block.payloads, state.data());
}

TYPED_TEST(TopKRows, EqualsTheSortOnEverySizePatternAndCount) {
  using T = TypeParam;
  for (const std::size_t P : kOddSizes)
    for (const Pattern pattern : kPatterns)
      for (const std::size_t k : {std::size_t{0}, std::size_t{1}, std::size_t{5}, std::size_t{33}, P / 100, P / 10, P / 2, P - 1, P})
        for (const TieRule ties : {TieRule::lowest_index, TieRule::all_ties}) {
          if (k > P || (P > 50000 && (k > 5000 || ties == TieRule::all_ties))) continue;
          if (test::kSanitized && P > 3000 && k > 33 && k != P / 10) continue;
          TopKCase<T> c{.scope = model_scope(P), .pattern = pattern, .k = {static_cast<std::uint32_t>(k)}, .ties = ties};
          ASSERT_EQ(top_k_like_sort(c), "") << "P=" << P << " k=" << k << " pattern=" << static_cast<int>(pattern)
                                            << " ties=" << static_cast<int>(ties);
        }
}

TYPED_TEST(TopKRows, EqualsTheSortForEveryScopeStateAndFormat) {
  using T = TypeParam;
  for (const Scope& scope :
       {model_scope(5003), bucket_scope(5003, 64, false), bucket_scope(5003, 7, true), bucket_scope(40000, 33000, false)})
    for (const StateRule rule : {StateRule::none, StateRule::residual, StateRule::zero_where_sent})
      for (const WireValue wire : {WireValue::fp64, WireValue::fp32, WireValue::fp16})
        for (const std::size_t k : {1, 40, 1000})
          for (const Pattern pattern : {Pattern::uniform, Pattern::ties}) {
            if (test::kSanitized && wire == WireValue::fp32) continue;
            TopKCase<T> c{.K = 2, .scope = scope, .pattern = pattern, .k = {}, .wire = wire, .rule = rule};
            for (const Segment& segment : scope.segments) c.k.push_back(static_cast<std::uint32_t>(std::min(k, segment.size())));
            ASSERT_EQ(top_k_like_sort(c), "") << "P=" << scope.P << " k=" << k;
            c.in_place = false;
            c.terms = 1;
            ASSERT_EQ(top_k_like_sort(c), "");
          }
}

TYPED_TEST(TopKRows, WorksWithOneToFourTerms) {
  using T = TypeParam;
  for (int terms = 1; terms <= 4; ++terms)
    for (const std::uint32_t k : {1u, 7u, 900u})
      for (const std::size_t P : {std::size_t{501}, std::size_t{70001}})
        for (const StateRule rule : {StateRule::none, StateRule::residual}) {
          TopKCase<T> c{.K = 2, .scope = model_scope(P), .terms = terms, .k = {std::min(k, static_cast<std::uint32_t>(P))}, .rule = rule};
          ASSERT_EQ(top_k_like_sort(c), "") << terms << " terms, k=" << k << " P=" << P;
        }
}

// A sample that misses the few large entries, and one that finds nothing but them: the bound is wrong, the result is not.
TYPED_TEST(TopKRows, IsExactWhereTheSampleMisleads) {
  using T = TypeParam;
  constexpr std::size_t kSize = 262144, kClusters = 1024;
  for (const bool hide : {true, false}) {
    TestBlock<T> block(1, kSize, Pattern::uniform);
    for (std::size_t j = 0; j < kSize; ++j) {
      const bool sampled = j % (kSize / kClusters) < 16;
      if (sampled != hide) block.e[j] += T(100);
    }
    const std::vector<T> p = evaluate(block.input(2));
    for (const std::uint32_t k : {50u, 20000u}) {
      std::vector<char> sent(kSize, 0);
      mark_largest(p.data(), kSize, k, TieRule::lowest_index, sent.data());
      block.payloads[0].clear(kSize);
      const std::vector<std::uint32_t> kept = {k};
      cpu::top_k_rows<T>(block.exec, block.input(2), model_scope(kSize), kept, TieRule::lowest_index, kNativeWire<T>,
                         StateWrite<T>{StateRule::residual, block.view(block.state)}, block.out());
      EXPECT_EQ(check_sparse(p, sent, model_scope(kSize), kNativeWire<T>, StateRule::residual, block.payloads, block.state.data()), "");
    }
  }
}

TYPED_TEST(TopKRows, DoesNotDependOnTheBlock) {
  using T = TypeParam;
  const Scope scope = model_scope(500);
  TestBlock<T> whole(5, 500, Pattern::ties), split(5, 500, Pattern::ties);
  const std::vector<std::uint32_t> k = {9};
  const StateWrite<T> whole_state{StateRule::residual, whole.view(whole.e)}, split_state{StateRule::residual, split.view(split.e)};
  cpu::top_k_rows<T>(whole.exec, whole.input(2), scope, k, TieRule::lowest_index, kNativeWire<T>, whole_state, whole.out());
  for (std::uint32_t client = 0; client < 5; ++client)
    cpu::top_k_rows<T>(split.exec, split.input(2).slice(client, 1), scope, k, TieRule::lowest_index, kNativeWire<T>,
                       split_state.slice(client, 1), split.out().subspan(client, 1));
  EXPECT_TRUE(same(whole.e.data(), split.e.data(), whole.e.size()));
  for (std::size_t client = 0; client < 5; ++client)
    EXPECT_TRUE(std::equal(whole.payloads[client].index.begin(), whole.payloads[client].index.end(), split.payloads[client].index.begin()));
}

TYPED_TEST(TopKRows, QuantileIsAnOrderStatistic) {
  using T = TypeParam;
  for (const std::size_t P : {std::size_t{1}, std::size_t{7}, std::size_t{2049}, std::size_t{10007}})
    for (const Pattern pattern : {Pattern::uniform, Pattern::ties, Pattern::zeros, Pattern::denormal, Pattern::huge})
      for (const double q : {0.0, 0.25, 0.5, 0.99, 1.0}) {
        TestBlock<T> block(2, P, pattern);
        const Scope scope = P > 10 ? bucket_scope(P, P / 2, false) : model_scope(P);
        std::vector<T> out(2 * scope.segments.size());
        cpu::quantile_rows<T>(block.exec, block.input(2), scope, q, out.data());
        const std::vector<T> p = evaluate(block.input(2));
        for (std::size_t k = 0; k < 2; ++k)
          for (std::size_t s = 0; s < scope.segments.size(); ++s) {
            std::vector<T> magnitude;
            for (std::size_t j = scope.segments[s].begin; j < scope.segments[s].end; ++j) magnitude.push_back(std::fabs(p[k * P + j]));
            std::sort(magnitude.begin(), magnitude.end());
            const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(magnitude.size())));
            EXPECT_EQ(out[k * scope.segments.size() + s], magnitude[std::max<std::size_t>(rank, 1) - 1]);
          }
      }
}

}  // namespace
}  // namespace fl
