// Functions for callers that know about devices: the free memory of a device, and asynchronous copies.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fl_core/config/device.hpp"

namespace fl {

// Returns the free bytes of a GPU, plain (cuda) or managed; 0 in a build without CUDA. Returns ~0 for the host, whose memory is not
// tracked.
[[nodiscard]] FL_API std::uint64_t free_bytes_of(Device device);

// Returns whether host and GPU can use managed memory at the same time; false without a GPU.
[[nodiscard]] FL_API bool shares_managed_memory();

// Copies pageable host memory to a GPU in the order of a stream, without waiting. `from` has been read when the call returns.
FL_API void upload_bytes(void* to, const void* from, std::size_t bytes, void* stream);

}  // namespace fl
