// Tests that leaves which are computed apart and joined give the aggregator's bytes.
#include "server/sum_tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "fl_core/message/payload_ops.hpp"
#include "server/aggregator.hpp"

namespace fl {
namespace {

constexpr std::size_t kLength = 20'011;  // two pieces of the aggregator's work

Scope scope_of_sums() { return {.kind = ScopeKind::model, .segments = {{0, kLength, kLength, 1}}, .excluded = {}, .P = kLength}; }

// The messages of a cohort. Every fifth is refused, one in seven says nothing.
struct SumCohort {
  std::vector<std::unique_ptr<Payload<float>>> payloads;
  std::vector<const Payload<float>*> messages;  // [M]
  std::vector<double> weights;                  // [M]
};

SumCohort cohort_of_sums(std::size_t clients, Positions positions) {
  SumCohort cohort;
  std::mt19937 random(static_cast<unsigned>(clients));
  std::normal_distribution<float> normal;
  for (std::size_t i = 0; i < clients; ++i) {
    Payload<float>& message = *cohort.payloads.emplace_back(std::make_unique<Payload<float>>());
    message.clear(kLength);
    message.silent = i % 7 == 3;
    message.positions = positions;
    std::vector<std::uint32_t> index;
    for (auto j = static_cast<std::uint32_t>(random() % 5); j < kLength; j += 1 + static_cast<std::uint32_t>(random() % 9))
      index.push_back(j);
    if (positions == Positions::all || message.silent) index.clear();
    message.index.resize_discard(index.size());
    std::ranges::copy(index, message.index.begin());
    message.value.resize_discard(message.silent ? 0 : positions == Positions::list ? message.index.size() : kLength);
    for (float& value : message.value) value = normal(random);
    message.num_sent = message.value.size();
    message.counts.resize_discard(positions == Positions::list ? 1 : 0);
    if (positions == Positions::list) message.counts[0] = static_cast<std::uint32_t>(index.size());
    const bool is_refused = clients > 1 && i % 5 == 1;
    cohort.messages.push_back(is_refused ? nullptr : &message);
    cohort.weights.push_back(is_refused ? 0 : 1 / (3.0 + static_cast<double>(i)));
  }
  return cohort;
}

bool is_same_sum(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

// Returns the sum in one pass over the clients, which has other bits than the tree if it has several leaves.
std::vector<double> sum_in_one_pass(const SumCohort& cohort) {
  std::vector<double> sum(kLength);
  accumulate<float>(cohort.messages, scope_of_sums(), cohort.weights, 0, kLength, sum.data());
  return sum;
}

// Each thread stands for a process: it has the messages of its group alone, and sends the bytes of its leaf.
std::vector<std::vector<std::byte>> leaves_of_threads(const SumCohort& cohort) {
  const std::size_t leaves = num_leaves(cohort.messages.size());
  std::vector<std::vector<std::byte>> sent(leaves);
  std::vector<std::thread> threads;
  for (std::size_t group = leaves; group-- > 0;)
    threads.emplace_back([&, group] {
      std::vector<const Payload<float>*> own(cohort.messages.size(), nullptr);
      for (std::size_t i = group * kSumGroup; i < std::min(own.size(), (group + 1) * kSumGroup); ++i) own[i] = cohort.messages[i];
      std::vector<double> sum(kLength, NAN);
      leaf<float>(group, own, cohort.weights, scope_of_sums(), sum);
      sent[group].resize(kLength * sizeof(double));
      std::memcpy(sent[group].data(), sum.data(), sent[group].size());
    });
  for (std::thread& thread : threads) thread.join();
  return sent;
}

std::vector<double> joined(const std::vector<std::vector<std::byte>>& leaves) {
  Workspace workspace;
  Workspace::Frame frame(workspace);
  SumTree tree(frame, leaves.size(), kLength);
  std::vector<double> leaf(kLength), sum(kLength, NAN);
  for (std::size_t group = 0; group < leaves.size(); ++group) {
    std::memcpy(leaf.data(), leaves[group].data(), leaves[group].size());
    tree.join(group, leaf);
  }
  tree.total(sum);
  return sum;
}

TEST(SumTree, LeavesOfOtherProcessesGiveTheAggregatorsBytes) {
  ThreadPool pool(3);
  for (const Positions positions : {Positions::all, Positions::list})
    for (const std::size_t clients : {std::size_t{1}, kSumGroup - 1, kSumGroup, kSumGroup + 1, 3 * kSumGroup + 2}) {
      const SumCohort cohort = cohort_of_sums(clients, positions);
      std::vector<double> sum(kLength, NAN);
      Aggregator<float>(pool).sum(cohort.messages, cohort.weights, scope_of_sums(), sum);
      EXPECT_TRUE(is_same_sum(joined(leaves_of_threads(cohort)), sum)) << clients << " clients";
      const bool is_one_pass = is_same_sum(sum_in_one_pass(cohort), sum);
      EXPECT_EQ(is_one_pass, clients <= kSumGroup + 1) << "a group of one client adds nothing to round";
      EXPECT_TRUE(std::ranges::any_of(sum, [](double s) { return s != 0; }));
    }
}

// The brackets of the tree, written out.
TEST(SumTree, JoinsLikeABinaryCounter) {
  Workspace workspace;
  for (std::size_t leaves = 0; leaves <= 9; ++leaves) {
    Workspace::Frame frame(workspace);
    SumTree tree(frame, leaves, 1);
    std::vector<double> x, total(1, NAN);
    for (std::size_t k = 0; k < leaves; ++k) {
      x.push_back(1 / (1.0 + static_cast<double>(k)));
      tree.join(k, std::span(&x.back(), 1));
    }
    tree.total(total);
    const auto pair = [&x](std::size_t k) { return x[k] + x[k + 1]; };
    const auto four = [&](std::size_t k) { return pair(k) + pair(k + 2); };
    const std::vector<double> expected = {
        0,
        x.empty() ? 0 : x[0],
        leaves == 2 ? pair(0) : 0,
        leaves == 3 ? pair(0) + x[2] : 0,
        leaves == 4 ? four(0) : 0,
        leaves == 5 ? four(0) + x[4] : 0,
        leaves == 6 ? four(0) + pair(4) : 0,
        leaves == 7 ? four(0) + (pair(4) + x[6]) : 0,
        leaves == 8 ? four(0) + four(4) : 0,
        leaves == 9 ? (four(0) + four(4)) + x[8] : 0,
    };
    EXPECT_EQ(std::bit_cast<std::uint64_t>(total[0]), std::bit_cast<std::uint64_t>(expected[leaves])) << leaves;
  }
}

TEST(SumTree, RefusesALeafOutOfItsOrder) {
  Workspace workspace;
  Workspace::Frame frame(workspace);
  SumTree tree(frame, 2, 3);
  const std::vector<double> leaf(3), shorter(2);
  std::vector<double> sum(3);
  EXPECT_THROW(tree.join(1, leaf), std::logic_error);
  EXPECT_THROW(tree.join(0, shorter), std::logic_error);
  tree.join(0, leaf);
  EXPECT_THROW(tree.join(0, leaf), std::logic_error);
  EXPECT_THROW(tree.total(sum), std::logic_error);
  tree.join(1, leaf);
  EXPECT_THROW(tree.join(2, leaf), std::logic_error);
  EXPECT_NO_THROW(tree.total(sum));
}

}  // namespace
}  // namespace fl
