// Bytes of host memory in Buffers that this thread has taken, less those that it has given back, and the most at any time. Tests hold
// readers of untrusted bytes to a bound on memory with it, and set `most` to `held` before they measure.
#pragma once

#include <cstdint>

#include "fl_core/config/device.hpp"

namespace fl {

struct HostBytes {
  std::int64_t held = 0, most = 0;  // below zero where other threads took what this one gave back
};
[[nodiscard]] FL_API HostBytes& host_bytes();

}  // namespace fl
