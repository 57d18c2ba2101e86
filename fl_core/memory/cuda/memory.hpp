// Memory of a GPU, behind fl_core/memory/buffer.hpp. No CUDA type appears here, so that every build can include it: with CUDA it is
// implemented by fl_core/ops/cuda/memory.cpp, without by fl_core/ops/without_cuda.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "fl_core/config/device.hpp"

namespace fl::cuda {

// GPUs that this process may use; 0 where there is no driver either.
[[nodiscard]] FL_API int device_count() noexcept;

// The name of the GPU in use, such as "NVIDIA H200".
[[nodiscard]] FL_API std::string device_name();
// Why there is no GPU to be used, in the driver's words, or that the build has no CUDA; "" where there is one.
[[nodiscard]] FL_API std::string why_no_device() noexcept;
// Whether host and GPU may use managed memory at the same time (concurrentManagedAccess). Where they may not, none is given out.
[[nodiscard]] FL_API bool shares_managed_memory() noexcept;
// Bytes of the GPU's memory that this process may still take, plain or (kind = managed) managed. What it keeps without need goes back to
// the driver before.
[[nodiscard]] FL_API std::uint64_t free_bytes_of_device(Device kind = Device::cuda);

// The share of what the card has free for this process that may be managed memory: a card on which all of it is managed moves pages to and
// fro, and can stall.
inline constexpr double kMostManagedShare = 0.8;

// Bytes of the GPU's second-level cache.
[[nodiscard]] FL_API std::size_t cache_bytes_of_device();

// What this process has taken, chunks of pools included.
struct MemoryUse {
  std::uint64_t device_bytes = 0, managed_bytes = 0;
  std::uint64_t pinned_bytes = 0;  // of the host's memory
  [[nodiscard]] std::uint64_t on_gpu() const { return device_bytes + managed_bytes; }
};
[[nodiscard]] FL_API MemoryUse memory_use();

// Zeroed memory of a kind (cuda, managed, pinned), zero for every stream when the call returns; no other stream waits for that. Throws
// DeviceError where the GPU has not as much left, managed memory that this process holds counted as if all of it were there; where managed
// memory would be more than kMostManagedShare of what the card has free beside it; and for managed memory of a card that cannot share it.
[[nodiscard]] void* allocate_bytes(Device kind, std::size_t bytes);
void free_bytes(Device kind, void* memory, std::size_t bytes) noexcept;
// A stream (cudaStream_t) that waits for no other.
[[nodiscard]] FL_API void* create_stream();
FL_API void destroy_stream(void* stream) noexcept;
// Waits for everything that was given to the GPU, by whomever. Throws DeviceError for a kernel that failed.
FL_API void synchronise();
// The same of one stream.
FL_API void synchronise(void* stream);
// Copies where at least one side is not Device::cpu, ordered by `stream` (a cudaStream_t). Null waits for every stream before and for the
// copy after. A copy to or from Device::cpu is complete when the call returns. Throws DeviceError.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes, void* stream);
// From pageable host memory, which has been read when the call returns.
void upload_bytes(void* to, const void* from, std::size_t bytes, void* stream);

}  // namespace fl::cuda
