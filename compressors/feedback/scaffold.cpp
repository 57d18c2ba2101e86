// SCAFFOLD's control variates: two channels and state in both directions.
//
//   client  sends  w - y  (channel "model")  and  c_i' - c_i  (channel "control");  c_i <- c_i + decoded control
//   server  estimate = sum_i weight_i (w - y_i);   c <- c + sum_{i in S} w_i (c_i' - c_i)   (population weights: |S|/N of the mean)
// c is a shared slot: it is broadcast every round and counted. The local update "scaffold" computes both vectors. If the control channel is
// compressed, both sides update by the decoded message, so c stays the mean of the c_i.
// Source: S. P. Karimireddy et al., "SCAFFOLD: stochastic controlled averaging for federated learning", ICML 2020 (option II).
#include <algorithm>

#include "compressors/feedback/feedback.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/message/payload_ops.hpp"

namespace fl {

template <class T>
class Scaffold final : public Feedback<T> {
 public:
  explicit Scaffold(const NoOptions&) {}

  [[nodiscard]] FeedbackPlan plan() const override {
    return {.slots = {{.name = "control", .owner = SlotOwner::client},
                      {.name = "control_mean", .owner = SlotOwner::shared, .sync = SlotSync::broadcast},
                      {.name = "control_sum", .owner = SlotOwner::server}},
            .moves = {{.slot = "control", .channel = 1}},
            .means = {{.slot = "control", .held_in = "control_sum"}},
            .host_walks = "adds every client's control to its steps (local kind scaffold)",
            .cost = FeedbackCost{.inputs = 2, .moved = 1, .server = 6}};
  }
  [[nodiscard]] FeedbackNeeds needs() const override { return {.name = "scaffold", .local_kind = "scaffold", .own_messages = true}; }
  [[nodiscard]] Send<T> prepare(const Exec&, const ClientRound<T>&, const ClientBlock<T>& block, std::size_t channel) const override {
    Send<T> send;
    send.input.add(T(1), block.vectors[channel]);
    return send;
  }
  void acknowledge(const ClientRound<T>&, const ClientBlock<T>&, std::uint32_t, const Exchange<T>&) const override {}
  void receive(const ServerRound<T>& round, std::span<const Aggregate> aggregates, std::span<double> estimate) const override {
    const std::span<double> sum = round.state.slot("control_sum");
    const std::span<T> mean = round.shared.slot("control_mean");
    std::copy(aggregates[0].estimate.begin(), aggregates[0].estimate.end(), estimate.begin());
    for (std::size_t j = 0; j < sum.size(); ++j) {
      sum[j] += aggregates[1].population[j];
      mean[j] = static_cast<T>(sum[j]);
    }
  }
};

FL_REGISTER_PART(Feedback, Scaffold, NoOptions,
                 (PartInfo{"feedback", "scaffold", "control variates of SCAFFOLD: two channels, state both ways",
                           "Karimireddy et al., ICML 2020"}));

}  // namespace fl
