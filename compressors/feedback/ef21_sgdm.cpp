// EF21-SGDM: EF21 applied to a momentum of stochastic gradients, which converges for minibatches of any size.
//
//   client  v <- (1-eta) v + eta g,  d = C(v - h),  h <- h + d          server  estimate = h_mean + mean d,  h_mean <- h_mean + mean_w d
// A client's first v is its first g. eta = 1 is ef21 with stochastic gradients. C is a contraction or absolute; unit "gradient" or
// "update". v_i, h_i [N,P] are kept while a client is absent. It is feedback "ef21" with its `momentum`, under a separate name and default.
// Source: I. Fatkhullin, A. Tyurin, P. Richtarik, "Momentum provably improves error feedback!", NeurIPS 2023.
#include "compressors/feedback/shifted.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct Ef21SgdmOptions {
  double momentum = 0.1;
};
inline void describe(Schema& s, Ef21SgdmOptions& o) {
  s.field("momentum", o.momentum, "eta of v <- (1-eta) v + eta g; 1 = EF21").above(0).at_most(1);
}

template <class T>
class Ef21Sgdm final : public Shifted<T> {
 public:
  explicit Ef21Sgdm(const Ef21SgdmOptions& o)
      : Shifted<T>("ef21_sgdm", {.lambda = 1, .nu = 1, .momentum = o.momentum, .has_momentum = o.momentum < 1}), momentum_(o.momentum) {}

  [[nodiscard]] FeedbackNeeds needs() const override {
    FeedbackNeeds needs = Shifted<T>::needs();
    needs.operators = {{.is = OperatorClass::contraction}};
    return needs;
  }
  [[nodiscard]] TheoryStep theory_step_size(const TheoryFacts& facts) const override { return theory::ef21(facts, momentum_); }

 private:
  double momentum_;
};

FL_REGISTER_PART(Feedback, Ef21Sgdm, Ef21SgdmOptions,
                 (PartInfo{"feedback", "ef21_sgdm", "compressed differences of a momentum to a shift",
                           "Fatkhullin, Tyurin, Richtarik, NeurIPS 2023"}));

}  // namespace fl
