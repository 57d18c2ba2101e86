// Memory of a GPU, behind fl_core/buffer.hpp. Exists only in builds with CUDA (FL_WITH_CUDA); no CUDA type appears here, so that host
// files may include it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "fl_core/device.hpp"

namespace fl::cuda {

// GPUs that this process may use; 0 where there is no driver either.
[[nodiscard]] FL_API int device_count() noexcept;

// The name of the GPU in use, such as "NVIDIA H200".
[[nodiscard]] FL_API std::string device_name();
// Why there is no GPU to be used, in the driver's words; "" where there is one.
[[nodiscard]] FL_API std::string why_no_device() noexcept;
// Bytes of the GPU's memory that nobody has taken.
[[nodiscard]] FL_API std::uint64_t free_bytes_of_device();

// Bytes of the GPU's second-level cache.
[[nodiscard]] FL_API std::size_t cache_bytes_of_device();

// Zeroed device memory, zero for every stream when the call returns. Throws DeviceError when the driver refuses.
[[nodiscard]] void* allocate_bytes(std::size_t bytes);
// The same as memory that host and GPU reach alike.
[[nodiscard]] void* allocate_managed_bytes(std::size_t bytes);
void free_bytes(void* memory, std::size_t bytes) noexcept;
// A stream (cudaStream_t) that waits for no other.
[[nodiscard]] FL_API void* create_stream();
FL_API void destroy_stream(void* stream) noexcept;
// Waits for everything that was given to the GPU. Throws DeviceError for a kernel that failed.
FL_API void synchronise();
// Copies where at least one side is not Device::cpu, ordered by `stream` (a cudaStream_t). Null waits for every stream before and for the
// copy after. A copy to or from the host is complete when the call returns. Throws DeviceError.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes, void* stream);

}  // namespace fl::cuda
