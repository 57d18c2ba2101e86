// No feedback: the compression error is lost (DCGD, plain quantised SGD).
//
//   client  c = C(u g)        server  estimate = sum_i weight_i c_i        u: 1, or gamma when the unit is a step
#include "compressors/feedback/memoryless.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

template <class T>
class NoFeedback final : public Memoryless<T> {
 public:
  explicit NoFeedback(const NoOptions&) {}

  [[nodiscard]] FeedbackPlan plan() const override {
    FeedbackPlan plan = Memoryless<T>::plan();
    plan.estimate_is_sum = true;
    return plan;
  }

  [[nodiscard]] FeedbackNeeds needs() const override { return {.name = "none", .keeps_error = false}; }
  // An unbiased operator acts as noise with M = omega.
  [[nodiscard]] TheoryStep theory_step_size(const TheoryFacts& facts) const override {
    if (const std::string why = theory::unmet(facts, theory::Gradients::bounded_noise); !why.empty()) return TheoryStep::none(why);
    const Contract& contract = facts.contracts.front();
    if (theory::is_lossless(contract)) return TheoryStep::of(1 / facts.L, "gradient descent: nothing is lost");
    if (!contract.omega)
      return TheoryStep::none("the theorem needs an exact or an unbiased operator; a biased one needs a feedback such as ef14 or ef21");
    return TheoryStep::of(1 / (facts.L_max() * (1 + *contract.omega * facts.largest_weight())),
                          "unbiased compression, Sahu et al. 2021, theorem 8 with M = omega");
  }
};

FL_REGISTER_PART(Feedback, NoFeedback, NoOptions, (PartInfo{"feedback", "none", "no memory: the error of a message is lost", ""}));

}  // namespace fl
