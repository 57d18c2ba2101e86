// EF14: error feedback as first published; Algorithms 1 and 2 of Sahu et al. 2021, selected by the unit of the input.
//
//   client  p = e + u g,  c = C(p),  e <- p - c           server  estimate = sum_i weight_i c_i
//   unit = step      u = gamma: the step size inside the memory (EF-SGD, EC-SGD, EC-GD; Algorithm 1)
//   unit = gradient  u = 1: the server applies step size, momentum and weight decay after the mean (Algorithm 2)
//   unit = update    the memory holds differences of models after local steps (Qsparse-local-SGD)
// Invariant (unit = step, uniform weights): x_t - mean(e_t) follows exact SGD. e [N,P] is kept while a client is absent.
// Sources: F. Seide et al., "1-bit stochastic gradient descent", INTERSPEECH 2014; S. U. Stich, J.-B. Cordonnier, M. Jaggi, "Sparsified SGD
// with memory", NeurIPS 2018; S. P. Karimireddy et al., "Error feedback fixes SignSGD", ICML 2019.
#include "compressors/feedback/error_memory.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

template <class T>
class Ef14 final : public ErrorMemory<T> {
 public:
  explicit Ef14(const NoOptions&) : ErrorMemory<T>("ef14") {}

  [[nodiscard]] FeedbackPlan plan() const override {
    FeedbackPlan plan = ErrorMemory<T>::plan();
    plan.estimate_is_sum = true;
    return plan;
  }
  [[nodiscard]] TheoryStep theory_step_size(const TheoryFacts& facts) const override { return theory::error_feedback(facts); }
  [[nodiscard]] TheoryStep tight_step_size(const TheoryFacts& facts) const override { return theory::tight(facts); }
};

FL_REGISTER_PART(Feedback, Ef14, NoOptions,
                 (PartInfo{"feedback", "ef14", "error feedback: the error of a message is added to the next input",
                           "Seide et al., INTERSPEECH 2014; Stich, Cordonnier, Jaggi, NeurIPS 2018; Karimireddy et al., ICML 2019"}));

}  // namespace fl
