// Decides which messages of a round count.
//
// Only finite messages count. A message that is not finite, or that does not arrive in time, is treated as lost: the client's messages of
// later phases of the round do not count either, and the other clients share its weight in proportion. The clients learn which messages
// count when the round closes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fl_core/round/cohort_runner.hpp"

namespace fl {

class Delivery {
 public:
  // Opens a round for a cohort of this size; all members are expected.
  void open(std::size_t cohort) {
    delivered_.assign(cohort, 1);
    refused_ = absent_ = 0;
  }
  // Notes a round without clients.
  void skip() { open(0); }

  // Takes the messages [M] of a phase, and redistributes the cohort's weights [M] of refused messages to the others.
  template <class T>
  void take(std::span<const ClientMessage<T>> messages, std::span<double> weights) {
    std::vector<std::uint8_t> counts(messages.size());
    std::ranges::transform(messages, counts.begin(), [](const ClientMessage<T>& message) { return message.refused ? 0 : 1; });
    take(counts, weights);
    for (const ClientMessage<T>& message : messages) absent_ += message.is_absent ? 1 : 0;
  }

  // Returns 1 for each client whose messages arrived in all phases so far, [M].
  [[nodiscard]] std::span<const std::uint8_t> delivered() const { return delivered_; }
  // Returns the number of refused clients in the round.
  [[nodiscard]] std::size_t refused() const { return refused_; }
  // Returns the number of messages that did not arrive in time, over all phases of the round.
  [[nodiscard]] std::size_t absent() const { return absent_; }

 private:
  void take(std::span<const std::uint8_t> counts, std::span<double> weights);

  std::vector<std::uint8_t> delivered_;
  std::size_t refused_ = 0, absent_ = 0;
};

}  // namespace fl
