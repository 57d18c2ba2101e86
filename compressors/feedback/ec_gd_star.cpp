// EC-GDstar: error feedback of the difference between a gradient and that at the optimum, the ideal that EC-GD-DIANA learns.
//
//   client  p = e + gamma (grad f_i(w) - grad f_i(x*)),  c = C(p),  e <- p - c          server  estimate = sum_i weight_i c_i
// sum_i w_i grad f_i(x*) = 0, so the shifts change no mean; but they remove the part of the input that does not vanish and that keeps EC-GD
// at a distance from x*. It is ef14 with local kind "gradient", subtract = "optimum": x* must be known, which requires a convex problem.
// unit = "step" as published, or "gradient", which is the same for a constant gamma. C is a contraction or absolute. e [N,P] is kept while
// a client is absent.
// Source: E. Gorbunov, D. Kovalev, D. Makarenko, P. Richtarik, "Linearly converging error compensated SGD", NeurIPS 2020; run as in Sahu et
// al. 2021, Figures 8 and 9.
#include "compressors/feedback/error_memory.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

template <class T>
class EcGdStar final : public ErrorMemory<T> {
 public:
  explicit EcGdStar(const NoOptions&) : ErrorMemory<T>("ec_gd_star") {}

  [[nodiscard]] FeedbackPlan plan() const override {
    FeedbackPlan plan = ErrorMemory<T>::plan();
    plan.estimate_is_sum = true;
    plan.host_walks = "subtracts the gradient at the optimum from every gradient";
    return plan;
  }
  // The method is ef14 on f_i(x) - <grad f_i(x*), x>, which have the same sum and the same smoothness.
  [[nodiscard]] TheoryStep theory_step_size(const TheoryFacts& facts) const override { return theory::error_feedback(facts); }

  [[nodiscard]] FeedbackNeeds needs() const override {
    FeedbackNeeds needs = ErrorMemory<T>::needs();
    needs.local_kind = "gradient";
    needs.subtracts_optimum = true;
    return needs;
  }
};

FL_REGISTER_PART(Feedback, EcGdStar, NoOptions,
                 (PartInfo{"feedback", "ec_gd_star", "error feedback on gradients minus those at the optimum",
                           "Gorbunov, Kovalev, Makarenko, Richtarik, NeurIPS 2020"}));

}  // namespace fl
