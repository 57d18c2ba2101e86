// The server's rounds as the rest of a run sees them: rounds that wait for their messages (Round), or steps along messages that arrive at
// any time (AsyncRounds).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fl_core/message/ledger.hpp"
#include "fl_core/state/archive.hpp"
#include "server/delivery.hpp"
#include "server/participation.hpp"

namespace fl {

template <class T>
class ServerRounds {
 public:
  virtual ~ServerRounds() = default;

  // Plays round r (1, 2, ...). `measure` requests norms. A round without clients is skipped: its estimate is zero.
  virtual void play(std::uint32_t round, bool measure) = 0;
  // Writes or reads model, states and counters between two rounds.
  virtual void persist(Archive& archive) = 0;
  // Throws ArchiveError if persist() has read references to rounds after `round`.
  virtual void require_nothing_after(std::uint32_t round) const = 0;
  // Returns the largest RoundOrder::round that clients have seen when `round` rounds have been played.
  [[nodiscard]] virtual std::uint64_t last_order(std::uint32_t round) const { return round; }

  [[nodiscard]] virtual const Ledger& ledger() const = 0;
  // Returns the clients of the last round, and their weights.
  [[nodiscard]] virtual const RoundPlan& plan() const = 0;
  // Returns which messages of the last round count, by cohort position.
  [[nodiscard]] virtual const Delivery& delivery() const = 0;
  [[nodiscard]] std::span<const std::uint8_t> delivered() const { return delivery().delivered(); }
  [[nodiscard]] std::size_t refused() const { return delivery().refused(); }
  [[nodiscard]] std::size_t absent() const { return delivery().absent(); }
  // Returns sum_i w_i e_i [P] over all clients, with the error memory with which each would begin `round`.
  [[nodiscard]] virtual std::vector<double> memory_sum(std::uint32_t round) = 0;
  // Returns AbsentMemory::residual_age of the last round's cohort, before the round.
  [[nodiscard]] virtual double residual_age() const = 0;
  // Returns the estimate of the last round: [P].
  [[nodiscard]] virtual std::span<const double> estimate() const = 0;
};

}  // namespace fl
