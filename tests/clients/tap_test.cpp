// Tests that a tap is given the messages of each block, and that the bytes it keeps stay as they are while later rounds are played.
#include <gtest/gtest.h>

#include <mutex>

#include "tests/support/run_scenario.hpp"

namespace fl {
namespace {

constexpr std::uint32_t kClients = 8, kBlock = 3, kRounds = 3;

std::string scenario() {
  return "name = 'tap'\nrounds = 3\n[data]\nkind = 'synthetic'\nclients = 8\nfeatures = 9\nclasses = 2\n[partition]\nkind = 'natural'\n"
         "clients = 8\n[model]\nkind = 'logistic_regression'\nl2 = 'L/100'\n[compressor.up]\nkind = 'top_k'\nk = 5\n[evaluate]\nevery = "
         "1\n";
}

class TapTest : public testing::TestWithParam<int> {};

TEST_P(TapTest, GetsTheMessagesOfEachBlockAndMayKeepThem) {
  test::OneRun<double> run(scenario(), {.threads = GetParam(), .block = kBlock, .materialise = true});
  struct Kept {
    std::shared_ptr<const std::vector<std::byte>> bytes;
    std::vector<std::byte> copy;
  };
  std::mutex mutex;
  std::vector<Kept> kept;
  std::vector<std::size_t> sizes;
  std::vector<std::uint32_t> clients;
  run->runner().set_tap([&](const ClientRound<double>&, int, std::span<const ClientMessage<double>> messages, auto bytes) {
    const std::lock_guard lock(mutex);
    sizes.push_back(messages.size());
    for (std::size_t i = 0; i < messages.size(); ++i) {
      clients.push_back(messages[i].client);
      ASSERT_EQ(bytes[i]->data(), messages[i].encoded.data());
      kept.push_back({bytes[i], *bytes[i]});
    }
  });
  for (std::uint32_t round = 1; round <= kRounds; ++round) {
    sizes.clear();
    clients.clear();
    run.play(round, round);
    std::ranges::sort(sizes);
    std::ranges::sort(clients);
    EXPECT_EQ(sizes, (std::vector<std::size_t>{kClients % kBlock, kBlock, kBlock}));
    EXPECT_EQ(clients, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  }
  ASSERT_EQ(kept.size(), kClients * kRounds);
  for (const Kept& one : kept) EXPECT_EQ(*one.bytes, one.copy);
  EXPECT_NE(kept[0].copy, kept[kClients].copy) << "two rounds have different messages, or the test shows nothing";
}

INSTANTIATE_TEST_SUITE_P(Threads, TapTest, testing::Values(1, 3));

}  // namespace
}  // namespace fl
