// Which messages of a round count.
//
// A message counts when it is finite. One that is not never arrives: what its client sends in later
// phases of the round does not count either, and the others share its weight, in proportion. The clients learn whose messages count when
// the round closes.
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
  // A round opens for a cohort of this size, from which all are expected.
  void open(std::size_t cohort) {
    delivered_.assign(cohort, 1);
    refused_ = 0;
  }
  // A round without clients passes.
  void skip() { open(0); }

  // Takes the messages [M] of a phase, and moves the cohort's weights [M] from those that do not count to those that do.
  template <class T>
  void take(std::span<const ClientMessage<T>> messages, std::span<double> weights) {
    std::vector<std::uint8_t> counts(messages.size());
    std::ranges::transform(messages, counts.begin(), [](const ClientMessage<T>& message) { return message.refused ? 0 : 1; });
    take(counts, weights);
  }

  // Whose messages arrived in all phases so far, [M].
  [[nodiscard]] std::span<const std::uint8_t> delivered() const { return delivered_; }
  // How many clients of the round were refused.
  [[nodiscard]] std::size_t refused() const { return refused_; }

 private:
  void take(std::span<const std::uint8_t> counts, std::span<double> weights);

  std::vector<std::uint8_t> delivered_;
  std::size_t refused_ = 0;
};

}  // namespace fl
