// EF21-P: error feedback of models on the downlink, with DCGD or DIANA on the uplink.
//
//   down    w <- w + C(x - w); clients compute at w: [compressor.down] with a contraction C
//   client  d = Q(grad f_i(w) - h),  h <- h + alpha d               server  estimate = h_mean + mean d,  h_mean <- h_mean + alpha mean_w d
// alpha = 0 is EF21-P + DCGD, whose clients keep no state; 0 < alpha <= 1/(1+omega) is EF21-P + DIANA. The downlink updates w in the same
// way under every feedback; this feedback checks that the downlink compresses. Q is unbiased; unit "gradient".
// h_i [N,P] are kept while a client is absent; its w is updated and counted when it returns.
// Source: K. Gruntkowska, A. Tyurin, P. Richtarik, "EF21-P and friends: improved theoretical communication complexity for distributed
// optimization with bidirectional compression", ICML 2023.
#include "compressors/feedback/shifted.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct Ef21POptions {
  double alpha = 0;
};
inline void describe(Schema& s, Ef21POptions& o) {
  s.field("alpha", o.alpha, "step of DIANA's shift on the uplink, at most 1/(1+omega); 0 = DCGD").at_least(0).at_most(1);
}

template <class T>
class Ef21P final : public Shifted<T> {
 public:
  explicit Ef21P(const Ef21POptions& o) : Shifted<T>("ef21_p", {.lambda = o.alpha, .nu = 1}), alpha_(o.alpha) {}

  [[nodiscard]] FeedbackNeeds needs() const override {
    FeedbackNeeds needs = Shifted<T>::needs();
    needs.units = {Unit::gradient};
    needs.units_why = "compresses gradients";
    needs.operators = {{.is = OperatorClass::unbiased, .instead = "ef21 with the same [compressor.down]"}};
    if (alpha_ > 0) needs.bounds = {{.option = "alpha", .value = alpha_}};
    needs.contracting_downlink = true;
    return needs;
  }

 private:
  double alpha_;
};

FL_REGISTER_PART(Feedback, Ef21P, Ef21POptions,
                 (PartInfo{"feedback", "ef21_p", "error feedback of models on the downlink; DCGD or DIANA on the uplink",
                           "Gruntkowska, Tyurin, Richtarik, ICML 2023"}));

}  // namespace fl
