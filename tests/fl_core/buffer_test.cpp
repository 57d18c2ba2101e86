#include "fl_core/memory/buffer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "fl_core/memory/workspace.hpp"

namespace fl {
namespace {

std::uintptr_t address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

TEST(Buffer, IsAlignedAndZeroOnBothSidesOfTheHugePageLimit) {
  for (const std::size_t bytes : {1u, 63u, 64u, 4097u, (2u << 20) - 1, 2u << 20, (2u << 20) + 1, (5u << 20) + 4095}) {
    Buffer<unsigned char> buffer(bytes);
    ASSERT_EQ(buffer.size(), bytes);
    EXPECT_EQ(address(buffer.data()) % 64, 0u) << bytes;
    if (bytes >= 2u << 20) {
      EXPECT_EQ(address(buffer.data()) % (2u << 20), 0u) << bytes;
    }
    EXPECT_EQ(std::accumulate(buffer.begin(), buffer.end(), 0u), 0u) << bytes;
    buffer[0] = buffer[bytes - 1] = 1;  // both ends can be written
  }
}

TEST(Buffer, NewMemoryIsZeroAfterUse) {
  for (const std::size_t count : {100u, 1u << 20}) {
    for (int i = 0; i < 3; ++i) {
      Buffer<double> buffer(count);
      for (const double x : buffer) ASSERT_EQ(x, 0.0);
      std::fill(buffer.begin(), buffer.end(), 7.0);
    }
  }
}

TEST(Buffer, GrowsWithItsContents) {
  Buffer<int> buffer(3);
  std::iota(buffer.begin(), buffer.end(), 1);
  buffer.resize_keep(1'000'000);
  EXPECT_EQ(buffer[0], 1);
  EXPECT_EQ(buffer[2], 3);
  EXPECT_EQ(buffer[999'999], 0);
  const int* before = buffer.data();
  buffer.resize_keep(5);
  EXPECT_EQ(buffer.size(), 5u);
  EXPECT_EQ(buffer.data(), before);
}

TEST(Buffer, MovesWithoutCopying) {
  Buffer<int> a(10);
  const int* memory = a.data();
  Buffer<int> b(std::move(a));
  EXPECT_EQ(b.data(), memory);
  EXPECT_EQ(b.size(), 10u);
  EXPECT_TRUE(Buffer<int>().empty());
  EXPECT_TRUE(Buffer<int>(0).empty());
}

TEST(Buffer, RefusesWhatNoMachineHas) { EXPECT_THROW((void)allocate_bytes(Device::cpu, SIZE_MAX - 10), std::bad_alloc); }

TEST(Workspace, GivesDistinctAlignedMemoryAndReusesIt) {
  Workspace workspace;
  std::vector<const void*> first;  // of each round; the second round may join chunks, from then on memory stays
  for (int round = 0; round < 4; ++round) {
    Workspace::Frame frame(workspace);
    auto* a = frame.take<double>(100);
    auto* b = frame.take<char>(1);
    auto* c = frame.take<float>(100'000);
    first.push_back(a);
    for (const void* p : {static_cast<void*>(a), static_cast<void*>(b), static_cast<void*>(c)}) EXPECT_EQ(address(p) % 64, 0u);
    EXPECT_GE(address(b), address(a + 100));
    std::fill(a, a + 100, 1.0);
    *b = 3;
    std::fill(c, c + 100'000, 2.0f);
    EXPECT_EQ(a[99], 1.0);
    EXPECT_EQ(*b, 3);
  }
  EXPECT_EQ(first[1], first[2]);
  EXPECT_EQ(first[2], first[3]);
}

TEST(Workspace, KeepsTheOuterFrameWhileAnInnerOneGrows) {
  Workspace workspace;
  Workspace::Frame outer(workspace);
  int* kept = outer.take<int>(1000);
  std::iota(kept, kept + 1000, 0);
  void* inner_memory = nullptr;
  {
    Workspace::Frame inner(workspace);
    auto* large = inner.take<std::uint64_t>(5'000'000);
    std::fill(large, large + 5'000'000, UINT64_MAX);
    inner_memory = large;
  }
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(kept[i], i);
  EXPECT_EQ(outer.take<std::uint64_t>(5'000'000), inner_memory);
}

TEST(Workspace, SettlesOnWhatARoundNeeds) {
  Workspace workspace;
  const auto round = [&] {
    Workspace::Frame frame(workspace);
    for (int i = 0; i < 10; ++i) (void)frame.take<char>(1'000'000);
  };
  round();
  EXPECT_LT(workspace.capacity_bytes(), 13'000'000u) << "on the way";
  round();
  const std::size_t settled = workspace.capacity_bytes();
  EXPECT_LT(settled, 12'000'000u);
  for (int i = 0; i < 100; ++i) round();
  EXPECT_EQ(workspace.capacity_bytes(), settled);
}

}  // namespace
}  // namespace fl
