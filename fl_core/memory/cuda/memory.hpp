// GPU memory, behind fl_core/memory/buffer.hpp. No CUDA type appears here, so that every build can include this header.
// fl_core/ops/cuda/memory.cpp implements it with CUDA, fl_core/ops/without_cuda.cpp without.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "fl_core/config/device.hpp"
#include "fl_core/memory/buffer.hpp"

namespace fl::cuda {

// Returns the number of GPUs that this process may use; 0 if there is no driver.
[[nodiscard]] FL_API int device_count() noexcept;

// Returns the name of the GPU in use, such as "NVIDIA H200".
[[nodiscard]] FL_API std::string device_name();
// Returns the reason why no GPU is usable, in the driver's words or that the build has no CUDA. Returns "" if a GPU is usable.
[[nodiscard]] FL_API std::string why_no_device() noexcept;
// Returns whether host and GPU may use managed memory at the same time (concurrentManagedAccess). If not, managed memory is never
// allocated.
[[nodiscard]] FL_API bool shares_managed_memory() noexcept;
// Returns the GPU memory in bytes that this process can still allocate, plain or (kind = managed) managed. Unused cached memory is
// returned to the driver first.
[[nodiscard]] FL_API std::uint64_t free_bytes_of_device(Device kind = Device::cuda);

// The largest share of the GPU's free memory that may be managed memory. If all of it is managed, the GPU moves pages back and forth and
// can stall.
inline constexpr double kMostManagedShare = 0.8;

// Returns the size of the GPU's second-level cache in bytes.
[[nodiscard]] FL_API std::size_t cache_bytes_of_device();

// Memory that this process has allocated, including the chunks of pools.
struct MemoryUse {
  std::uint64_t device_bytes = 0, managed_bytes = 0;
  std::uint64_t pinned_bytes = 0;  // of host memory
  [[nodiscard]] std::uint64_t on_gpu() const { return device_bytes + managed_bytes; }
};
[[nodiscard]] FL_API MemoryUse memory_use();

// Allocates memory of a kind (cuda, managed, pinned). Unless its contents do not matter, it is zero for all streams when the call returns;
// other streams do not wait. Throws DeviceError if the GPU has too little free memory
// (managed memory of this process counts as resident), if managed memory would exceed kMostManagedShare of the memory that is otherwise
// free, and for managed memory on a GPU that cannot share it.
[[nodiscard]] FL_API void* allocate_bytes(Device kind, std::size_t bytes, Contents contents = Contents::zero);
FL_API void free_bytes(Device kind, void* memory, std::size_t bytes) noexcept;
// Returns whether blocks are cut from larger allocations and used again; false if FEDBITS_CUDA_POOL is off
// (fl_core/ops/cuda/diagnosis.hpp).
[[nodiscard]] bool pools_memory();
// Creates a stream (cudaStream_t) that does not wait for other streams.
[[nodiscard]] FL_API void* create_stream();
FL_API void destroy_stream(void* stream) noexcept;
// Waits for all work of the GPU, on every stream. Throws DeviceError for a kernel that failed.
FL_API void synchronise();
// Does the same for one stream.
FL_API void synchronise(void* stream);
// Copies memory when at least one side is not Device::cpu. `stream` (a cudaStream_t) orders the copy. With a null stream, the call waits
// for all streams before the copy, and for the copy. A copy to or from Device::cpu is complete when the call returns. Throws DeviceError.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes, void* stream);
// Copies from any host memory in the order of a stream, by way of pinned memory (fl_core/ops/cuda/upload_ring.hpp). The source has been
// read when the call returns. Throws DeviceError while this thread records work for a graph.
void upload_bytes(void* to, const void* from, std::size_t bytes, void* stream);

}  // namespace fl::cuda
