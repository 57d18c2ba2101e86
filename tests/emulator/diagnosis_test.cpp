// Tests what FEDBITS_CUDA_POOL=off and FEDBITS_CUDA_DELAY let an emulated GPU show: writes beyond a block, reads of what nobody wrote, and
// work that does not wait for what it needs. ctest runs the tests WithoutPool in a process whose environment says so; elsewhere they are
// skipped.
#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "fl_core/config/error.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/memory/cuda/memory.hpp"
#include "fl_core/memory/device_memory.hpp"
#include "fl_core/memory/workspace.hpp"
#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/graph.hpp"
#include "fl_core/ops/cuda/upload_ring.hpp"
#include "tests/emulator/streams.hpp"
#include "tests/support/sanitized.hpp"

namespace fl {
namespace {

using testing::HasSubstr;

__global__ void set_numbers(std::uint32_t* x, std::size_t n, std::uint32_t value) {
  for (std::size_t i = cuda::thread_index(); i < n; i += cuda::num_threads()) x[i] = value;
}
__global__ void add_one(const std::uint32_t* x, std::uint32_t* y, std::size_t n) {
  for (std::size_t i = cuda::thread_index(); i < n; i += cuda::num_threads()) y[i] = x[i] + 1;
}

Exec on(const DeviceStream& stream) {
  Exec exec;
  exec.device = Device::cuda;
  exec.stream = stream.get();
  return exec;
}

// Streams are late while this lives.
class Late {
 public:
  explicit Late(std::uint64_t seed) { emulator::set_late(seed); }
  ~Late() { emulator::set_late({}); }
  Late(const Late&) = delete;
  Late& operator=(const Late&) = delete;
};

class LateStreams : public testing::TestWithParam<std::uint64_t> {
 protected:
  Late late_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Seeds, LateStreams, testing::Range<std::uint64_t>(1, 9));

// Uploads of vectors that are gone, or written again, by the time at which the stream comes to them.
TEST_P(LateStreams, AnUploadHasReadItsSourceWhenItReturns) {
  constexpr std::size_t kUploads = 300, kNumbers = 257;  // several times the ring
  static_assert(kUploads * kNumbers * sizeof(std::uint32_t) > 4 * cuda::UploadRing::kBytes);
  const DeviceStream stream(Device::cuda);
  Buffer<std::uint32_t> there(kUploads * kNumbers, Device::cuda);
  std::vector<std::uint32_t> expected;
  for (std::uint32_t i = 0; i < kUploads; ++i) {
    std::vector<std::uint32_t> here(kNumbers);
    std::iota(here.begin(), here.end(), 1000 * i);
    upload_bytes(there.data() + i * kNumbers, here.data(), kNumbers * sizeof(std::uint32_t), stream.get());
    expected.insert(expected.end(), here.begin(), here.end());
    here.assign(kNumbers, 7);
  }
  std::vector<std::uint32_t> found(expected.size());
  copy_bytes(found.data(), Device::cpu, there.data(), Device::cuda, found.size() * sizeof(std::uint32_t), stream.get());
  EXPECT_EQ(found, expected);
}

TEST_P(LateStreams, AnUploadMayBeLargerThanTheRing) {
  const DeviceStream stream(Device::cuda);
  std::vector<std::uint32_t> here(3 * cuda::UploadRing::kBytes / sizeof(std::uint32_t) + 5), found(here.size());
  std::iota(here.begin(), here.end(), 0);
  const std::vector<std::uint32_t> expected = here;
  Buffer<std::uint32_t> there(here.size(), Device::cuda);
  upload_bytes(there.data(), here.data(), here.size() * sizeof(std::uint32_t), stream.get());
  here.assign(here.size(), 7);
  copy_bytes(found.data(), Device::cpu, there.data(), Device::cuda, found.size() * sizeof(std::uint32_t), stream.get());
  EXPECT_EQ(found, expected);
}

// Copies of the CUDA runtime, without the upload ring, read pageable memory late: the ring is there because of it.
TEST(Emulator, ALateStreamReadsPageableMemoryLate) {
  constexpr std::uint32_t kBefore = 3, kAfter = 7;
  int late = 0;
  for (std::uint64_t seed = 1; seed < 9; ++seed) {
    const Late streams(seed);
    const DeviceStream stream(Device::cuda);
    const Buffer<std::uint32_t> there(1, Device::cuda);
    std::uint32_t here = kBefore, found = 0;
    (void)cudaMemcpyAsync(const_cast<std::uint32_t*>(there.data()), &here, sizeof here, cudaMemcpyHostToDevice, stream.get());
    here = kAfter;
    copy_bytes(&found, Device::cpu, there.data(), Device::cuda, sizeof found, stream.get());
    if (found == kAfter) ++late;
  }
  EXPECT_GT(late, 0);
}

// A stream reads what another one writes, without waiting for it: some order of the streams shows it.
TEST(Emulator, LateStreamsShowWhoForgotToWait) {
  constexpr std::size_t kNumbers = 100;
  int wrong = 0, wrong_with_a_wait = 0;
  for (std::uint64_t seed = 1; seed < 9; ++seed) {
    for (const bool waits : {false, true}) {
      const Late streams(seed);
      const DeviceStream writer(Device::cuda), reader(Device::cuda);
      Buffer<std::uint32_t> x(kNumbers, Device::cuda), y(kNumbers, Device::cuda);
      cuda::Launch(on(writer), "set_numbers", 1)(set_numbers, x.data(), kNumbers, 41u);
      if (waits) synchronise(Device::cuda, writer.get());
      cuda::Launch(on(reader), "add_one", 1)(add_one, x.data(), y.data(), kNumbers);
      std::vector<std::uint32_t> found(kNumbers);
      copy_bytes(found.data(), Device::cpu, y.data(), Device::cuda, found.size() * sizeof(std::uint32_t), reader.get());
      if (found != std::vector<std::uint32_t>(kNumbers, 42)) ++(waits ? wrong_with_a_wait : wrong);
      synchronise(Device::cuda, writer.get());  // the sanitizer takes a block that was given back for one that nobody uses any more
    }
  }
  EXPECT_GT(wrong, 0);
  EXPECT_EQ(wrong_with_a_wait, 0);
}

TEST(GpuUploads, AreNotRecorded) {
  const DeviceStream stream(Device::cuda);
  const Buffer<int> there(1, Device::cuda);
  cuda::RepeatedWork repeated;
  const std::uint64_t key = 1;
  int here = 0, found = 0;
  for (; here < 5; ++here) {
    repeated.run(on(stream), std::span(&key, 1), [&] { upload_bytes(const_cast<int*>(there.data()), &here, sizeof here, stream.get()); });
    copy_bytes(&found, Device::cpu, there.data(), Device::cuda, sizeof found, stream.get());
    EXPECT_EQ(found, here);
  }
  EXPECT_EQ(repeated.repeats(), 0u);
}

class WithoutPool : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda::pools_memory()) GTEST_SKIP() << "FEDBITS_CUDA_POOL is not off; ctest sets it in emulator/without_pool";
  }
};

