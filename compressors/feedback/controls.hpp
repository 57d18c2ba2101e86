// Base class of SCALLION and SCAFCOM: controls c_i that move by the messages sent, and their mean c, which the server broadcasts to
// clients.
//
//   c_i <- c_i + d_i          server  estimate = scale mean d + c,  c <- c + mean_w d
#pragma once

#include <string>

#include "compressors/feedback/feedback.hpp"
#include "fl_core/message/payload_ops.hpp"

namespace fl {

template <class T>
class Controls : public Feedback<T> {
 public:
  explicit Controls(double scale) : scale_(scale) {}

  [[nodiscard]] FeedbackPlan plan() const override {
    return {.slots = {{.name = "control", .owner = SlotOwner::client},
                      {.name = "control_mean", .owner = SlotOwner::shared, .sync = SlotSync::broadcast},
                      {.name = "control_sum", .owner = SlotOwner::server}},
            .moves = {{.slot = "control"}},
            .means = {{.slot = "control", .held_in = "control_sum"}},
            .cost = FeedbackCost{.inputs = 1, .moved = 1, .server = 7}};
  }
  void acknowledge(const ClientRound<T>&, const ClientBlock<T>&, std::uint32_t, const Exchange<T>&) const override {}
  // Adds c as clients know it to the estimate, because clients subtracted the same numbers.
  void receive(const ServerRound<T>& round, std::span<const Aggregate> aggregates, std::span<double> estimate) const override {
    const std::span<double> sum = round.state.slot("control_sum");
    const std::span<T> mean = round.shared.slot("control_mean");
    for (std::size_t j = 0; j < sum.size(); ++j) {
      estimate[j] = scale_ * aggregates[0].estimate[j] + static_cast<double>(mean[j]);
      sum[j] += aggregates[0].population[j];
      mean[j] = static_cast<T>(sum[j]);
    }
  }

 private:
  double scale_;
};

}  // namespace fl
