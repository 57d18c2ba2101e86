// MARINA: compressed differences of gradients on one sample, and one coin for all clients.
//
//   coin (probability p, always in round 1): send the gradient, uncompressed      estimate = sum_i weight_i g_i
//   else: c = Q(grad f_i(w) - grad f_i(w_previous)) on the same sample             estimate <- estimate + sum_i weight_i c_i
// Clients keep no state; the previous model is a shared slot, which holds the model received in the previous round. The local update
// "gradient_difference" computes both kinds of vector. With Q = identity it is gradient descent.
// Source: E. Gorbunov, K. Burlachenko, Z. Li, P. Richtarik, "MARINA: faster non-convex distributed learning with compression", ICML 2021.
#include <algorithm>
#include <cmath>

#include "compressors/feedback/feedback.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct MarinaOptions {
  double p = 0.1;
};
inline void describe(Schema& s, MarinaOptions& o) {
  s.field("p", o.p, "probability of a round with uncompressed gradients").above(0).at_most(1);
}

template <class T>
class Marina final : public Feedback<T> {
 public:
  explicit Marina(const MarinaOptions& o) : p_(o.p) {}

  [[nodiscard]] FeedbackPlan plan() const override {
    return {.slots = {{.name = "estimator", .owner = SlotOwner::server},
                      {.name = "previous_model", .owner = SlotOwner::shared, .sync = SlotSync::last_model}},
            .host_walks = "",
            .cost = FeedbackCost{.inputs = 1, .server = 4}};
  }

  [[nodiscard]] FeedbackNeeds needs() const override {
    return {.name = "marina",
            .local_kind = "gradient_difference",
            .units = {Unit::gradient},
            .units_why = "compresses gradients",
            .operators = {{.is = OperatorClass::unbiased, .instead = "ef21"}},
            .every_client = true};
  }
  [[nodiscard]] TheoryStep theory_step_size(const TheoryFacts& facts) const override {
    if (const std::string why = theory::unmet_by_the_round(facts); !why.empty()) return TheoryStep::none(why);
    if (facts.batch > 0)
      return TheoryStep::none("the theorem needs full gradients: local.batch must be 0, is " + std::to_string(facts.batch));
    const double omega = facts.contracts.front().omega.value_or(0) * facts.largest_weight();
    return TheoryStep::of(1 / (facts.L_quadratic_mean() * (1 + std::sqrt((1 - p_) * omega / p_))),
                          "MARINA, Gorbunov et al. 2021, theorem 2.1");
  }

  [[nodiscard]] bool toss(const RunSettings& run, std::uint32_t round) const override {
    const RandomStream stream(hash64(run.seeds.compressor, static_cast<std::uint64_t>(Purpose::coin)), 0, round);
    return round == 1 || stream.uniform<double>(0) < p_;
  }
  [[nodiscard]] Send<T> prepare(const Exec&, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t) const override {
    Send<T> send;
    send.input.add(T(1), block.vectors[0]);
    send.dense = round.order.coin;
    return send;
  }
  void acknowledge(const ClientRound<T>&, const ClientBlock<T>&, std::uint32_t, const Exchange<T>&) const override {}

  void receive(const ServerRound<T>& round, std::span<const Aggregate> aggregates, std::span<double> estimate) const override {
    const std::span<double> estimator = round.state.slot("estimator");
    for (std::size_t j = 0; j < estimate.size(); ++j) {
      estimator[j] = round.order.coin ? aggregates[0].estimate[j] : estimator[j] + aggregates[0].estimate[j];
      estimate[j] = estimator[j];
    }
  }

 private:
  double p_;
};

FL_REGISTER_PART(Feedback, Marina, MarinaOptions,
                 (PartInfo{"feedback", "marina", "compressed gradient differences with occasional full rounds",
                           "Gorbunov, Burlachenko, Li, Richtarik, ICML 2021"}));

}  // namespace fl
