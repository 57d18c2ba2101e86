// Tests the memory of a GPU: refused requests, requests to the driver, and the reuse of memory.
#include "fl_core/memory/cuda/memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "fl_core/config/error.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/memory/device_memory.hpp"
#include "fl_core/memory/workspace.hpp"
#include "fl_core/message/payload.hpp"
#include "tests/emulator/card.hpp"
#include "tests/support/sanitized.hpp"

namespace fl {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::size_t kMega = std::size_t{1} << 20;
constexpr std::size_t kBytes = 200'000;

class GpuMemory : public testing::TestWithParam<Device> {};

TEST_P(GpuMemory, IsNeverMoreThanTheCardHas) {
  const std::size_t limit = emulator::taken_bytes() + 128 * kMega;
  const emulator::Card card(limit);
  std::vector<Buffer<std::byte>> held;
  std::string refusal;
  try {
    for (int i = 0; i < 1000; ++i) held.emplace_back(i % 2 == 0 ? kMega / 8 : 20 * kMega, GetParam());
  } catch (const DeviceError& error) {
    refusal = error.what();
  }
  EXPECT_THAT(refusal, AllOf(HasSubstr("out of memory on the GPU: "), HasSubstr("20971520 bytes were asked for, "), HasSubstr(" are free"),
                             HasSubstr("--block"), HasSubstr("--jobs"), HasSubstr("--state-memory")));
  EXPECT_GE(held.size(), 8u);
  EXPECT_LE(card.most_taken(), limit);
  EXPECT_LT(free_bytes_of(GetParam()), 20 * kMega);
  held.clear();
  EXPECT_GT(free_bytes_of(Device::cuda), 100 * kMega) << "what was given back can be taken again";
  EXPECT_NO_THROW(Buffer<std::byte>((GetParam() == Device::cuda ? 100 : 80) * kMega, GetParam()));
}

// Managed memory takes up to four fifths of the card's free bytes beside plain memory, and not a byte more, in pieces of any size.
TEST(GpuManagedMemory, IsNeverMoreThanFourFifthsOfWhatIsFree) {
  (void)free_bytes_of(Device::cuda);  // gives chunks back
  const cuda::MemoryUse before = cuda::memory_use();
  const std::size_t card_bytes = emulator::taken_bytes() + 512 * kMega, reserve = card_bytes / 32;
  const emulator::Card card(card_bytes);
  const Buffer<std::byte> plain(100 * kMega, Device::cuda);
  const std::size_t most = (512 * kMega - reserve - 100 * kMega + before.managed_bytes) / 5 * 4 - before.managed_bytes;
  EXPECT_NEAR(static_cast<double>(free_bytes_of(Device::managed)), static_cast<double>(most), 8);
  std::vector<Buffer<std::byte>> held;
  std::string refusal;
  try {
    for (int i = 0; i < 100'000; ++i) held.emplace_back(i % 3 == 0 ? kMega / 8 : 5 * kMega, Device::managed);
  } catch (const DeviceError& error) {
    refusal = error.what();
  }
  EXPECT_THAT(refusal, AllOf(HasSubstr("managed memory may take 80% of the "),
                             HasSubstr(" and " + std::to_string(cuda::memory_use().device_bytes) + " bytes of plain memory"),
                             HasSubstr(" bytes were asked for, "), HasSubstr("fedbits list feedbacks --device cuda")));
  const std::uint64_t managed = cuda::memory_use().managed_bytes - before.managed_bytes;
  EXPECT_LE(managed, most);
  EXPECT_GE(managed, most - 6 * kMega);
  EXPECT_NO_THROW(Buffer<std::byte>(50 * kMega, Device::cuda)) << "the rest is there for plain memory";
}

TEST_P(GpuMemory, IsZeroHoweverOftenItWasUsed) {
  for (int i = 0; i < 3; ++i)
    for (const std::size_t size : {1u, 255u, 4097u, 300'000u, 17u << 20}) {
      Buffer<std::uint8_t> buffer(size, GetParam());
      std::vector<std::uint8_t> here(size, 7);
      copy_bytes(here.data(), Device::cpu, buffer.data(), GetParam(), size);
      EXPECT_EQ(std::count(here.begin(), here.end(), 0), static_cast<std::ptrdiff_t>(size));
      std::ranges::fill(here, 7);
      copy_bytes(buffer.data(), GetParam(), here.data(), Device::cpu, size);
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GpuMemory, testing::Values(Device::cuda, Device::managed),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

TEST(GpuPool, AsksTheDriverSeldom) {
  std::vector<Payload<float>> messages(500);
  const std::size_t before = emulator::allocations();
  for (Payload<float>& message : messages) {
    message.place_on(Device::managed);
    message.counts.resize_discard(11);
    message.index.resize_discard(3000);
    message.value.resize_discard(3000);
    message.counts[10] = message.index[2999] = 7;  // both sides reach them
  }
  EXPECT_LT(emulator::allocations() - before, 25u);
  for (std::size_t i = 0; i < messages.size(); ++i)
    for (std::size_t j = i + 1; j < messages.size(); ++j) ASSERT_NE(messages[i].counts.data(), messages[j].counts.data());
}

TEST(GpuPool, CountsOfMessagesTakeNoneOfTheGpusMemory) {
  Payload<float> message;
  message.place_on(Device::managed);
  const cuda::MemoryUse before = cuda::memory_use();
  std::vector<Buffer<std::uint32_t>> held;
  for (int i = 0; i < 100; ++i) held.emplace_back(50'000, message.counts.device());
  EXPECT_EQ(cuda::memory_use().on_gpu(), before.on_gpu());
  EXPECT_GE(cuda::memory_use().pinned_bytes, 20'000'000u);
}

TEST(GpuPool, GivesNothingOutThatAStreamMayStillUse) {
  const DeviceStream stream(Device::cuda);
  const auto make = [] { return std::make_unique<Buffer<std::byte>>(kBytes, Device::pinned); };
  auto first = make();
  const auto begin = reinterpret_cast<std::uintptr_t>(first->data());
  const auto overlaps = [begin](const Buffer<std::byte>& other) {
    const auto at = reinterpret_cast<std::uintptr_t>(other.data());
    return at < begin + kBytes && begin < at + kBytes;
  };
  emulator::hold_streams(true);
  first.reset();
  std::vector<std::unique_ptr<Buffer<std::byte>>> others;
  for (int i = 0; i < 500; ++i) {  // more than there is
    others.push_back(make());
    ASSERT_FALSE(overlaps(*others.back()));
  }
  emulator::hold_streams(false);
  bool is_used_again = false;
  for (int i = 0; i < 500 && !is_used_again; ++i) {
    others.push_back(make());
    is_used_again = overlaps(*others.back());
  }
  EXPECT_TRUE(is_used_again);
}

TEST(GpuPool, NeighboursThatAreGivenBackBecomeOne) {
  const std::uint64_t before = cuda::memory_use().managed_bytes;
  for (int round = 0; round < 40; ++round) {  // each time a little more
    std::vector<Buffer<std::byte>> messages;
    for (int i = 0; i < 10; ++i) messages.emplace_back(50'000 + 5'000 * static_cast<std::size_t>(round), Device::managed);
  }
  EXPECT_LT(cuda::memory_use().managed_bytes - before, 8 * kMega) << "2.5 MB at a time";
}

#if FL_SANITIZED
TEST(GpuPoolDeathTest, BlocksHaveEndsThatTheSanitizerSees) {
  for (const std::size_t size : {100u, 256u, 4096u}) {
    Buffer<std::uint8_t> buffer(size, Device::managed), next(size, Device::managed);
    EXPECT_DEATH(buffer.data()[size] = 1, "use-after-poison") << size;
  }
}
#endif

// Such a GPU is used with plain memory alone.
TEST(GpuDevice, GivesNoManagedMemoryThatAHostThatRunsCannotShare) {
  (void)free_bytes_of(Device::cuda);
  EXPECT_EQ(cuda::why_no_device(), "");
  EXPECT_TRUE(cuda::shares_managed_memory());
  emulator::set_reaches_together(false);
  EXPECT_EQ(cuda::why_no_device(), "");
  EXPECT_FALSE(cuda::shares_managed_memory());
  EXPECT_NO_THROW(Buffer<int>(10, Device::cuda));
  EXPECT_NO_THROW(Buffer<int>(10, Device::pinned));
  try {
    const Buffer<std::byte> managed(20 * kMega, Device::managed);
    ADD_FAILURE() << "managed memory was given out";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("concurrentManagedAccess"), HasSubstr("20971520")));
  }
  emulator::set_reaches_together(true);
}

}  // namespace
}  // namespace fl
