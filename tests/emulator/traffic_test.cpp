// Tests the counting emulator on kernels with known traffic.
#include "tests/emulator/traffic.hpp"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <vector>

#include "bench/gpu_cohort.hpp"
#include "bench/gpu_counts.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/linalg.cuh"
#include "server/device_aggregation.hpp"

namespace fl {
namespace {

using emulator::Traffic;

constexpr unsigned kCountedThreads = 128;
constexpr unsigned kCountedBlocks = 6;
constexpr std::size_t kCounted = kCountedThreads * kCountedBlocks;

__global__ void copy_one_each(const float* from, float* to) { to[cuda::thread_index()] = from[cuda::thread_index()]; }
__global__ void copy_every_sixteenth(const float* from, float* to) { to[16 * cuda::thread_index()] = from[16 * cuda::thread_index()]; }
__global__ void read_the_same(const float* from, float* to) { to[cuda::thread_index()] = from[0] + from[7]; }
__global__ void through_shared_memory(const float* from, float* to) {
  __shared__ float room[kCountedThreads];
  float mine[4] = {};
  for (unsigned i = 0; i < 4; ++i) mine[i % 4] = from[cuda::thread_index()];
  room[threadIdx.x] = mine[threadIdx.x % 4];
  __syncthreads();
  to[cuda::thread_index()] = room[blockDim.x - 1 - threadIdx.x];
}
__global__ void add_in_place(float* to) { to[cuda::thread_index()] += 1; }
// Reads n numbers with one block, twice.
__global__ void read_twice(const float* from, std::size_t n, float* to) {
  float sum = 0;
  for (std::size_t i = threadIdx.x; i < n; i += blockDim.x) sum += from[i];
  __syncthreads();
  for (std::size_t i = threadIdx.x; i < n; i += blockDim.x) sum += from[i];
  to[threadIdx.x] = sum;
}

class TrafficTest : public testing::Test {
 protected:
  void SetUp() override { (void)emulator::take_traffic(); }
  template <class... P, class... A>
  Traffic run(void (*kernel)(P...), unsigned blocks, A... arguments) {
    emulator::do_or_record(emulator::work_of("counted", kernel, blocks, kCountedThreads, 0, arguments...));
    return emulator::take_traffic()["counted"];
  }
  Buffer<float> from_{32 * kCounted, Device::cuda}, to_{32 * kCounted, Device::managed};
};

TEST_F(TrafficTest, ACoalescedCopyMovesWhatItAsksFor) {
  const Traffic traffic = run(copy_one_each, kCountedBlocks, from_.data(), to_.data());
  EXPECT_EQ(traffic.launches, 1U);
  EXPECT_EQ(traffic.requested_read, 4 * kCounted);
  EXPECT_EQ(traffic.requested_written, 4 * kCounted);
  EXPECT_EQ(traffic.moved_read, 4 * kCounted);
  EXPECT_EQ(traffic.moved_written, 4 * kCounted);
  EXPECT_EQ(traffic.distinct(), 8 * kCounted);
}

TEST_F(TrafficTest, AStrideMovesASectorForEachNumber) {
  const Traffic traffic = run(copy_every_sixteenth, kCountedBlocks, from_.data(), to_.data());
  EXPECT_EQ(traffic.requested(), 8 * kCounted);
  EXPECT_EQ(traffic.moved_read, emulator::kSectorBytes * kCounted);
  EXPECT_EQ(traffic.moved_written, emulator::kSectorBytes * kCounted);
}

TEST_F(TrafficTest, WhatAllThreadsReadIsMovedOnceForEachBlock) {
  const Traffic traffic = run(read_the_same, kCountedBlocks, from_.data(), to_.data());
  EXPECT_EQ(traffic.requested_read, 8 * kCounted);
  EXPECT_EQ(traffic.moved_read, emulator::kSectorBytes * kCountedBlocks);
  EXPECT_EQ(traffic.distinct_read, emulator::kSectorBytes);
  EXPECT_EQ(traffic.moved_written, 4 * kCounted);
}

TEST_F(TrafficTest, SharedMemoryAndAThreadsOwnAreNotCounted) {
  const Traffic traffic = run(through_shared_memory, kCountedBlocks, from_.data(), to_.data());
  EXPECT_EQ(traffic.moved_read, 4 * kCounted);
  EXPECT_EQ(traffic.moved_written, 4 * kCounted);
  EXPECT_EQ(traffic.requested_written, 4 * kCounted);
}

TEST_F(TrafficTest, WhatIsReadAndWrittenInPlaceCountsAsBoth) {
  const Traffic traffic = run(add_in_place, kCountedBlocks, to_.data());
  EXPECT_EQ(traffic.moved_read, 4 * kCounted);
  EXPECT_EQ(traffic.moved_written, 4 * kCounted);
}

TEST_F(TrafficTest, ABlockKeepsLittleAndReadsMuchAgain) {
  const std::size_t few = emulator::kKeptBytes / sizeof(float), many = 12 * kCounted;
  ASSERT_GT(many, few);
  EXPECT_EQ(run(read_twice, 1, from_.data(), few, to_.data()).moved_read, 4 * few);
  const Traffic traffic = run(read_twice, 1, from_.data(), many + few, to_.data());
  EXPECT_EQ(traffic.moved_read, 2 * 4 * (many + few));
  EXPECT_EQ(traffic.distinct_read, 4 * (many + few));
}

TEST_F(TrafficTest, CopiesAndClearingCountAndTheHostsMemoryDoesNot) {
  std::vector<float> here(kCounted);
  FL_CUDA_CHECK(cudaMemcpyAsync(to_.data(), from_.data(), 4 * kCounted, cudaMemcpyDefault, nullptr));
  FL_CUDA_CHECK(cudaMemcpyAsync(here.data(), from_.data(), 4 * kCounted, cudaMemcpyDefault, nullptr));
  FL_CUDA_CHECK(cudaMemsetAsync(to_.data(), 0, 4 * kCounted, nullptr));
  auto counted = emulator::take_traffic();
  EXPECT_EQ(counted["cudaMemcpyAsync"].moved_read, 2 * 4 * kCounted);
  EXPECT_EQ(counted["cudaMemcpyAsync"].moved_written, 4 * kCounted);
  EXPECT_EQ(counted["cudaMemsetAsync"].moved_written, 4 * kCounted);
}

// The stages of a transform of 65,536 numbers go together in two passes. Each pass reads and writes all numbers.
TEST_F(TrafficTest, AWalshHadamardTransformTakesFewPasses) {
  constexpr std::size_t n = 1 << 16;
  Buffer<float> x(n, Device::cuda);
  Exec exec;
  exec.device = Device::cuda;
  (void)emulator::take_traffic();
  cuda::hadamard_rows(exec, x.data(), 1, n);
  const Traffic traffic = emulator::take_traffic()["hadamard_rows"];
  EXPECT_EQ(traffic.launches, 2U);
  EXPECT_EQ(traffic.moved_read, 2 * sizeof(float) * n);
  EXPECT_EQ(traffic.moved_written, 2 * sizeof(float) * n);
}

// A kernel that reads more than it did changes the rows of bench/gpu_counts.inc, which are then counted again. Two clients are enough.
TEST_F(TrafficTest, TheCountsThatTimesArePredictedFromHold) {
  bench::Cohort cohort(2, 200000);
  for (const bench::Operator& one : bench::compressed_rows()) {
    if (one.kind == "drive" || one.kind == "dgc_sampled" || one.bucket == 100000)
      continue;  // depend on the number of parameters, or on chance
    const auto op = bench::make(one);
    const Scope scope = bench::scope_of(*op, one, cohort.P);
    for (int warm = 0; warm < 3; ++warm) cohort.compress(*op, scope);
    cohort.restore();
    (void)emulator::take_traffic();
    cohort.compress(*op, scope);
    std::uint64_t moved = 0;
    for (const auto& [name, traffic] : emulator::take_traffic()) moved += traffic.moved();
    const double expected = bench::counted_row("operators", one.label)->moved;
    EXPECT_NEAR(static_cast<double>(moved) / cohort.entries(), expected, 0.05 * expected) << one.label;
  }
}

// Whatever the number of clients, the same number of kernels is started. Two clients, then five. Thresholds are corrected as often as the
// data ask for, so that there are none of these.
TEST_F(TrafficTest, KernelsAreStartedForAllClientsTogether) {
  for (bench::Operator one : bench::compressed_rows()) {
    if (one.kind == "dgc_sampled") one.settings.emplace_back("rounds", Value{std::int64_t{0}});
    std::uint64_t launches[2] = {};
    for (const std::uint32_t K : {2u, 5u}) {
      bench::Cohort cohort(K, 30000);
      const auto op = bench::make(one);
      cohort.restore();
      (void)emulator::take_traffic();
      cohort.compress(*op, bench::scope_of(*op, one, cohort.P));
      for (const auto& [name, traffic] : emulator::take_traffic())
        if (!name.starts_with("cuda")) launches[K == 5 ? 1 : 0] += traffic.launches;
    }
    EXPECT_EQ(launches[0], launches[1]) << one.label;
  }
}

// Sums of messages move some bytes beyond the messages: descriptions of the messages, sectors that two parts share, and a search. Sums of
// groups of clients stay on the chip.
TEST_F(TrafficTest, SumsOfMessagesMoveLittleMoreThanTheMessages) {
  bench::Cohort cohort(2 * kSumGroup, 50000);
  const auto sums = make_device_aggregation<float>();
  const std::vector<double> weights(cohort.K, 1.0 / cohort.K);
  std::vector<double> sum(cohort.P);
  for (const bench::Operator& one : bench::summed_rows()) {
    const auto op = bench::make(one);
    const Scope scope = bench::scope_of(*op, one, cohort.P);
    cohort.restore();
    cohort.compress(*op, scope);
    ASSERT_TRUE(sums->sum(cohort.messages(), weights, scope, sum));
    (void)emulator::take_traffic();
    ASSERT_TRUE(sums->sum(cohort.messages(), weights, scope, sum));
    std::uint64_t moved = 0;
    for (const auto& [name, traffic] : emulator::take_traffic()) moved += traffic.moved();
    const double floor = one.bytes + 2.0 * sizeof(double) / cohort.K, most = one.bytes < 1 ? 1.25 : 1.06;
    EXPECT_LE(static_cast<double>(moved) / cohort.entries(), most * floor) << one.label;
  }
}

}  // namespace
}  // namespace fl
