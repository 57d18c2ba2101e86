// How much memory a device has left for this process.
#pragma once

#include <cstdint>

#include "fl_core/device.hpp"

namespace fl {

// Bytes that may still be taken of a GPU; ~0 for the host, whose memory is nobody's to count here.
[[nodiscard]] FL_API std::uint64_t free_bytes_of(Device device);

}  // namespace fl
