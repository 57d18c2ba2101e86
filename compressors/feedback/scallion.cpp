// SCALLION: SCAFFOLD's controls with one compressed vector on the uplink, for unbiased operators.
//
//   client  H local steps y <- y - gamma (grad f_i(y) - (c_i - c)/H);  G_i: the sum of the gradients on the way
//           d = Q(alpha (G_i - c_i)),  c_i <- c_i + d
//   server  estimate = mean d + c,  c <- c + mean_w d                                           estimate = "averaged", as published
//           estimate = mean d / alpha + c                                                      estimate = "unbiased"
// c_i, c and G_i are sums over the round's H local steps, H times the quantities of the source, so that the server's step is as long as the
// clients' (learning_rate = 1 averages models). unit = "gradient": such a sum. With Q = identity and alpha = 1 it is SCAFFOLD (option II)
// at half its bits. Q is unbiased, alpha is at most 1/(1+omega). Local kind "scallion".
// The published estimate averages over rounds: if all clients take part, its expectation is (1 - alpha) c + alpha mean G, so that Q's noise
// is scaled by alpha. "unbiased" divides by alpha, with expectation mean G and the full noise. c [P] is broadcast and counted. c_i [N,P] is
// kept while a client is absent; the state uses population weights, |S|/N of the mean.
// Source: X. Huang, P. Li, X. Li, "Stochastic controlled averaging for federated learning with communication compression", ICLR 2024.
// "unbiased" is not part of the source: it is DIANA's estimate, with local steps.
#include <algorithm>

#include "compressors/feedback/controls.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct ScallionOptions {
  double alpha = 0.1;
  enum class Estimate { averaged, unbiased } estimate = Estimate::averaged;
};
inline void describe(Schema& s, ScallionOptions& o) {
  using E = ScallionOptions::Estimate;
  s.field("alpha", o.alpha, "step of the controls, at most 1/(1+omega)").above(0).at_most(1);
  s.choice("estimate", o.estimate, {{E::averaged, "averaged"}, {E::unbiased, "unbiased"}},
           "direction of the server's step: c + mean d as published, an average over rounds, or c + mean d / alpha");
}

template <class T>
class Scallion final : public Controls<T> {
 public:
  explicit Scallion(const ScallionOptions& o) : Controls<T>(scale_of(o)), alpha_(o.alpha) {}

  [[nodiscard]] FeedbackPlan plan() const override {
    FeedbackPlan plan = Controls<T>::plan();
    plan.host_walks = "adds every client's control to its steps (local kind scallion)";
    return plan;
  }
  [[nodiscard]] FeedbackNeeds needs() const override {
    return {.name = "scallion",
            .local_kind = "scallion",
            .own_messages = true,
            .operators = {{.is = OperatorClass::unbiased, .instead = "scafcom"}},
            .bounds = {{.option = "alpha", .value = alpha_}}};
  }
  [[nodiscard]] Send<T> prepare(const Exec&, const ClientRound<T>&, const ClientBlock<T>& block, std::size_t) const override {
    Send<T> send;
    send.input.add(static_cast<T>(alpha_), block.vectors[0]);
    return send;
  }

 private:
  [[nodiscard]] static double scale_of(const ScallionOptions& o) {
    return o.estimate == ScallionOptions::Estimate::unbiased ? 1 / o.alpha : 1;
  }

  double alpha_;
};

FL_REGISTER_PART(Feedback, Scallion, ScallionOptions,
                 (PartInfo{"feedback", "scallion", "SCAFFOLD's controls with one vector up, compressed without bias",
                           "Huang, Li, Li, ICLR 2024"}));

}  // namespace fl
