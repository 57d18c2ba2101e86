// The workers of a sweep, and the parts of a sweep over several machines.
#pragma once

#include <cstdint>
#include <string>

#include "fl_core/config/device.hpp"

namespace fl {

// The kind of a worker. A process of its own loses only its run when it dies, but a program that has threads cannot fork.
enum class Workers { processes, threads };

// Part `index` of `count` (1-based): the runs whose hash falls into this part. Other runs of the sweep do not affect the assignment.
struct SweepShard {
  std::uint64_t index = 1, count = 1;
  [[nodiscard]] bool holds(std::uint64_t hash) const { return hash % count == index - 1; }
};

// Reads "2/8". Throws ConfigError.
[[nodiscard]] FL_API SweepShard parse_shard(const std::string& text);

}  // namespace fl
