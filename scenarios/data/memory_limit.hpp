// Refuses data that cannot fit before the machine starts to swap.
#pragma once

#include <cstdint>
#include <string>

#include "fl_core/config/device.hpp"

namespace fl {

// The memory that one data set may take: what --memory says, or all that the machine has.
struct MemoryLimit {
  std::uint64_t option_bytes = 0;  // of --memory; 0 = the option is not given

  [[nodiscard]] FL_API std::uint64_t bytes() const;
  // Returns "--memory allows 2.0 GiB", or "the machine has 15.6 GiB of memory, which --memory can lower".
  [[nodiscard]] FL_API std::string text() const;
};

// Returns "2.0 GiB", or "17 bytes" below a KiB.
[[nodiscard]] FL_API std::string size_text(double bytes);

// Throws ConfigError when `bytes` is more than the limit: "<what> would take X GiB of memory, the machine has Y GiB of memory; <way_out>".
FL_API void require_memory(double bytes, const std::string& what, const std::string& way_out, const MemoryLimit& limit = {});

}  // namespace fl
