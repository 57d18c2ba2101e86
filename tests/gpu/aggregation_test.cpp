// Compares weighted sums of messages on the GPU with the CPU's, byte for byte: messages of every operator, from one client to several
// groups of clients, with silent and refused ones among them. Skipped without a GPU; the emulator takes threads in both orders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "fl_core/ops/cuda/payload_copy.hpp"
#include "server/aggregator.hpp"
#include "tests/compressors/operator_case.hpp"
#include "tests/gpu/gpu_there.hpp"
#include "tests/gpu/messages.hpp"

namespace fl {
namespace {

using test::compressed;
using test::Pattern;
using test::same_numbers;
using test::Where;

// A cohort's messages as the host has them, and where a GPU reaches them. Clients may be absent (null) or silent.
template <class T>
struct Cohort {
  std::vector<Payload<T>> here, there;
  std::vector<const Payload<T>*> on_host, on_device;
  std::vector<double> weights;

  explicit Cohort(std::vector<Payload<T>> messages) : here(std::move(messages)), there(here.size()) {
    for (std::size_t i = 0; i < here.size(); ++i) {
      there[i].place_on(Device::managed);
      cuda::copy_payload(here[i], there[i], nullptr);
      on_host.push_back(&here[i]);
      on_device.push_back(&there[i]);
      weights.push_back(1 / (static_cast<double>(i % 7) + 1.7));
    }
  }
  void refuse(std::size_t i) { on_host[i] = on_device[i] = nullptr; }
  void silence(std::size_t i) { here[i].silent = there[i].silent = true; }
};

template <class T>
bool has_device_form(const Payload<T>& message) {
  return message.positions != Positions::factors && message.rest == nullptr;
}

template <class T>
std::vector<double> sum_by(Aggregator<T>& aggregator, std::span<const Payload<T>* const> messages, const Cohort<T>& cohort,
                           const Scope& scope, std::size_t length) {
  std::vector<double> sum(length, -1.0);
  aggregator.sum(messages, cohort.weights, scope, sum);
  return sum;
}

// Returns the description of a sum of the messages of K clients that take turns among operators.
template <class T>
Where where_of(const std::string& what, Pattern pattern, std::size_t K, const Scope& scope, std::size_t length) {
  Where where = test::of_vectors<T>(what, pattern, static_cast<std::uint32_t>(K), scope);
  where.P = length;
  return where;
}

template <class T>
void expect_same_sums(const Where& where, const Cohort<T>& cohort, const Scope& scope, std::size_t length) {
  ThreadPool pool(1);
  Aggregator<T> aggregator(pool);
  const std::vector<double> expected = sum_by<T>(aggregator, cohort.on_host, cohort, scope, length);
  const bool wants_device = std::all_of(cohort.on_host.begin(), cohort.on_host.end(),
                                        [](const auto* m) { return m == nullptr || m->silent || has_device_form(*m); });
  test::in_each_order(where, [&](const Where& here) {
    std::vector<double> sum(length, -1.0);
    EXPECT_EQ(make_device_aggregation<T>()->sum(cohort.on_device, cohort.weights, scope, sum), wants_device) << here.what;
    if (wants_device)
      EXPECT_TRUE(same_numbers(here, "sum", expected, sum));
    else
      EXPECT_TRUE(same_numbers(here.between("before", "after"), "sum that is left to the host", std::vector<double>(length, -1.0), sum));
  });
  EXPECT_TRUE(
      same_numbers(where.with("by the aggregator"), "sum", expected, sum_by<T>(aggregator, cohort.on_device, cohort, scope, length)));
}

class GpuAggregation : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  }
  template <class T>
  void compare(Pattern pattern, std::uint32_t K, std::size_t P) {
    for (Scope scope : test::message_scopes(P)) {
      Cohort<T> cohort(compressed<T>(GetParam(), scope, pattern, K));
      if (K > 1) cohort.silence(K / 2);
      if (K > 3) cohort.refuse(K - 2);
      expect_same_sums(where_of<T>("sum of messages of " + test::operator_text(GetParam()), pattern, K, scope, P), cohort, scope, P);
    }
  }
};

