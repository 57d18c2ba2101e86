// What a run will take, from its first rounds: seconds, bits and memory.
//
// Rounds differ by what is due in them: nothing, the measures of what was sent, or an evaluation (then the loss, the test set and a
// gradient of all rows are part of the round). A few of each kind are played and their time is taken as often as that kind will come. The
// median over short stretches is taken, so that what another program takes from this core now and then does not count; for the same reason
// seconds are those of the processor where they are fewer than those of the clock.
#pragma once

#include <cstdint>

namespace fl {

struct Calibration {
  double prepare_s = 0;               // putting it together in a worker that has met the seed
  double new_seed_s = 0;              // what that takes longer in a worker that has not
  double once_s = 0;                  // beginning and end: row 0, memory touched for the first time, what is computed at the optimum
  double rounds_s = 0;                // all rounds together
  double bits_up = 0, bits_down = 0;  // of the whole run, all clients together, were it to go on as in the last rounds played
  std::uint64_t rounds_played = 0;    // to find out
  std::uint64_t total_rounds = 0;     // that the whole run will have
  std::uint64_t growth_bytes = 0;     // of memory, from now until it ends
  [[nodiscard]] double total_s() const { return prepare_s + once_s + rounds_s; }
};

// What all clients of a round sent and were sent.
struct RoundBits {
  std::uint64_t up = 0, down = 0;
};

// Seconds since it was made or begun anew: the processor's where they are fewer than the clock's.
class Stopwatch {
 public:
  Stopwatch() { restart(); }
  void restart();
  [[nodiscard]] double seconds() const;

 private:
  double clock_ = 0, processor_ = 0;
};

}  // namespace fl
