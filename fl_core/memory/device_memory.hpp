// What only callers that know of devices need: how much memory one has left for this process, copies that nobody waits for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fl_core/config/device.hpp"

namespace fl {

// Bytes that may still be taken of a GPU, plain (cuda) or managed, 0 in a build without CUDA; ~0 for the host, whose memory is not counted.
[[nodiscard]] FL_API std::uint64_t free_bytes_of(Device device);

// Whether the GPU shares managed memory with a host that runs at the same time; false without one.
[[nodiscard]] FL_API bool shares_managed_memory();

// Copies pageable host memory to a GPU in the order of a stream, waiting for nothing: `from` has been read when the call returns.
FL_API void upload_bytes(void* to, const void* from, std::size_t bytes, void* stream);

}  // namespace fl
