#include "scenarios/data/memory_limit.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>

#include "fl_core/config/error.hpp"

namespace fl {

std::uint64_t MemoryLimit::bytes() const {
  if (option_bytes > 0) return option_bytes;
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::string MemoryLimit::text() const {
  const std::string size = size_text(static_cast<double>(bytes()));
  return option_bytes > 0 ? "--memory allows " + size : "the machine has " + size + " of memory, which --memory can lower";
}

std::string size_text(double bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
  return text.data();
}

void require_memory(double bytes, const std::string& what, const std::string& way_out, const MemoryLimit& limit) {
  if (bytes <= static_cast<double>(limit.bytes())) return;
  throw ConfigError(what + " would take " + size_text(bytes) + " of memory, " + limit.text() + "; " + way_out);
}

}  // namespace fl
