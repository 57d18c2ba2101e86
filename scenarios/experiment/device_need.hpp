// An upper bound on the GPU memory of a run. It is known before the run and on machines without a GPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace fl {

struct DeviceNeed {
  std::uint64_t data_bytes = 0;                          // its data sets, counted once for all runs that share them
  const void* data = nullptr;                            // identity of the data: equal for runs that share them
  std::uint64_t round_bytes = 0;                         // vectors, messages, training, aggregation, evaluation
  std::uint64_t state_bytes = 0, least_state_bytes = 0;  // client state: all of it, and the part that a round needs
  std::uint64_t pinned_bytes = 0;                        // pinned host memory
  // Reasons why vectors, state and messages are in managed memory (scenarios/experiment/host_needs.hpp). Empty: they are in GPU memory.
  std::vector<std::string> needs_managed{};
  // Reasons why the clients train on the CPU although the run is on a GPU. Empty: they train on the GPU.
  std::vector<std::string> trains_on_cpu{};
  // Bytes besides the data. State that does not fit is paged to a file.
  [[nodiscard]] std::uint64_t own_bytes() const { return round_bytes + state_bytes; }
  [[nodiscard]] std::uint64_t least_bytes() const { return round_bytes + least_state_bytes; }
};

}  // namespace fl
