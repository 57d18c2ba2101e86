// Bytes of host memory in Buffers that this thread has allocated, minus those that it has freed, and the maximum over time. Tests use it
// to bound the memory of readers of untrusted bytes; they set `most` to `held` before they measure.
#pragma once

#include <cstdint>

#include "fl_core/config/device.hpp"

namespace fl {

struct HostBytes {
  std::int64_t held = 0, most = 0;  // negative if other threads allocated memory that this thread freed
};
[[nodiscard]] FL_API HostBytes& host_bytes();

}  // namespace fl
