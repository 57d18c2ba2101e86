// EC-LSVRG: error feedback around gradients whose sampling noise vanishes at the optimum.
//
//   client  g = grad f_ij(w) - grad f_ij(r_i) + grad f_i(r_i)        (local kind "lsvrg": the reference point r_i, renewed at random)
//           p = e + gamma g,  c = C(p),  e <- p - c                   server  estimate = sum_i weight_i c_i
// It is ef14 with local kind "lsvrg". Heterogeneity still keeps it at a distance from x*, which EC-LSVRG-DIANA removes: feedback "ec_diana"
// with local kind "lsvrg". unit = "step" as published, or "gradient", which is the same for a constant gamma. C is a contraction or
// absolute. e, r_i [N,P] are kept while a client is absent.
// Source: E. Gorbunov, D. Kovalev, D. Makarenko, P. Richtarik, "Linearly converging error compensated SGD", NeurIPS 2020.
#include "compressors/feedback/error_memory.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

template <class T>
class EcLsvrg final : public ErrorMemory<T> {
 public:
  explicit EcLsvrg(const NoOptions&) : ErrorMemory<T>("ec_lsvrg") {}

  [[nodiscard]] FeedbackPlan plan() const override {
    FeedbackPlan plan = ErrorMemory<T>::plan();
    plan.estimate_is_sum = true;
    plan.host_walks = "keeps every client's reference point and gradient (local kind lsvrg)";
    return plan;
  }

  [[nodiscard]] FeedbackNeeds needs() const override {
    FeedbackNeeds needs = ErrorMemory<T>::needs();
    needs.local_kind = "lsvrg";
    return needs;
  }
};

FL_REGISTER_PART(Feedback, EcLsvrg, NoOptions,
                 (PartInfo{"feedback", "ec_lsvrg", "error feedback on variance-reduced gradients (L-SVRG)",
                           "Gorbunov, Kovalev, Makarenko, Richtarik, NeurIPS 2020"}));

}  // namespace fl
