#include "fl_core/memory/usable_cores.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>
#include <vector>

namespace fl {
namespace {

namespace fs = std::filesystem;

std::string text_of_file(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Returns the cores of a quota in microseconds per period; 0 = no quota.
int cores_of(double quota, double period) {
  constexpr double kMost = 1 << 20;
  return quota > 0 && period > 0 ? static_cast<int>(std::clamp(std::ceil(quota / period), 1.0, kMost)) : 0;
}

// Returns the quota of one folder of cgroup v2 ("max 100000" = none) or v1 (-1 = none).
int quota_of_folder(const fs::path& folder) {
  double quota = 0, period = 0;
  if (std::istringstream(text_of_file(folder / "cpu.max")) >> quota >> period) return cores_of(quota, period);
  std::istringstream(text_of_file(folder / "cpu.cfs_quota_us")) >> quota;
  std::istringstream(text_of_file(folder / "cpu.cfs_period_us")) >> period;
  return cores_of(quota, period);
}

int fewer(int a, int b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

// Returns the least quota of `group` below `mount` and of the groups above it. A container often sees its own group as the root of the
// mount, under another name than the kernel's, so a folder that does not exist is passed over.
int quota_of_group(const fs::path& mount, const fs::path& group) {
  int cores = quota_of_folder(mount);
  fs::path folder = mount;
  for (const fs::path& part : group.relative_path()) cores = fewer(cores, quota_of_folder(folder /= part));
  return cores;
}

// Returns the cores of the affinity mask; 0 = not known. The mask of a machine with many cores is longer than cpu_set_t.
int affinity_cores() {
  for (std::size_t sets = 1; sets <= 64; sets *= 2) {
    std::vector<cpu_set_t> mask(sets);
    if (::sched_getaffinity(0, sets * sizeof(cpu_set_t), mask.data()) == 0) return CPU_COUNT_S(sets * sizeof(cpu_set_t), mask.data());
  }
  return 0;
}

}  // namespace

int quota_cores(const std::string& membership, const std::string& root) {
  int cores = 0;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // "0::/group" (v2) or "4:cpu,cpuacct:/group" (v1)
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",", group = line.substr(second + 1);
    if (controllers == ",,") {
      cores = fewer(cores, quota_of_group(root, group));
    } else if (controllers.find(",cpu,") != std::string::npos) {
      for (const std::string& mount : {std::string("cpu"), line.substr(first + 1, second - first - 1)})
        cores = fewer(cores, quota_of_group(fs::path(root) / mount, group));
    }
  }
  return cores;
}

int usable_cores() {
  const int allowed = affinity_cores();
  const int cores = allowed > 0 ? allowed : static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, fewer(cores, quota_cores(text_of_file("/proc/self/cgroup"), "/sys/fs/cgroup")));
}

}  // namespace fl
