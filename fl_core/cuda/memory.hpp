// Memory of a GPU, behind fl_core/buffer.hpp. Exists only in builds with CUDA (FL_WITH_CUDA); no CUDA type appears here, so that host
// files may include it.
#pragma once

#include <cstddef>

#include "fl_core/device.hpp"

namespace fl::cuda {

// Zeroed device memory. Throws DeviceError when the driver refuses.
[[nodiscard]] void* allocate_bytes(std::size_t bytes);
void free_bytes(void* memory, std::size_t bytes) noexcept;
// Copies where at least one side is Device::cuda, ordered by `stream` (a cudaStream_t; null is the default stream). Throws DeviceError.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes, void* stream);

}  // namespace fl::cuda
