#include "study/machine/memory.hpp"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <sstream>

#include "fl_core/config/error.hpp"

namespace fl {

namespace {

namespace fs = std::filesystem;
constexpr double kMostAllowedBytes = 1e18;

// Returns the number after a name in lines such as "MemAvailable:  8 kB" or "inactive_file 8".
std::optional<std::uint64_t> entry_of(const fs::path& file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word;
    std::uint64_t value = 0;
    if (words >> word >> value && word == name) return value;
  }
  return std::nullopt;
}

// Returns the number in a file; nothing, which means no limit, for "max" and for a missing file.
std::optional<std::uint64_t> number_in(const fs::path& file) {
  std::ifstream in(file);
  std::uint64_t value = 0;
  return in >> value ? std::optional(value) : std::nullopt;
}

// Returns the free bytes of one group: its limit minus the memory in use that it cannot reclaim.
std::uint64_t left_in_group(const fs::path& group, const char* limit_file, const char* usage_file) {
  const auto limit = number_in(group / limit_file), used = number_in(group / usage_file);
  if (!limit || !used) return std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t held = *used - std::min(*used, entry_of(group / "memory.stat", "inactive_file").value_or(0));
  return *limit - std::min(*limit, held);
}

// Returns the free bytes of all groups of this process. Version 2 names the group of a process in a line "0::/path", version 1 in
// "7:memory:/path"; limits of outer groups apply too. In a container the path may be one of the host, and the group is then the mounted
// one.
std::uint64_t left_in_groups() {
  std::uint64_t left = std::numeric_limits<std::uint64_t>::max();
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_v2 = controllers.empty();
    if (!is_v2 && controllers.find("memory") == std::string::npos) continue;
    const fs::path root = is_v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    for (fs::path path = fs::path(line.substr(second + 1)).relative_path();; path = path.parent_path()) {
      left = std::min(left, is_v2 ? left_in_group(root / path, "memory.max", "memory.current")
                                  : left_in_group(root / path, "memory.limit_in_bytes", "memory.usage_in_bytes"));
      if (path.empty()) break;
    }
  }
  return left;
}

}  // namespace

std::uint64_t parse_bytes(const std::string& option, const std::string& text) {
  static const std::map<std::string, double> kUnits = {{"", 1}, {"K", 1024}, {"M", 1048576}, {"G", 1073741824}, {"T", 1099511627776}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit;
  for (const char c : std::string(end, text.data() + text.size()))
    if (c != ' ') unit += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const std::string end_of_unit : {"IB", "B"})
    if (unit.size() > end_of_unit.size() && unit.ends_with(end_of_unit)) unit.resize(unit.size() - end_of_unit.size());
  const auto found = kUnits.find(unit);
  const double bytes = found == kUnits.end() ? 0 : number * found->second;
  if (error != std::errc() || !(bytes >= 1) || bytes > kMostAllowedBytes)
    throw ConfigError(option + ": must be a size such as 8G or 500M (units K, M, G, T), is '" + text + "'");
  return static_cast<std::uint64_t>(bytes);
}

std::uint64_t available_memory_bytes() {
  const std::uint64_t machine =
      entry_of("/proc/meminfo", "MemAvailable:").value_or(std::numeric_limits<std::uint64_t>::max() / 1024) * 1024;
  std::uint64_t pages = 0, resident_pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident_pages;
  return std::min(machine, left_in_groups()) + resident_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void keep_freed_memory() {
  constexpr int kMebibyte = 1 << 20;
  ::mallopt(M_MMAP_THRESHOLD, 32 * kMebibyte);  // larger vectors go back to the system as before
  ::mallopt(M_TRIM_THRESHOLD, 64 * kMebibyte);
}

}  // namespace fl