TEST_P(GpuAggregation, GivesTheBytesOfTheCpu) {
  for (const std::uint32_t K : {1u, 3u, 20u}) {
    compare<float>(Pattern::uniform, K, 2501);
    compare<double>(Pattern::ties, K, 997);
  }
  compare<float>(Pattern::infinite, 3, 331);
}

INSTANTIATE_TEST_SUITE_P(Operators, GpuAggregation, testing::ValuesIn(test::device_operators()),
                         [](const auto& test) { return std::string(test.param); });

// ---- what no operator alone sends ----

using Names = std::vector<std::string>;

// Clients take turns among the operators.
template <class T>
Cohort<T> mixed(const Names& names, Scope& scope, std::uint32_t K) {
  std::vector<Payload<T>> messages;
  std::vector<std::vector<Payload<T>>> by_operator;
  for (const std::string& name : names) by_operator.push_back(compressed<T>(name, scope, Pattern::uniform, K));
  for (std::uint32_t k = 0; k < K; ++k) messages.push_back(std::move(by_operator[k % names.size()][k]));
  return Cohort<T>(std::move(messages));
}
template <class T>
Where where_of(const Names& names, std::size_t K, const Scope& scope, std::size_t length) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return where_of<T>("sum of messages of the operators " + text + " by turns", Pattern::uniform, K, scope, length);
}

TEST(GpuAggregationOrder, GroupsOfClientsAreJoinedAsOnTheCpu) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  for (const std::uint32_t K : {64u, 65u, 128u, 200u, 450u, 700u, 1100u}) {
    Scope scope = test::model_scope(77);
    const Names names = {"identity", "top_k", "qsgd"};
    Cohort<float> cohort = mixed<float>(names, scope, K);
    for (std::uint32_t k = 5; k < K; k += 11) cohort.refuse(k);
    expect_same_sums(where_of<float>(names, K, scope, 77), cohort, scope, 77);
  }
}

// Lists of values alone are added in large parts of the positions, whose entries are searched for by their density. Entries are spread
// evenly, or all in one layer, or are all positions; clients are refused, and some send no entry.
TEST(GpuAggregationOrder, CohortsOfListsAreAddedInLargeParts) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  for (const std::uint32_t K : {3u, 70u, 300u}) {
    Scope scope = test::bucket_scope(20011, 700, true);
    const Names names = {"top_k", "random_k", "hard_threshold"};
    Cohort<float> cohort = mixed<float>(names, scope, K);
    for (std::uint32_t k = 1; k < K; k += 9) cohort.refuse(k);
    expect_same_sums(where_of<float>(names, K, scope, 20011), cohort, scope, 20011);
  }
}

template <class T>
Payload<T> list_of(std::size_t length, std::size_t first, std::size_t step, std::size_t count) {
  Payload<T> message;
  message.clear(length);
  message.positions = Positions::list;
  message.index.resize_discard(count);
  message.value.resize_discard(count);
  message.counts.resize_discard(1);
  message.counts.data()[0] = static_cast<std::uint32_t>(count);
  message.num_sent = count;
  for (std::size_t i = 0; i < count; ++i) {
    message.index.data()[i] = static_cast<std::uint32_t>(first + i * step);
    message.value.data()[i] = static_cast<T>(i % 13) / T(3) - T(2);
  }
  return message;
}
TEST(GpuAggregationOrder, EntriesOfListsAreFoundWhereverTheyLie) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  constexpr std::size_t kLength = 50001;
  std::vector<Payload<double>> lists;
  for (const auto& [first, step, count] : {std::array<std::size_t, 3>{0, 1, 3},
                                           {49990, 1, 11},
                                           {30000, 1, 900},
                                           {8191, 1, 2},
                                           {8192, 8192, 5},
                                           {0, 50000, 2},
                                           {17, 1, 0},
                                           {0, 3, 16667},
                                           {40000, 2, 5000},
                                           {50000, 1, 1},
                                           {0, 1, 50001}})
    lists.push_back(list_of<double>(kLength, first, step, count));
  const std::size_t K = lists.size();
  expect_same_sums(where_of<double>("sum of lists of positions", Pattern::uniform, K, test::model_scope(kLength), kLength),
                   Cohort<double>(std::move(lists)), test::model_scope(kLength), kLength);
}