TEST_F(WithoutPool, BlocksAreAllocationsOfTheirOwn) {
  const cuda::MemoryUse before = cuda::memory_use();
  {
    const Buffer<std::byte> small(100, Device::cuda), other(200, Device::managed), pinned(300, Device::pinned);
    EXPECT_EQ(cuda::memory_use().device_bytes - before.device_bytes, 100u);
    EXPECT_EQ(cuda::memory_use().managed_bytes - before.managed_bytes, 200u);
    EXPECT_EQ(cuda::memory_use().pinned_bytes - before.pinned_bytes, 300u);
  }
  EXPECT_EQ(cuda::memory_use().on_gpu(), before.on_gpu());
}

#if !FL_SANITIZED
// Planted: a kernel that writes one number more than there is room for.
TEST_F(WithoutPool, AWriteBeyondABlockIsAFault) {
  const DeviceStream stream(Device::cuda);
  for (const Device kind : {Device::cuda, Device::managed}) {
    Buffer<std::uint32_t> x(100, kind);
    EXPECT_NO_THROW(cuda::Launch(on(stream), "set_numbers", 1)(set_numbers, x.data(), std::size_t{100}, 1u));
    try {
      cuda::Launch(on(stream), "set_numbers", 1)(set_numbers, x.data(), std::size_t{101}, 1u);
      ADD_FAILURE() << "the write was not found";
    } catch (const std::exception& fault) {
      EXPECT_THAT(fault.what(), HasSubstr("set_numbers wrote beyond the end of a block of 400 bytes"));
    }
  }
  Workspace workspace(Device::cuda);
  Workspace::Frame frame(workspace);
  auto* scratch = frame.take<std::uint32_t>(10);
  (void)frame.take<std::uint32_t>(10);
  EXPECT_THROW(cuda::Launch(on(stream), "set_numbers", 1)(set_numbers, scratch, std::size_t{11}, 1u), std::exception);
}
#endif

// Planted: a read of scratch memory that nobody wrote. Pooled memory is zero there, or holds results of the step before.
TEST_F(WithoutPool, ScratchMemoryIsNeitherZeroNorUsedAgain) {
  constexpr std::size_t kNumbers = 50;
  const DeviceStream stream(Device::cuda);
  Workspace workspace(Device::cuda);
  Buffer<std::uint32_t> y(kNumbers, Device::cuda);
  for (int step = 0; step < 3; ++step) {
    Workspace::Frame frame(workspace);
    auto* scratch = frame.take<std::uint32_t>(kNumbers);
    cuda::Launch(on(stream), "add_one", 1)(add_one, scratch, y.data(), kNumbers);
    std::vector<std::uint32_t> found(kNumbers);
    copy_bytes(found.data(), Device::cpu, y.data(), Device::cuda, found.size() * sizeof(std::uint32_t), stream.get());
    for (const std::uint32_t number : found) {
      EXPECT_NE(number, 1u) << "the memory was zero";
      EXPECT_NE(number, 6u) << "the memory of the step before was used again";
    }
    cuda::Launch(on(stream), "set_numbers", 1)(set_numbers, scratch, kNumbers, 5u);
  }
}

}  // namespace
}  // namespace fl
