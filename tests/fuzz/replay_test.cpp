// Replays the seeds of every fuzz target, also truncated and with single bits flipped, without libFuzzer.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/target.hpp"

namespace {

using Bytes = std::vector<std::byte>;

// Damaged copies are made at this many places of a seed, spread evenly.
constexpr std::size_t kPlaces = 256;

std::vector<Bytes> seeds_of(const fl::fuzz::Target& target) {
  std::vector<Bytes> seeds;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(FL_FUZZ_CORPUS) / target.name)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    const auto bytes = std::as_bytes(std::span(text));
    seeds.emplace_back(bytes.begin(), bytes.end());
  }
  std::ranges::sort(seeds);
  return seeds;
}

class FuzzReplayTest : public ::testing::TestWithParam<fl::fuzz::Target> {};

TEST_P(FuzzReplayTest, Seeds) {
  const std::vector<Bytes> seeds = seeds_of(GetParam());
  ASSERT_GE(seeds.size(), 3U) << "too few seeds in " << FL_FUZZ_CORPUS << '/' << GetParam().name;
  for (const Bytes& bytes : seeds) GetParam().run(bytes);
}

TEST_P(FuzzReplayTest, DamagedSeeds) {
  for (const Bytes& seed : seeds_of(GetParam())) {
    const std::size_t stride = 1 + seed.size() / kPlaces;
    for (std::size_t n = 0; n < seed.size(); n += stride) {
      GetParam().run(std::span(seed).first(n));
      Bytes flipped = seed;
      flipped[n] ^= std::byte(1U << (n % 8));
      GetParam().run(flipped);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzReplayTest, ::testing::ValuesIn(fl::fuzz::targets()),
                         [](const auto& test) { return std::string(test.param.name); });

// Every folder of seeds has its target: a misspelt name would replay nothing.
TEST(FuzzTargetsTest, EveryFolderOfSeedsHasATarget) {
  for (const auto& folder : std::filesystem::directory_iterator(FL_FUZZ_CORPUS)) {
    const std::string name = folder.path().filename();
#ifdef FL_WITHOUT_NET
    if (name.starts_with("net_")) continue;
#endif
    EXPECT_TRUE(std::ranges::any_of(fl::fuzz::targets(), [&](const auto& target) { return target.name == name; })) << name;
  }
}

}  // namespace
