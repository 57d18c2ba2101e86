// Finds the threshold that sends as many bits as Top-k with k entries, measured on a scenario: the cell runs with Top-k for a few rounds,
// and then with the hard threshold until the totals agree (scenarios/file/bit_search.hpp).
#pragma once

#include <cstdint>

#include "scenarios/file/bit_search.hpp"
#include "scenarios/sweep/cell_runner.hpp"

namespace fl {

struct MeasuredThreshold {
  double lambda = 0;         // on the scale of gradients, as the hard threshold's rule = "lambda" expects it
  MatchedBits matched{};     // bits of the hard threshold compared with those of Top-k
  std::uint64_t rounds = 0;  // length of each run
  double bits_up = 0;        // bits that Top-k sent in these rounds, all clients together
  int runs = 0;              // runs with the hard threshold
};

// Runs the cell's first `rounds` rounds with its seed. The other settings of [compressor.up] (unit, scope, excluded tensors) stay. Throws
// ConfigError if the cell does not accept one of the two operators, if Top-k sends nothing or if a run fails.
[[nodiscard]] FL_API MeasuredThreshold measure_threshold(const Cell& cell, CellRunner& runner, std::int64_t k, std::int64_t rounds);

}  // namespace fl
