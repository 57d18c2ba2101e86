// What becomes of the error memory of clients that miss rounds, which both sides read from the scenario.
//
//   keep    e stays                            decay   e <- factor^missed e          drop   e <- 0
//   server  e <- the mean memory of the cohort before: each member sends its memory, dense, when its round closes, and each client that
//           comes back is sent the mean; both are counted
// Missed rounds are those since the client's last acknowledged message, skipped rounds included; a client that never took part has nothing
// to settle. Only the error memory is touched: state that the server holds a copy of must stay as it is.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "fl_core/round/run_settings.hpp"

namespace fl {

// The server slot of the mean memory.
inline constexpr const char* kAbsentMean = "absent_mean";

struct AbsenceRule {
  AbsentState state = AbsentState::keep;
  double decay = 1;            // factor per missed round
  std::string slot;            // the client slot of the error memory; "" = none
  std::size_t statistics = 0;  // entries of a memory that are running statistics: always 0, so nobody sends them

  // Whether the server's mean takes the place of memory.
  [[nodiscard]] bool replaces() const { return state == AbsentState::server; }
  // Returns the share of its memory that a client keeps when it misses `missed` rounds.
  [[nodiscard]] double factor(std::uint32_t missed) const {
    switch (state) {
      case AbsentState::keep: return 1;
      case AbsentState::decay: return std::pow(decay, missed);
      case AbsentState::drop:
      case AbsentState::server: return missed == 0 ? 1 : 0;
    }
    return 1;
  }
};

// Returns how many rounds before `round` a client missed whose last one was `last`; 0 for one that never took part.
[[nodiscard]] inline std::uint32_t missed_rounds(std::uint32_t round, std::uint32_t last) { return last == 0 ? 0 : round - last - 1; }

}  // namespace fl
