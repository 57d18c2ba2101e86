// Which threshold sends as many bits as Top-k with k entries, measured on a scenario: its cell is run with Top-k for a few rounds, and then
// with the hard threshold until the totals agree (scenarios/file/bit_search.hpp).
#pragma once

#include <cstdint>

#include "scenarios/file/bit_search.hpp"
#include "scenarios/sweep/cell_runner.hpp"

namespace fl {

struct MeasuredThreshold {
  double lambda = 0;         // on the scale of gradients, as the hard threshold's rule = "lambda" takes it
  MatchedBits matched{};     // of the bits of the hard threshold against those of Top-k
  std::uint64_t rounds = 0;  // that were played each time
  double bits_up = 0;        // that Top-k sent in them, all clients together
  int runs = 0;              // of the hard threshold
};

// Runs the cell's first `rounds` rounds with its seed. What [compressor.up] has beside the operator (unit, scope, excluded tensors) stays.
// Throws ConfigError where the cell does not take one of the two operators, or where Top-k sends nothing or a run fails.
[[nodiscard]] FL_API MeasuredThreshold measure_threshold(const Cell& cell, CellRunner& runner, std::int64_t k, std::int64_t rounds);

}  // namespace fl
