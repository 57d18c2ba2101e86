// Finds the threshold that sends as many bits as Top-k with k entries, measured on a scenario: the cell runs with Top-k for a few rounds,
// and then with the hard threshold until the totals agree (scenarios/file/bit_search.hpp).
#pragma once

#include <cstdint>
#include <functional>

#include "scenarios/file/bit_search.hpp"
#include "scenarios/sweep/cell_runner.hpp"

namespace fl {

struct MeasuredThreshold {
  double threshold = 0;      // for steps in units of the gradient (rule = "lambda"), else in units of the input
  Unit unit = Unit::step;    // of the input
  MatchedBits matched{};     // bits of the hard threshold compared with those of Top-k
  std::uint64_t rounds = 0;  // length of each run
  double bits_up = 0;        // bits that Top-k sent in these rounds, all clients together
  int runs = 0;              // runs with the hard threshold
};

// Runs the cell's first `rounds` rounds with its seed; `unit` is the unit of what it compresses. The other settings of [compressor.up]
// (unit, scope, excluded tensors) stay. Throws ConfigError if the cell does not accept one of the two operators, if Top-k sends nothing or
// if a run fails. `goes_on` is asked after every round, and Error is thrown where it says no.
[[nodiscard]] FL_API MeasuredThreshold measure_threshold(const Cell& cell, Unit unit, CellRunner& runner, std::int64_t k,
                                                         std::int64_t rounds, const std::function<bool()>& goes_on = {});

}  // namespace fl
