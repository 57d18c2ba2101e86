// Base class of methods without memory, such as none and fedpaq: the input is the local vector in its unit, and the estimate is the mean of
// the arrived messages.
#pragma once

#include <algorithm>

#include "compressors/feedback/feedback.hpp"

namespace fl {

template <class T>
class Memoryless : public Feedback<T> {
 public:
  [[nodiscard]] Send<T> prepare(const Exec&, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t channel) const override {
    Send<T> send;
    send.input.add(round.input_factor(), block.vectors[channel]);
    return send;
  }
  void acknowledge(const ClientRound<T>&, const ClientBlock<T>&, std::uint32_t, const Exchange<T>&) const override {}
  [[nodiscard]] FeedbackPlan plan() const override {
    return {.needs_population = false, .host_walks = "", .cost = FeedbackCost{.server = 2}};
  }
  void receive(const ServerRound<T>&, std::span<const Aggregate> aggregates, std::span<double> estimate) const override {
    std::copy(aggregates[0].estimate.begin(), aggregates[0].estimate.end(), estimate.begin());
  }
};

}  // namespace fl
