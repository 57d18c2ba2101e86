// The part of CUDA's runtime and device language that fl_core/ops/cuda uses, on the CPU. It replaces the toolkit's header if kernels are
// emulated (FL_CUDA_EMULATOR). Streams execute their work at once. There is always exactly one device.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tests/emulator/block.hpp"

#define __host__
#define __device__
#define __global__
#define __shared__ static thread_local
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define threadIdx (::fl::emulator::thread_index)
#define blockIdx (::fl::emulator::block_index)
#define blockDim (::fl::emulator::block_size)
#define gridDim (::fl::emulator::grid_size)

// ---- runtime ----

using cudaStream_t = void*;
using cudaEvent_t = struct cudaEvent_st*;
enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorNotReady = 600 };
enum cudaDeviceAttr {
  cudaDevAttrL2CacheSize = 38,
  cudaDevAttrConcurrentManagedAccess = 89,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
  cudaDevAttrPageableMemoryAccessUsesHostPageTables = 100
};
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };

[[nodiscard]] const char* cudaGetErrorString(cudaError_t status);
[[nodiscard]] const char* cudaGetErrorName(cudaError_t status);
[[nodiscard]] inline cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count);
struct cudaDeviceProp {
  char name[256];
};
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
cudaError_t cudaMalloc(void** memory, std::size_t bytes);
inline constexpr unsigned cudaMemAttachGlobal = 1;
cudaError_t cudaMallocManaged(void** memory, std::size_t bytes, unsigned flags = cudaMemAttachGlobal);
cudaError_t cudaFree(void* memory);
inline constexpr unsigned cudaHostAllocPortable = 1, cudaHostAllocMapped = 2;
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaMemset(void* to, int value, std::size_t bytes);
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaMemPrefetchAsync(const void* memory, std::size_t bytes, int device, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
inline constexpr unsigned cudaStreamNonBlocking = 1;
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaDeviceSynchronize();
inline constexpr unsigned cudaEventDisableTiming = 2;
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);
cudaError_t cudaEventDestroy(cudaEvent_t event);

using cudaGraph_t = struct cudaGraph_st*;
using cudaGraphExec_t = struct cudaGraphExec_st*;
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed };
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* graph_exec, cudaGraph_t graph, unsigned long long flags = 0);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph_exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph_exec);

// ---- device functions ----

inline void __syncthreads() { fl::emulator::sync_block(); }
inline void __syncwarp(unsigned mask = 0xFFFFFFFFu) { fl::emulator::exchange(fl::emulator::WarpOperation::sync, mask, 0); }

namespace fl::emulator {

template <class T>
[[nodiscard]] std::uint64_t to_word(T value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  return word;
}
template <class T>
[[nodiscard]] T from_word(std::uint64_t word) {
  T value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}
[[nodiscard]] inline unsigned lane() { return thread_index.x % kWarpLanes; }

// Returns the value of the lane `lane_of(own lane, first lane of the group, width)`, or the own value if that lane is outside the group.
template <class T, class LaneOf>
[[nodiscard]] T shuffle(WarpOperation operation, unsigned mask, T value, int width, LaneOf lane_of) {
  const std::uint64_t* given = exchange(operation, mask, to_word(value));
  const int own = static_cast<int>(lane()), first = own / width * width, from = lane_of(own, first);
  if (from < first || from >= first + width) return value;
  if ((mask >> from & 1) == 0) report("a lane reads from one that is not in the mask");
  return from_word<T>(given[from]);
}

}  // namespace fl::emulator

template <class T>
[[nodiscard]] T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  return fl::emulator::shuffle(fl::emulator::WarpOperation::shuffle, mask, value, width,
                               [&](int, int first) { return first + (source & (width - 1)); });
}
template <class T>
[[nodiscard]] T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
  return fl::emulator::shuffle(fl::emulator::WarpOperation::shuffle_up, mask, value, width,
                               [&](int own, int) { return own - static_cast<int>(by); });
}
template <class T>
[[nodiscard]] T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
  return fl::emulator::shuffle(fl::emulator::WarpOperation::shuffle_down, mask, value, width,
                               [&](int own, int) { return own + static_cast<int>(by); });
}
template <class T>
[[nodiscard]] T __shfl_xor_sync(unsigned mask, T value, int by, int width = 32) {
  return fl::emulator::shuffle(fl::emulator::WarpOperation::shuffle_xor, mask, value, width, [&](int own, int) { return own ^ by; });
}
[[nodiscard]] inline unsigned __ballot_sync(unsigned mask, int predicate) {
  const std::uint64_t* given = fl::emulator::exchange(fl::emulator::WarpOperation::ballot, mask, predicate != 0 ? 1 : 0);
  unsigned votes = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if ((mask >> lane & 1) != 0 && given[lane] != 0) votes |= 1u << lane;
  return votes;
}
[[nodiscard]] inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
[[nodiscard]] inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }
[[nodiscard]] inline unsigned __reduce_add_sync(unsigned mask, unsigned value) {
  const std::uint64_t* given = fl::emulator::exchange(fl::emulator::WarpOperation::add, mask, value);
  unsigned sum = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if ((mask >> lane & 1) != 0) sum += static_cast<unsigned>(given[lane]);
  return sum;
}

// Threads change only where they wait, so that this is atomic.
template <class T>
T atomicAdd(T* at, std::type_identity_t<T> value) {
  const T before = *at;
  *at = before + value;
  return before;
}
template <class T>
T atomicMax(T* at, std::type_identity_t<T> value) {
  const T before = *at;
  *at = before < value ? value : before;
  return before;
}
template <class T>
T atomicOr(T* at, std::type_identity_t<T> value) {
  const T before = *at;
  *at = before | value;
  return before;
}

[[nodiscard]] inline int __popc(unsigned x) { return std::popcount(x); }
[[nodiscard]] inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
[[nodiscard]] inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
[[nodiscard]] inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
[[nodiscard]] inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
