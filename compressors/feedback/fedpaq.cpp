// FedPAQ: periodic averaging of quantised updates, without memory.
//
//   client  y = w after H local SGD steps,  c = Q(w - y)          server  estimate = sum_i weight_i c_i
// Q is unbiased, the unit is an update (local kind "sgd"), and the cohort may be sampled. Neither side keeps state, so absence has no
// effect. It is feedback "none" with a check of the operator: a biased operator without a memory need not converge.
// Source: A. Reisizadeh, A. Mokhtari, H. Hassani, A. Jadbabaie, R. Pedarsani, "FedPAQ: a communication-efficient federated learning method
// with periodic averaging and quantization", AISTATS 2020.
#include "compressors/feedback/memoryless.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

template <class T>
class FedPaq final : public Memoryless<T> {
 public:
  explicit FedPaq(const NoOptions&) {}

  [[nodiscard]] FeedbackPlan plan() const override {
    FeedbackPlan plan = Memoryless<T>::plan();
    plan.estimate_is_sum = true;
    return plan;
  }

  [[nodiscard]] FeedbackNeeds needs() const override {
    return {.name = "fedpaq",
            .one_vector = true,
            .units = {Unit::update},
            .units_why = "quantises differences of models after local steps, which local kind \"sgd\" sends",
            .operators = {{.is = OperatorClass::unbiased, .instead = "ef14"}}};
  }
};

FL_REGISTER_PART(Feedback, FedPaq, NoOptions,
                 (PartInfo{"feedback", "fedpaq", "unbiased quantisation of updates after local steps, without memory",
                           "Reisizadeh, Mokhtari, Hassani, Jadbabaie, Pedarsani, AISTATS 2020"}));

}  // namespace fl
