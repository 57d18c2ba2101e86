// What a run takes of a GPU's memory at the most, known before and without one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace fl {

struct DeviceNeed {
  std::uint64_t data_bytes = 0;                          // of its data sets, once for all runs that share them
  const void* data = nullptr;                            // which data: the same for runs that share them
  std::uint64_t round_bytes = 0;                         // vectors, messages, training, aggregation, evaluation
  std::uint64_t state_bytes = 0, least_state_bytes = 0;  // of clients: all of it, and what a round cannot do without
  std::uint64_t pinned_bytes = 0;                        // of the host's memory
  // Why vectors, state and messages are managed memory (scenarios/experiment/host_needs.hpp); empty: they lie in the GPU's own.
  std::vector<std::string> needs_managed{};
  // Beside the data. What does not fit of the state may lie in a file.
  [[nodiscard]] std::uint64_t own_bytes() const { return round_bytes + state_bytes; }
  [[nodiscard]] std::uint64_t least_bytes() const { return round_bytes + least_state_bytes; }
};

}  // namespace fl
