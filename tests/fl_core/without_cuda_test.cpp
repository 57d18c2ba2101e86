// Tests that a build without CUDA reports this at every request for a GPU, and does not report the GPU as busy instead. Builds with CUDA
// leave this file out (tests/CMakeLists.txt).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fl_core/config/error.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/memory/cuda/memory.hpp"
#include "fl_core/memory/device_memory.hpp"
#include "fl_core/ops/row_moves.hpp"

namespace fl {
namespace {

// Returns the text of the DeviceError that a call has to throw.
template <class Call>
std::string refusal_without_cuda(const Call& call) {
  try {
    call();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "no DeviceError";
}

TEST(WithoutCuda, EveryUseOfAGpuSaysThatTheBuildHasNone) {
  const auto says_so = testing::HasSubstr("this build has no CUDA: configure with -DFL_CUDA=ON");
  float x = 0;
  EXPECT_THAT(refusal_without_cuda([] { const Buffer<float> buffer(4, Device::cuda); }), says_so);
  EXPECT_THAT(refusal_without_cuda([] { const Buffer<float> buffer(4, Device::managed); }), says_so);
  EXPECT_THAT(refusal_without_cuda([&] { copy_bytes(&x, Device::cuda, &x, Device::cpu, sizeof(x)); }), says_so);
  EXPECT_THAT(refusal_without_cuda([&] { upload_bytes(&x, &x, sizeof(x), nullptr); }), says_so);
  EXPECT_THAT(refusal_without_cuda([] { const DeviceStream stream(Device::cuda); }), says_so);
  EXPECT_THAT(refusal_without_cuda([&] { clear_entries(Exec{.device = Device::cuda}, shared_view<float>(&x, 1, 1), 0, 1); }), says_so);
}

TEST(WithoutCuda, NoGpuIsThere) {
  EXPECT_EQ(cuda::device_count(), 0);
  EXPECT_THAT(cuda::why_no_device(), testing::HasSubstr("this build has no CUDA"));
  EXPECT_FALSE(shares_managed_memory());
  EXPECT_EQ(free_bytes_of(Device::cuda), 0u);
  EXPECT_EQ(free_bytes_of(Device::cpu), ~std::uint64_t{0});
}

}  // namespace
}  // namespace fl
