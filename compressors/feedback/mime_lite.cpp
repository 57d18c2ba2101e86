// MimeLite's server momentum: two channels on the uplink, the momentum on the downlink.
//
//   client  sends w - y_i (channel "model") and (1 - beta)(grad f_i(w) - m) (channel "momentum")
//   server  estimate = sum_i weight_i (w - y_i);   m <- m + sum_i weight_i (1 - beta)(grad f_i(w) - m)
// m is a shared slot: it is broadcast every round and counted. Clients keep no state, as cross-device federated learning requires.
// Source: S. P. Karimireddy et al., "Breaking the centralized barrier for cross-device federated learning", NeurIPS 2021.
#include <algorithm>

#include "compressors/feedback/feedback.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

template <class T>
class MimeLite final : public Feedback<T> {
 public:
  explicit MimeLite(const NoOptions&) {}

  [[nodiscard]] FeedbackPlan plan() const override {
    return {.slots = {{.name = "momentum", .owner = SlotOwner::shared, .sync = SlotSync::broadcast},
                      {.name = "momentum_sum", .owner = SlotOwner::server}},
            .host_walks = "",
            .cost = FeedbackCost{.inputs = 2, .server = 6}};
  }
  [[nodiscard]] FeedbackNeeds needs() const override { return {.name = "mime_lite", .local_kind = "mime_lite"}; }
  [[nodiscard]] Send<T> prepare(const Exec&, const ClientRound<T>&, const ClientBlock<T>& block, std::size_t channel) const override {
    Send<T> send;
    send.input.add(T(1), block.vectors[channel]);
    return send;
  }
  void acknowledge(const ClientRound<T>&, const ClientBlock<T>&, std::uint32_t, const Exchange<T>&) const override {}
  void receive(const ServerRound<T>& round, std::span<const Aggregate> aggregates, std::span<double> estimate) const override {
    std::copy(aggregates[0].estimate.begin(), aggregates[0].estimate.end(), estimate.begin());
    const std::span<double> sum = round.state.slot("momentum_sum");
    const std::span<T> momentum = round.shared.slot("momentum");
    for (std::size_t j = 0; j < sum.size(); ++j) {
      sum[j] += aggregates[1].estimate[j];
      momentum[j] = static_cast<T>(sum[j]);
    }
  }
};

FL_REGISTER_PART(Feedback, MimeLite, NoOptions,
                 (PartInfo{"feedback", "mime_lite", "the server's momentum of MimeLite: two channels up, the momentum down",
                           "Karimireddy et al., NeurIPS 2021"}));

}  // namespace fl
