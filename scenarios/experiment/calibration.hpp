// Predicts the seconds, bits and memory of a run from its first rounds.
//
// Rounds differ by what they measure: nothing, the messages, or an evaluation (the loss, the test set and a gradient of all rows).
// Calibration plays a few rounds of each kind and multiplies their time by the number of such rounds in the run. It takes the median over
// short stretches, so that brief interference from other programs does not count. For the same reason it counts processor time where that
// is less than wall-clock time.
#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/experiment/tier_seconds.hpp"

namespace fl {

// Numbers alone, which a worker sends as they are.
struct CalibrationNumbers {
  double prepare_s = 0;               // assembling the run in a worker that already knows the seed
  double new_seed_s = 0;              // extra seconds of assembly in a worker that does not
  double once_s = 0;                  // start and end: row 0, the first touch of memory, computations at the optimum
  double rounds_s = 0;                // all rounds together
  double test_set_s = 0;              // the part of rounds_s for the test set
  double losses_s = 0;                // the part of rounds_s for the training loss, where it has passes of its own
  double bits_up = 0, bits_down = 0;  // of the whole run, summed over clients, if it goes on as in the last rounds played
  std::uint64_t rounds_played = 0;    // by the calibration
  std::uint64_t total_rounds = 0;     // of the whole run
  std::uint64_t growth_bytes = 0;     // growth of memory from now until the run ends
  double too_late_s = 0;              // simulated time of the fastest message if a round closes before it; 0 = it does not, or no clock
  [[nodiscard]] double total_s() const { return prepare_s + once_s + rounds_s; }
};

struct Calibration : CalibrationNumbers {
  std::vector<TierSeconds> tiers;  // simulated seconds of the clients' devices, from stated costs; empty without [devices]
};

// Bits that all clients of a round sent (up) and received (down).
struct RoundBits {
  std::uint64_t up = 0, down = 0;
};

// Measures the seconds since construction or restart(): processor time where it is less than wall-clock time.
class Stopwatch {
 public:
  Stopwatch() { restart(); }
  void restart();
  [[nodiscard]] double seconds() const;

 private:
  double clock_ = 0, processor_ = 0;
};

}  // namespace fl
