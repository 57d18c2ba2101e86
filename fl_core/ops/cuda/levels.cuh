// Levels as kernels read them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fl_core/config/device.hpp"
#include "fl_core/message/level_format.hpp"

namespace fl::cuda {

// Level i of a message's level_bytes.
[[nodiscard]] FL_HD inline std::int32_t level_from(const std::byte* levels, LevelWidth width, std::size_t i) {
  switch (width) {
    case LevelWidth::w8: return reinterpret_cast<const std::int8_t*>(levels)[i];
    case LevelWidth::w16: return reinterpret_cast<const std::int16_t*>(levels)[i];
    case LevelWidth::w32: return reinterpret_cast<const std::int32_t*>(levels)[i];
  }
  return 0;
}

}  // namespace fl::cuda
