// CAFe, compressed aggregate feedback: clients compress the difference between their update and the last aggregate, and keep no state.
//
//   client  c_i = C(u g - a)                 a: the server's last estimate, the same for all
//   server  estimate = a + sum_i weight_i c_i,  a <- estimate                                              a = 0 at first
// a [P] is a shared slot that is broadcast and counted each round: a client without state cannot derive it from the model. With C =
// identity the estimate equals that without compression. It saves bits if clients' updates are similar; the heterogeneous part cannot be
// predicted from a.
// C is a contraction or absolute; any unit. Absence of clients has no effect.
// Source: T. Ortega, C.-Y. Huang, X. Li, H. Jafarkhani, "Communication compression for distributed learning with aggregate and
// server-guided feedback", 2025 (first as "CAFe: communication-efficient federated learning", 2024); without the server's own data
// (CAFe-S).
#include "compressors/feedback/feedback.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

template <class T>
class Cafe final : public Feedback<T> {
 public:
  explicit Cafe(const NoOptions&) {}

  [[nodiscard]] FeedbackPlan plan() const override {
    return {.slots = {{.name = "aggregate", .owner = SlotOwner::shared, .sync = SlotSync::broadcast}},
            .host_walks = "",
            .cost = FeedbackCost{.inputs = 2, .server = 4}};
  }
  [[nodiscard]] FeedbackNeeds needs() const override {
    return {.name = "cafe", .one_vector = true, .own_messages = true, .operators = {{.is = OperatorClass::contraction}}};
  }

  [[nodiscard]] Send<T> prepare(const Exec&, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t) const override {
    const std::span<const T> last = round.shared.slot("aggregate");
    Send<T> send;
    send.input.add(round.input_factor(), block.vectors[0]).add(T(-1), shared_view<const T>(last.data(), block.K, round.P()));
    return send;
  }
  void acknowledge(const ClientRound<T>&, const ClientBlock<T>&, std::uint32_t, const Exchange<T>&) const override {}

  void receive(const ServerRound<T>& round, std::span<const Aggregate> aggregates, std::span<double> estimate) const override {
    const std::span<T> last = round.shared.slot("aggregate");
    for (std::size_t j = 0; j < estimate.size(); ++j) {
      estimate[j] = static_cast<double>(last[j]) + aggregates[0].estimate[j];
      last[j] = static_cast<T>(estimate[j]);
    }
  }
};

FL_REGISTER_PART(Feedback, Cafe, NoOptions,
                 (PartInfo{"feedback", "cafe", "compressed differences to the server's last aggregate; clients keep nothing",
                           "Ortega, Huang, Li, Jafarkhani, 2025"}));

}  // namespace fl
