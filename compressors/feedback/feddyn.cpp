// FedDyn's correction: clients and server sum the messages sent.
//
//   client  sends d_i = w - y_i;   s_i <- s_i + decoded d_i   (h_i = alpha s_i is the gradient at the client's last minimiser)
//   server  s <- s + sum_{i in S} w_i d_i   (population weights: 1/N of each in the paper);   estimate = sum_i weight_i d_i + s
// With s = h / alpha this is theta = mean y_i - h / alpha; only the local update "feddyn" uses alpha itself.
// Source: D. A. E. Acar et al., "Federated learning based on dynamic regularization", ICLR 2021, Algorithm 1.
#include "compressors/feedback/feedback.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/message/payload_ops.hpp"

namespace fl {

template <class T>
class FedDyn final : public Feedback<T> {
 public:
  explicit FedDyn(const NoOptions&) {}

  [[nodiscard]] FeedbackPlan plan() const override {
    return {.slots = {{.name = "moved", .owner = SlotOwner::client}, {.name = "moved_sum", .owner = SlotOwner::server}},
            .moves = {{.slot = "moved"}},
            .means = {{.slot = "moved", .held_in = "moved_sum"}},
            .host_walks = "adds every client's earlier moves to its steps (local kind feddyn)",
            .cost = FeedbackCost{.inputs = 1, .moved = 1, .server = 5}};
  }
  [[nodiscard]] FeedbackNeeds needs() const override { return {.name = "feddyn", .local_kind = "feddyn", .own_messages = true}; }
  [[nodiscard]] Send<T> prepare(const Exec&, const ClientRound<T>&, const ClientBlock<T>& block, std::size_t channel) const override {
    Send<T> send;
    send.input.add(T(1), block.vectors[channel]);
    return send;
  }
  void acknowledge(const ClientRound<T>&, const ClientBlock<T>&, std::uint32_t, const Exchange<T>&) const override {}
  void receive(const ServerRound<T>& round, std::span<const Aggregate> aggregates, std::span<double> estimate) const override {
    const std::span<double> sum = round.state.slot("moved_sum");
    for (std::size_t j = 0; j < sum.size(); ++j) {
      sum[j] += aggregates[0].population[j];
      estimate[j] = aggregates[0].estimate[j] + sum[j];
    }
  }
};

FL_REGISTER_PART(Feedback, FedDyn, NoOptions,
                 (PartInfo{"feedback", "feddyn", "sums of the sent updates, which FedDyn's clients and server use",
                           "Acar et al., ICLR 2021"}));

}  // namespace fl
