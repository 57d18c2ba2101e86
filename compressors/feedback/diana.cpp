// DIANA: d = Q(g - h), h <- h + alpha d, estimate h_mean + mean d, with an unbiased Q. See shifted.hpp.
//
// The theory requires alpha <= 1/(1+omega); a larger alpha is refused with an error that states the bound for the operator.
#include "compressors/feedback/shifted.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct DianaOptions {
  double alpha = 0.5;
};
inline void describe(Schema& s, DianaOptions& o) {
  s.field("alpha", o.alpha, "step of the shift; theory: at most 1/(1+omega)").above(0).at_most(1);
}

template <class T>
class Diana final : public Shifted<T> {
 public:
  explicit Diana(const DianaOptions& o) : Shifted<T>("diana", {.lambda = o.alpha, .nu = 1}), alpha_(o.alpha) {}

  [[nodiscard]] FeedbackNeeds needs() const override {
    FeedbackNeeds needs = Shifted<T>::needs();
    needs.operators = {{.is = OperatorClass::unbiased, .instead = "ef21"}};
    needs.bounds = {{.option = "alpha", .value = alpha_}};
    return needs;
  }

  [[nodiscard]] TheoryStep theory_step_size(const TheoryFacts& facts) const override {
    if (!facts.clients_are_convex) return theory::ef_bv(facts, alpha_, 1);
    if (const std::string why = theory::unmet(facts, theory::Gradients::bounded_noise); !why.empty()) return TheoryStep::none(why);
    const double omega = facts.contracts.front().omega.value_or(0);
    // This step holds for mu > 0. For mu = 0 the same inequality bounds the mean of f - f*, because 1 - gamma L_max (1 + 4 omega W) > 0.
    return TheoryStep::of(1 / (facts.L_max() * (1 + 6 * omega * facts.largest_weight())), "DIANA, Gorbunov et al. 2020");
  }

 private:
  double alpha_;
};

FL_REGISTER_PART(Feedback, Diana, DianaOptions,
                 (PartInfo{"feedback", "diana", "unbiased compression of differences to a learned shift",
                           "Mishchenko, Gorbunov, Takac, Richtarik, 2019"}));

}  // namespace fl
