// Tests the emulator itself: waiting, warp operations, the order of threads, and kernels that would hang.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "fl_core/memory/buffer.hpp"
#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/scan.cuh"
#include "fl_core/ops/cuda/sort.cuh"
#include "tests/support/sanitized.hpp"

namespace fl {
namespace {

using emulator::Fault;
using emulator::Order;

constexpr unsigned kThreads = 256;

// Each thread writes, waits, and reads what another one wrote.
__global__ void reverse(const int* in, int* out) {
  __shared__ int room[kThreads];
  room[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = room[blockDim.x - 1 - threadIdx.x];
}
// The same without waiting.
__global__ void reverse_in_a_hurry(const int* in, int* out) {
  __shared__ int room[kThreads];
  room[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  out[blockIdx.x * blockDim.x + threadIdx.x] = room[blockDim.x - 1 - threadIdx.x];
}

std::vector<int> run(void (*kernel)(const int*, int*), Order order) {
  std::vector<int> in(3 * kThreads), out(in.size());
  std::iota(in.begin(), in.end(), 0);
  emulator::set_order(order);
  emulator::launch(kernel, 3, kThreads, 0, in.data(), out.data());
  emulator::set_order(Order::ascending);
  return out;
}

TEST(Emulator, ThreadsOfABlockWaitForEachOther) {
  const std::vector<int> out = run(reverse, Order::ascending);
  for (int b = 0; b < 3; ++b)
    for (int t = 0; t < static_cast<int>(kThreads); ++t)
      ASSERT_EQ(out[static_cast<std::size_t>(b * static_cast<int>(kThreads) + t)], (b + 1) * static_cast<int>(kThreads) - 1 - t);
  EXPECT_EQ(run(reverse, Order::descending), out);
}

TEST(Emulator, TheOrderOfThreadsShowsWhoForgotToWait) {
  EXPECT_NE(run(reverse_in_a_hurry, Order::ascending), run(reverse_in_a_hurry, Order::descending));
}

__global__ void block_sums(const unsigned* in, unsigned* before, unsigned* all) {
  __shared__ unsigned room[32];
  unsigned sum = 0;
  before[threadIdx.x] = cuda::block_exclusive_sum(in[threadIdx.x], room, sum);
  all[threadIdx.x] = sum;
}

TEST(Emulator, AWarpsLanesReadEachOther) {
  std::vector<unsigned> in(kThreads), before(kThreads), all(kThreads);
  for (unsigned t = 0; t < kThreads; ++t) in[t] = t * t % 17;
  for (const Order order : {Order::ascending, Order::descending}) {
    emulator::set_order(order);
    emulator::launch(block_sums, 1, kThreads, 0, in.data(), before.data(), all.data());
    unsigned sum = 0;
    for (unsigned t = 0; t < kThreads; ++t) {
      ASSERT_EQ(before[t], sum);
      sum += in[t];
    }
    EXPECT_EQ(all, std::vector<unsigned>(kThreads, sum));
  }
  emulator::set_order(Order::ascending);
}

__global__ void shuffles(int* out) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  int* mine = out + threadIdx.x * 6;
  mine[0] = __shfl_up_sync(0xFFFFFFFFu, lane, 3);
  mine[1] = __shfl_down_sync(0xFFFFFFFFu, lane, 5, 16);
  mine[2] = __shfl_xor_sync(0xFFFFFFFFu, lane, 6);
  mine[3] = __shfl_sync(0xFFFFFFFFu, lane, 18, 8);
  mine[4] = static_cast<int>(__ballot_sync(0xFFFFFFFFu, lane % 3 == 0));
  mine[5] = static_cast<int>(__reduce_add_sync(0xFFFFFFFFu, static_cast<unsigned>(lane)));
}

TEST(Emulator, ShufflesAreCudas) {
  std::vector<int> out(6 * 64);
  emulator::launch(shuffles, 1, 64, 0, out.data());
  for (int t = 0; t < 64; ++t) {
    const int lane = t % 32, *mine = out.data() + t * 6;
    EXPECT_EQ(mine[0], lane < 3 ? lane : lane - 3);
    EXPECT_EQ(mine[1], lane % 16 + 5 < 16 ? lane + 5 : lane);
    EXPECT_EQ(mine[2], lane ^ 6);
    EXPECT_EQ(mine[3], lane / 8 * 8 + 2);
    EXPECT_EQ(static_cast<unsigned>(mine[4]), 0x49249249u);
    EXPECT_EQ(mine[5], 496);
  }
}

__global__ void half_waits_for_the_warp(int*) {
  if (threadIdx.x < 16)
    __syncwarp();
  else
    __syncthreads();
}
__global__ void a_lane_leaves(int* out) {
  if (threadIdx.x == 7) return;
  out[threadIdx.x] = __shfl_sync(0xFFFFFFFFu, 1, 0);
}
__global__ void lanes_disagree(int* out) {
  out[threadIdx.x] = threadIdx.x % 2 == 0 ? __any_sync(0xFFFFFFFFu, 1) : __shfl_sync(0xFFFFFFFFu, 1, 0);
}

TEST(Emulator, WhatWouldHangOrIsUndefinedIsAFault) {
  std::vector<int> out(64);
  EXPECT_THROW(emulator::launch(half_waits_for_the_warp, 1, 64, 0, out.data()), Fault);
  EXPECT_THROW(emulator::launch(a_lane_leaves, 1, 64, 0, out.data()), Fault);
  EXPECT_THROW(emulator::launch(lanes_disagree, 1, 64, 0, out.data()), Fault);
  EXPECT_EQ(run(reverse, Order::ascending)[0], static_cast<int>(kThreads) - 1);  // and the next kernel runs
}

#if !FL_SANITIZED
TEST(EmulatorDeathTest, TheHostMayNotTouchDeviceMemory) {
  const Buffer<int> there(10, Device::cuda), both(10, Device::managed);
  EXPECT_EQ(both[3], 0);
  int here = 1;
  copy_bytes(&here, Device::cpu, there.data() + 3, Device::cuda, sizeof here, nullptr);
  EXPECT_EQ(here, 0);
  EXPECT_EXIT(exit(there[3]), testing::KilledBySignal(SIGSEGV), "");
}
#endif

TEST(Emulator, SortingAndScanningAreCubs) {
  Workspace workspace(Device::cuda);
  Exec exec;
  exec.device = Device::cuda;
  exec.workspace = &workspace;
  std::vector<float> x = {3, -1, 0.0f, -0.0f, 2, 7, -8, 5};
  cuda::sort_rows(exec, x.data(), 2, 4);
  EXPECT_EQ(x, (std::vector<float>{-1, -0.0f, 0.0f, 3, -8, 2, 5, 7}));
  EXPECT_TRUE(std::signbit(x[1]) && !std::signbit(x[2]));
  // Many short rows are sorted side by side.
  constexpr std::size_t kRows = 40, kLength = 33;
  std::vector<double> rows, expected;
  for (std::size_t i = 0; i < kRows * kLength; ++i) rows.push_back(static_cast<double>(i * 7919 % 1009) - 500);
  expected = rows;
  for (std::size_t k = 0; k < kRows; ++k) std::sort(expected.begin() + k * kLength, expected.begin() + (k + 1) * kLength);
  cuda::sort_rows(exec, rows.data(), kRows, kLength);
  EXPECT_EQ(rows, expected);
  const std::vector<std::uint32_t> counts = {4, 0, 2, 9};
  std::vector<std::uint32_t> before(4);
  EXPECT_EQ(cuda::exclusive_scan(exec, counts.data(), 4, before.data()), 15U);
  EXPECT_EQ(before, (std::vector<std::uint32_t>{0, 4, 4, 6}));
}

}  // namespace
}  // namespace fl
