// SCAFCOM: SCALLION with a local momentum, which biased operators need.
//
//   client  H local steps y <- y - gamma (grad f_i(y) - (c_i - c)/H);  G_i: the sum of the gradients on the way
//           v <- (1-beta) v + beta G_i,  d = C(v - c_i),  c_i <- c_i + d          a client's first v is its first G_i
//   server  estimate = mean d + c,  c <- c + mean_w d
// c_i, c, v and G_i are sums over the round's H local steps, as in "scallion". With one local step it is ef21_sgdm; with beta = 1 and C =
// identity it is SCAFFOLD (option II). C is a contraction or absolute. Local kind "scallion"; unit = "gradient": such a sum. c [P] is
// broadcast and counted. c_i, v_i [N,P] are kept while a client is absent; the state uses population weights.
// Source: X. Huang, P. Li, X. Li, "Stochastic controlled averaging for federated learning with communication compression", ICLR 2024.
#include <algorithm>

#include "compressors/feedback/controls.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct ScafcomOptions {
  double momentum = 0.2;
};
inline void describe(Schema& s, ScafcomOptions& o) {
  s.field("momentum", o.momentum, "beta of v <- (1-beta) v + beta G; 1 = no momentum").above(0).at_most(1);
}

template <class T>
class Scafcom final : public Controls<T> {
 public:
  explicit Scafcom(const ScafcomOptions& o) : Controls<T>(1), beta_(static_cast<T>(o.momentum)) {}

  [[nodiscard]] FeedbackPlan plan() const override {
    FeedbackPlan plan = Controls<T>::plan();
    plan.slots.push_back({.name = "momentum", .owner = SlotOwner::client, .double_buffered = true});
    plan.in_place_slot = "momentum";
    plan.host_walks = "adds every vector to its client's momentum";
    plan.cost->inputs = 2;
    plan.cost->other = {.passes = 4, .operations = 4};
    return plan;
  }

  [[nodiscard]] FeedbackNeeds needs() const override {
    return {.name = "scafcom", .local_kind = "scallion", .own_messages = true, .operators = {{.is = OperatorClass::contraction}}};
  }
  [[nodiscard]] Send<T> prepare(const Exec&, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t) const override {
    const BatchView<T> control = block.stored(round.state, "control");
    mix_momentum(round, block, control);
    Send<T> send;
    send.input.add(T(1), block.vectors[0]).add(T(-1), control);
    return send;
  }
  void acknowledge(const ClientRound<T>& round, const ClientBlock<T>& block, std::uint32_t k, const Exchange<T>&) const override {
    round.state.swap("momentum", block.first + k);
  }

 private:
  // Replaces the local vector G - c_i by the new v.
  void mix_momentum(const ClientRound<T>& round, const ClientBlock<T>& block, const BatchView<T>& control) const {
    const BatchView<T> stored = block.stored(round.state, "momentum");
    for (std::uint32_t k = 0; k < block.K; ++k) {
      const T beta = round.state.acknowledged(block.clients[k]) == 0 ? T(1) : beta_, keep = T(1) - beta;
      const T *v = stored.row(k), *c_i = control.row(k);
      T* g = block.vectors[0].row(k);
      for (std::size_t j = 0; j < round.P(); ++j) g[j] = keep * v[j] + beta * (g[j] + c_i[j]);
    }
  }

  T beta_;
};

FL_REGISTER_PART(Feedback, Scafcom, ScafcomOptions,
                 (PartInfo{"feedback", "scafcom", "SCALLION with a local momentum, for biased operators", "Huang, Li, Li, ICLR 2024"}));

}  // namespace fl
