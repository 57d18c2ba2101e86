// Tests the closed forms of collectives.
#include "timing/collectives.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace fl {
namespace {

std::vector<ClientTimes> workers(const std::vector<double>& bits, double rate, double latency_s) {
  std::vector<ClientTimes> clients;
  for (const double b : bits) clients.push_back({.up_bits = b, .link = {.down = 2 * rate, .up = rate, .latency_s = latency_s}});
  return clients;
}

TEST(Collectives, ARingSendsTwiceTheShareOfTheOthers) {
  for (const std::size_t n : {2U, 3U, 8U, 100U}) {
    const CollectiveSizes sizes = collective_sizes(workers(std::vector<double>(n, 1e6), 1e5, 0));
    const auto count = static_cast<double>(n);
    EXPECT_NEAR(ring_all_reduce_s(sizes), 2 * (count - 1) / count * 10, 1e-12 * 20) << n;
  }
  const CollectiveSizes late = collective_sizes(workers({1e6, 1e6, 1e6, 1e6}, 1e5, 0.5));
  EXPECT_NEAR(ring_all_reduce_s(late), 2 * 3 * 0.5 + 15, 1e-12);
}

TEST(Collectives, ATreeGoesUpAndDown) {
  const CollectiveSizes sizes = collective_sizes(workers({1e6, 1e6, 1e6, 1e6, 1e6}, 1e5, 0.5));
  EXPECT_NEAR(tree_all_reduce_s(sizes), 2 * 3 * (0.5 + 10), 1e-12);
}

TEST(Collectives, AllGatherBringsEveryMessageOfTheOthers) {
  const CollectiveSizes sizes = collective_sizes(workers({1e6, 2e6, 3e6}, 1e6, 0.25));
  EXPECT_NEAR(all_gather_s(sizes), 2 * 0.25 + 5, 1e-12);
}

TEST(Collectives, TheSlowestLinkCounts) {
  std::vector<ClientTimes> clients = workers({1e6, 1e6}, 1e6, 0.1);
  clients[1].link = {.down = 1e5, .up = 1e6, .latency_s = 0.3, .loss = 0.5};
  const CollectiveSizes sizes = collective_sizes(clients);
  EXPECT_EQ(sizes.rate, 5e4);
  EXPECT_EQ(sizes.latency_s, 0.3);
}

TEST(Collectives, OneWorkerHasNobodyToTalkTo) {
  const CollectiveSizes sizes = collective_sizes(workers({1e6}, 1e6, 0.1));
  EXPECT_EQ(ring_all_reduce_s(sizes) + tree_all_reduce_s(sizes) + all_gather_s(sizes), 0);
}

}  // namespace
}  // namespace fl
