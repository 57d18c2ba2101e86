// Tests the memory of a run: data once + clients x P x declared client slots + cohort in flight x P per double-buffered slot + a stated
// constant.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/run_scenario.hpp"

namespace fl {
namespace {

constexpr std::size_t kClients = 4000, kCohort = 400, kP = 113;

std::string scenario(const std::string& feedback) {
  return "name = 'memory'\nrounds = 3\nprecision = 'float64'\n[data]\nname = 'mushrooms'\n[partition]\nkind = 'shuffled'\nclients = 4000\n"
         "[model]\nkind = 'logistic_regression'\n[local]\nkind = 'gradient'\nlearning_rate = 0.1\n"
         "[compressor.up]\nkind = 'top_k'\nk = 5\n[feedback.up]\nkind = '" +
         feedback + "'\n[participation]\nkind = 'uniform'\nclients = 400\n[evaluate]\noptimum = false\n";
}

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t pages = 0;
  statm >> pages >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Returns the bytes of the clients' state, the server's state and the shared state.
std::size_t state_bytes(test::OneRun<double>& run) {
  return run->clients().size_bytes() + run->shared().size_bytes() + run->state().size_bytes();
}

TEST(Memory, StateIsClientsTimesSlotsPlusCohort) {
  const std::size_t row = kP * sizeof(double);
  test::OneRun<double> ef14(scenario("ef14"));
  EXPECT_EQ(state_bytes(ef14), (kClients + kCohort) * row);
  test::OneRun<double> ef21(scenario("ef21"));
  EXPECT_EQ(state_bytes(ef21), (kClients + 1) * row);  // one slot, and the server's mean
  test::OneRun<double> dgc(scenario("momentum_correction"));
  EXPECT_EQ(state_bytes(dgc), 2 * (kClients + kCohort) * row);
}

// Beside the state: sparse messages of the cohort, one block of vectors per thread, and the constant.
// Rows of 2 KiB and more begin on cache lines.
TEST(Memory, PaddingIsAtMostThreePercent) {
  for (std::size_t P = 1; P < 3000; ++P) {
    ASSERT_LE(static_cast<double>(aligned_stride<float>(P)), 1.0313 * static_cast<double>(P));
    ASSERT_LE(static_cast<double>(aligned_stride<double>(P)), 1.0313 * static_cast<double>(P));
    ASSERT_GE(aligned_stride<double>(P), P);
    if (P * sizeof(double) >= 2048) {
      ASSERT_EQ(aligned_stride<double>(P) * sizeof(double) % 64, 0u);
    }
  }
}

TEST(Memory, RoundsAllocateNothingThatGrowsWithClients) {
  constexpr std::size_t kConstant = 8u << 20;
  test::OneRun<double> run(scenario("ef14"));
  const std::size_t before = resident_bytes();
  run.play(1, 3);
  const std::size_t after_three = resident_bytes();
  run.play(4, 60);
  EXPECT_LT(after_three - before, state_bytes(run) + kConstant);
  EXPECT_LT(resident_bytes() - after_three, kConstant);
  EXPECT_LT(run->runner().size_bytes(), kCohort * 4 * 16 + 64 * kP * sizeof(double) + kConstant / 8);
}

}  // namespace
}  // namespace fl
