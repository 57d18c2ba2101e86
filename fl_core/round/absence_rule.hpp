// The treatment of the error memory of clients that miss rounds. Both sides read it from the scenario.
//
//   keep    e stays                            decay   e <- factor^missed e          drop   e <- 0
//   server  e <- the mean memory of the previous cohort: each member sends its memory, dense, when its round closes, and each returning
//   client receives the mean; both transfers are counted
// The missed rounds are those since the client's last acknowledged message, including skipped rounds. A client that never took part has no
// memory to adjust. Only the error memory changes: state that the server has a copy of must not change.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "fl_core/round/run_settings.hpp"

namespace fl {

// Name of the server slot for the mean memory.
inline constexpr const char* kAbsentMean = "absent_mean";

struct AbsenceRule {
  AbsentState state = AbsentState::keep;
  double decay = 1;          // factor per missed round
  std::string slot;          // the client slot of the error memory; "" = none
  std::size_t unshared = 0;  // entries of a memory that belong to no shared parameter; they are always 0 and are not sent

  // Returns whether the server's mean replaces the client's memory.
  [[nodiscard]] bool replaces() const { return state == AbsentState::server; }
  // Returns the factor of the memory of a client that missed `missed` rounds.
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

// Returns the number of rounds that a client missed before `round`, given its last round `last`; 0 if it never took part.
[[nodiscard]] inline std::uint32_t missed_rounds(std::uint32_t round, std::uint32_t last) { return last == 0 ? 0 : round - last - 1; }

}  // namespace fl
