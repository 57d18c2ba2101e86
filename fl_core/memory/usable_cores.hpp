// The number of cores that this process may use, which is the default number of threads.
#pragma once

#include <string>

#include "fl_core/config/device.hpp"

namespace fl {

// Returns the number of cores that this process may use at a time, at least 1: those of its affinity mask, and no more than the processor
// quota of its control groups (cgroup v1 and v2) allows. A quota of 1.5 cores counts as 2, so that none of it stays unused.
[[nodiscard]] FL_API int usable_cores();

// Returns the quota of the control groups that `membership` (the text of /proc/self/cgroup) names, in cores rounded up; 0 = no quota. The
// groups' folders are looked up below `root` (/sys/fs/cgroup); a group is also bounded by the groups above it. Tests call it with folders
// of their own.
[[nodiscard]] FL_API int quota_cores(const std::string& membership, const std::string& root);

}  // namespace fl
