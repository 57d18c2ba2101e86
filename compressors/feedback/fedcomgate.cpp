// FedCOMGATE: local steps along tracked gradients, compressed updates.
//
//   client  local steps y <- y - gamma (grad f_i(y) - t_i / H);  c = Q((w - y)/gamma)
//           t_i <- t_i + c_i - mean c                    once the mean is known: sum_i w_i t_i stays 0, and t_i tends to grad f_i - grad f
//   server  estimate = mean c
// t_i is H times delta_i of the source: a sum over the round's H local steps. unit = "gradient" is such a sum, and the server's
// learning_rate = 1 averages models (gamma of the source). Q is unbiased. The tracker is not damped: the error that Q adds to c_i stays in
// t_i until the next round, whose error is then omega times as large, so omega should be below 1 (natural, qsgd with enough levels). With Q
// = identity and one local step it is gradient descent. Local kind "fedcomgate".
// The mean [P] is sent to the cohort when the round closes, and is counted. t_i [N,P] is kept while a client is absent.
// Source: F. Haddadpour, M. M. Kamani, A. Mokhtari, M. Mahdavi, "Federated learning with compression: unified analysis and sharp
// guarantees", AISTATS 2021. t_i changes by the decoded c_i, so that its mean stays 0; the published code uses c_i before compression.
#include <algorithm>

#include "compressors/feedback/feedback.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/message/payload_ops.hpp"

namespace fl {

template <class T>
class FedComGate final : public Feedback<T> {
 public:
  explicit FedComGate(const NoOptions&) {}

  [[nodiscard]] FeedbackPlan plan() const override {
    return {.slots = {{.name = "tracker", .owner = SlotOwner::client},
                      {.name = "mean_update", .owner = SlotOwner::shared, .sync = SlotSync::broadcast_at_close}},
            .means = {{.slot = "tracker"}},
            .host_walks = "updates every client's tracker",
            .cost = FeedbackCost{.inputs = 1, .moved = 2, .server = 4}};
  }
  [[nodiscard]] FeedbackNeeds needs() const override {
    return {.name = "fedcomgate",
            .local_kind = "fedcomgate",
            .own_messages = true,
            .operators = {{.is = OperatorClass::unbiased, .instead = "scafcom"}}};
  }
  [[nodiscard]] Send<T> prepare(const Exec&, const ClientRound<T>&, const ClientBlock<T>& block, std::size_t) const override {
    Send<T> send;
    send.input.add(T(1), block.vectors[0]);
    return send;
  }
  // mean_update is that of this round: clients receive it when the round closes.
  void acknowledge(const ClientRound<T>& round, const ClientBlock<T>& block, std::uint32_t k, const Exchange<T>& exchange) const override {
    const std::span<const T> mean = round.shared.slot("mean_update");
    T* t = block.stored(round.state, "tracker").row(k);
    add_scaled(*block.messages[0][k], exchange.channels[0].scope, T(1), t);
    for (std::size_t j = 0; j < round.P(); ++j) t[j] -= mean[j];
  }
  void receive(const ServerRound<T>& round, std::span<const Aggregate> aggregates, std::span<double> estimate) const override {
    std::copy(aggregates[0].estimate.begin(), aggregates[0].estimate.end(), estimate.begin());
    std::transform(estimate.begin(), estimate.end(), round.shared.slot("mean_update").begin(), [](double e) { return static_cast<T>(e); });
  }
};

FL_REGISTER_PART(Feedback, FedComGate, NoOptions,
                 (PartInfo{"feedback", "fedcomgate", "gradient tracking around compressed updates",
                           "Haddadpour, Kamani, Mokhtari, Mahdavi, AISTATS 2021"}));

}  // namespace fl