// Buckets of one size lie together in a part, with a scale each.
TEST(GpuAggregationOrder, BucketsOfAnySizeHaveTheirOwnScales) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  for (const std::size_t bucket : {4u, 66u, 100u, 256u, 512u, 1000u, 1024u, 1028u, 3000u}) {
    for (const bool excludes : {false, true}) {
      const std::string buckets = "buckets of " + std::to_string(bucket) + (excludes ? ", something excluded" : "");
      Scope scope = test::bucket_scope(5003, bucket, excludes);
      const Names names = {"qsgd", "ef_sign", "one_bit", "sketchml", "natural_dithering", "stc", "scaled_integer"};
      const Cohort<float> many = mixed<float>(names, scope, 20);
      expect_same_sums(where_of<float>(names, 20, scope, 5003).with(buckets), many, scope, 5003);
      const Cohort<double> one = mixed<double>({"qsgd"}, scope, 19);
      expect_same_sums(where_of<double>(Names{"qsgd"}, 19, scope, 5003).with(buckets), one, scope, 5003);
    }
  }
}

TEST(GpuAggregationOrder, KindsOfMessagesMayTakeTurns) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  Scope scope = test::bucket_scope(4999, 700, true);
  const Names names = {"identity", "top_k", "random_k", "ef_sign", "qsgd", "stc"};
  const Cohort<double> cohort = mixed<double>(names, scope, 25);
  expect_same_sums(where_of<double>(names, 25, scope, 4999), cohort, scope, 4999);
}

TEST(GpuAggregationOrder, VectorsOfTheirOwnShapeHaveOneSegment) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  const Scope scope = test::bucket_scope(500, 100, true);
  Scope own = test::model_scope(2077);
  const Names names = {"identity", "top_k", "qsgd"};
  const Cohort<float> cohort = mixed<float>(names, own, 7);
  expect_same_sums(where_of<float>(names, 7, scope, 2077), cohort, scope, 2077);
}

TEST(GpuAggregationOrder, WhatHasNoDeviceFormIsTheHosts) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  Scope scope = test::model_scope(301);
  std::vector<Payload<float>> messages = compressed<float>("identity", scope, Pattern::uniform, 3);
  messages[2].rest = std::make_unique<Payload<float>>();
  cuda::copy_payload(messages[1], *messages[2].rest, nullptr);
  const Where where = where_of<float>(Names{"identity"}, 3, scope, 301);
  expect_same_sums(where.with("the last has a rest"), Cohort<float>(std::move(messages)), scope, 301);

  Cohort<float> decoded(compressed<float>("top_k", scope, Pattern::uniform, 3));
  decoded.on_device[1] = decoded.on_host[1];
  std::vector<double> sum(301, -1.0);
  EXPECT_FALSE(make_device_aggregation<float>()->sum(decoded.on_device, decoded.weights, scope, sum));
  EXPECT_THAT(sum, testing::Each(-1.0));
  ThreadPool pool(1);
  Aggregator<float> aggregator(pool);
  EXPECT_TRUE(same_numbers(where_of<float>(Names{"top_k"}, 3, scope, 301).with("one message on the host"), "sum",
                           sum_by<float>(aggregator, decoded.on_host, decoded, scope, 301),
                           sum_by<float>(aggregator, decoded.on_device, decoded, scope, 301)));
}

TEST(GpuAggregationOrder, NobodyWhoSpeaksIsZero) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  Scope scope = test::model_scope(19);
  Cohort<float> cohort(compressed<float>("identity", scope, Pattern::uniform, 2));
  cohort.silence(0);
  cohort.refuse(1);
  ThreadPool pool(1);
  Aggregator<float> aggregator(pool);
  EXPECT_THAT(sum_by<float>(aggregator, cohort.on_device, cohort, scope, 19), testing::Each(0.0));
}

}  // namespace
}  // namespace fl
