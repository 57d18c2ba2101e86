// The amount of a client's work in a round: steps or epochs, the same for all clients or less for stragglers.
#pragma once

#include <cstdint>

#include "fl_core/config/options.hpp"
#include "fl_core/random/random.hpp"

namespace fl {

// The random number generator's counter has 16 bits for steps.
inline constexpr std::uint32_t kMostLocalSteps = 65535;

// A straggler does a number of steps (or epochs) that is drawn uniformly from `least` to the full number. FedProx's systems heterogeneity:
// a share of stragglers, least = 1, drawn anew in every round. FedNova's: stragglers = 1, epochs = 5, least = 2.
// Sources: T. Li et al., "Federated optimization in heterogeneous networks", MLSys 2020, section 5.2; J. Wang et al., "Tackling the
// objective inconsistency problem in heterogeneous federated optimization", NeurIPS 2020, section 6.
struct LocalWork {
  enum class Redraw { round, client };
  std::int64_t steps = 1, epochs = 0;  // epochs = 0 counts steps
  double stragglers = 0;               // share of clients, 0 .. 1
  std::int64_t least = 1;
  Redraw redraw = Redraw::round;

  // Returns the steps of a client in a round, or its epochs if work is counted in epochs.
  [[nodiscard]] FL_API std::int64_t amount(std::uint64_t seed, std::uint32_t client, std::uint32_t round) const;
};
FL_API void describe(Schema& schema, LocalWork& work);
FL_API void validate(const LocalWork& work, Problems& problems);

}  // namespace fl
