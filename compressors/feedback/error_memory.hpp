// The error memory of EF14 and related methods stores the dropped parts: p = e + u g, c = C(p), e <- p - c, estimate = mean c.
//
// e [N,P] is kept while a client is absent, unless participation.absent sets another rule.
#pragma once

#include <algorithm>
#include <string>

#include "compressors/feedback/feedback.hpp"

namespace fl {

template <class T>
class ErrorMemory : public Feedback<T> {
 public:
  explicit ErrorMemory(std::string name) : name_(std::move(name)) {}

  [[nodiscard]] FeedbackPlan plan() const override {
    return {.slots = {{.name = "error", .owner = SlotOwner::client, .double_buffered = true}},
            .in_place_slot = "error",
            .error_slot = "error",
            .needs_population = false,
            .host_walks = "",
            .cost = FeedbackCost{.inputs = 2, .written = 1, .server = 2}};
  }

  [[nodiscard]] FeedbackNeeds needs() const override {
    return {.name = name_, .one_vector = true, .operators = {{.is = OperatorClass::bounded, .instead = "feedback 'none' or 'diana'"}}};
  }

  [[nodiscard]] Send<T> prepare(const Exec&, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t) const override {
    Send<T> send;
    send.input.add(T(1), block.stored(round.state, "error")).add(round.input_factor(), block.vectors[0]);
    send.state = {StateRule::residual, block.vectors[0]};
    return send;
  }
  void acknowledge(const ClientRound<T>& round, const ClientBlock<T>& block, std::uint32_t k, const Exchange<T>&) const override {
    round.state.swap("error", block.first + k);
  }
  void receive(const ServerRound<T>&, std::span<const Aggregate> aggregates, std::span<double> estimate) const override {
    std::copy(aggregates[0].estimate.begin(), aggregates[0].estimate.end(), estimate.begin());
  }

 protected:
  std::string name_;
};

}  // namespace fl
