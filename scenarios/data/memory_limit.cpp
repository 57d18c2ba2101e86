#include "scenarios/data/memory_limit.hpp"

#include <unistd.h>

#include <cstdio>

#include "fl_core/error.hpp"

namespace fl {

void require_memory(double bytes, const std::string& what, const std::string& way_out) {
  constexpr double kGiB = 0x1p30;
  const double available = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (bytes <= available) return;
  char sizes[96];
  std::snprintf(sizes, sizeof(sizes), " would take %.1f GiB of memory, the machine has %.1f GiB; ", bytes / kGiB, available / kGiB);
  throw ConfigError(what + sizes + way_out);
}

}  // namespace fl
