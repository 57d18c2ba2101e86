// SA-PEF: clients step ahead of the model by a share of their error, and keep the rest as error feedback does.
//
//   client  y = w - alpha e,  H local steps from there,  p = (1 - alpha) e + (w - y_H),  c = C(p),  e <- p - c
//   server  estimate = sum_i weight_i c_i
// w - y_H contains the alpha e of the step ahead, so p = e + u g: nothing is lost, as in ef14. Only the point of the gradients differs: it
// is nearer to the server's next model. alpha = 0 is ef14, alpha = 1 is step-ahead error feedback (SAEF). u g is the result of the local
// steps (unit = update), or gamma g (unit = step). C is a contraction or absolute. e [N,P] is kept while a client is absent.
// Sources: D. K. Redie, R. Arablouei, S. Werner, "SA-PEF: step-ahead partial error feedback for efficient federated learning", TMLR 2026,
// whose published implementation measures the update from the received model and uses alpha = 0.85; A. Xu, Z. Huo, H. Huang, "Step-ahead
// error feedback for distributed training with compressed gradient", AAAI 2021 (SAEF).
#include "compressors/feedback/error_memory.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct SaPefOptions {
  double alpha = 0.85;
};
inline void describe(Schema& s, SaPefOptions& o) {
  s.field("alpha", o.alpha, "share of the error by which clients step ahead; 0 = ef14, 1 = SAEF").at_least(0).at_most(1);
}

template <class T>
class SaPef final : public ErrorMemory<T> {
 public:
  explicit SaPef(const SaPefOptions& o) : ErrorMemory<T>("sa_pef"), alpha_(o.alpha) {}

  [[nodiscard]] FeedbackPlan plan() const override {
    FeedbackPlan plan = ErrorMemory<T>::plan();
    plan.offset_slot = "error";
    plan.offset_factor = alpha_;
    plan.estimate_is_sum = true;
    plan.host_walks = "subtracts the error from every client's model";
    plan.cost->other = {.passes = 3, .operations = 2};
    return plan;
  }

  [[nodiscard]] FeedbackNeeds needs() const override {
    FeedbackNeeds needs = ErrorMemory<T>::needs();
    needs.own_models = true;
    needs.units = {Unit::step, Unit::update};
    needs.units_why = "takes its error off the model";
    needs.own_messages = true;
    return needs;
  }

 private:
  double alpha_;
};

FL_REGISTER_PART(Feedback, SaPef, SaPefOptions,
                 (PartInfo{"feedback", "sa_pef", "step-ahead partial error feedback: a share of the error moves where clients compute",
                           "Redie, Arablouei, Werner, TMLR 2026"}));

}  // namespace fl
