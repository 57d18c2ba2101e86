// CUDA calls and kernel launches that cannot fail unseen: each becomes a DeviceError that carries the expression and the place.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "fl_core/memory/exec.hpp"
#include "fl_core/ops/cuda/delay.hpp"
#include "fl_core/ops/cuda/launch_times.hpp"

namespace fl::cuda {

// Throws DeviceError unless the status is cudaSuccess.
FL_API void check(cudaError_t status, const char* expression, const char* file, int line);
#define FL_CUDA_CHECK(expression) ::fl::cuda::check((expression), #expression, __FILE__, __LINE__)

[[nodiscard]] inline cudaStream_t stream_of(const Exec& exec) { return static_cast<cudaStream_t>(exec.stream); }

#if defined(__CUDACC__) || defined(FL_CUDA_EMULATOR)
#if defined(__CUDACC__)
#define FL_UNROLL _Pragma("unroll")
#define FL_NO_UNROLL _Pragma("unroll 1")
#define FL_UNROLL_BY(times) FL_PRAGMA(unroll times)
#define FL_PRAGMA(text) _Pragma(#text)
#else
#define FL_UNROLL
#define FL_NO_UNROLL
#define FL_UNROLL_BY(times)
#endif

inline constexpr int kBlockThreads = 256;
inline constexpr unsigned kWarp = 32, kAllLanes = 0xFFFFFFFFu;

// The launch of a kernel: Launch(exec, "name", blocks)(kernel<T>, arguments...). Kernels stride over their work, so that any number of
// blocks is allowed; with 0 blocks nothing starts. with_shared(bytes) gives every block memory that it finds with FL_SHARED_MEMORY;
// `declared` is how much the kernel declares itself, at most.
class Launch {
 public:
  Launch(const Exec& exec, const char* name, std::size_t blocks, int threads = kBlockThreads, const char* file = __builtin_FILE(),
         int line = __builtin_LINE())
      : stream_(stream_of(exec)), name_(name), blocks_(blocks), threads_(threads), file_(file), line_(line) {}

  Launch& with_shared(std::size_t bytes, std::size_t declared = 16 * 1024) {
    shared_bytes_ = bytes;
    declared_bytes_ = declared;
    return *this;
  }

  template <class... P>
  void operator()(void (*kernel)(P...), std::type_identity_t<P>... arguments) const {
    if (blocks_ == 0) return;
    constexpr std::size_t kMostBlocks = std::size_t{1} << 30;
    const auto blocks = static_cast<unsigned>(std::min(blocks_, kMostBlocks));
    const TimedLaunch timed(stream_, name_, blocks, static_cast<unsigned>(threads_));
#if defined(FL_CUDA_EMULATOR)
    emulator::launch_on(stream_, name_, kernel, blocks, static_cast<unsigned>(threads_), shared_bytes_, arguments...);
#else
    constexpr std::size_t kWithoutAsking = 48 * 1024;
    if (shared_bytes_ > 0 && shared_bytes_ + declared_bytes_ > kWithoutAsking)
      check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes_)), name_, file_,
            line_);
    delay(stream_);
    kernel<<<blocks, threads_, shared_bytes_, stream_>>>(arguments...);
#endif
    check(cudaGetLastError(), name_, file_, line_);
  }

 private:
  cudaStream_t stream_;
  const char* name_;
  std::size_t blocks_;
  int threads_;
  std::size_t shared_bytes_ = 0, declared_bytes_ = 0;
  const char* file_;
  int line_;
};

// T* name: what Launch::with_shared gave the block, 16-byte aligned.
#if defined(FL_CUDA_EMULATOR)
#define FL_SHARED_MEMORY(T, name) T* name = static_cast<T*>(::fl::emulator::shared_memory())
#else
#define FL_SHARED_MEMORY(T, name)                                \
  extern __shared__ __align__(16) unsigned char block_memory_[]; \
  T* name = reinterpret_cast<T*>(block_memory_)
#endif

// Blocks of `threads` for n items, one per thread.
[[nodiscard]] inline std::size_t blocks_for(std::size_t n, int threads = kBlockThreads) {
  return (n + static_cast<std::size_t>(threads) - 1) / static_cast<std::size_t>(threads);
}
[[nodiscard]] __device__ inline std::size_t thread_index() { return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; }
[[nodiscard]] __device__ inline std::size_t num_threads() { return std::size_t{gridDim.x} * blockDim.x; }
#endif

}  // namespace fl::cuda
