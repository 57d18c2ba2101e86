// The messages of the rounds that are open, by wave. A batch that is still held elsewhere keeps its messages: a round that begins then gets
// other memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "clients/host/cohort_messages.hpp"

namespace fl {

template <class T>
class WaveMessages {
 public:
  // For cohorts of up to max_cohort, with payloads and own values in these memories.
  WaveMessages(std::size_t num_channels, std::size_t max_cohort, Device of_payloads, Device of_own)
      : num_channels_(num_channels), max_cohort_(max_cohort), of_payloads_(of_payloads), of_own_(of_own) {}

  // Selects the messages of a wave, whose round may begin.
  void select(std::size_t wave, bool begins) {
    if (wave >= waves_.size()) waves_.resize(wave + 1);
    now_ = wave;
    Memory& sent = waves_[wave];
    if (sent != nullptr && !(begins && sent.use_count() > 1)) return;
    const auto again = std::ranges::find_if(held_, [](const Memory& held) { return held.use_count() == 1; });
    if (again != held_.end()) return std::swap(sent, *again);
    if (sent != nullptr && held_.size() < kMostHeld) held_.push_back(sent);
    sent = std::make_shared<CohortMessages<T>>(num_channels_, max_cohort_, of_payloads_, of_own_);
  }
  // Return the messages that are selected: to write them, and to hold them.
  [[nodiscard]] CohortMessages<T>& now() const { return *waves_[now_]; }
  [[nodiscard]] std::shared_ptr<const void> memory() const { return waves_[now_]; }

  [[nodiscard]] std::size_t max_cohort() const { return max_cohort_; }
  // Calls use(messages) for all waves that have any.
  template <class Use>
  void for_each(const Use& use) const {
    for (const Memory& sent : waves_)
      if (sent != nullptr) use(*sent);
  }

 private:
  using Memory = std::shared_ptr<CohortMessages<T>>;
  static constexpr std::size_t kMostHeld = 2;

  std::size_t num_channels_, max_cohort_;
  Device of_payloads_, of_own_;
  std::vector<Memory> waves_;
  std::size_t now_ = 0;
  std::vector<Memory> held_;  // of rounds that ended while a batch had them; used again when it is gone
};

}  // namespace fl
