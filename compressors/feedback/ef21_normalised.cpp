// ||EF21||: EF21 whose server steps along the unit vector of its estimate, for losses whose smoothness grows with the gradient.
//
//   client  d = C(v - h),  h <- h + d                              v = g, or a momentum of it (||EF21-SGDM||)
//   server  s = h_mean + mean d,  estimate = s / |s| (0 if s = 0),  h_mean <- h_mean + mean_w d
// The step size is then a length: x moves by gamma in every round, so gamma must decrease for x to converge. It is not gradient descent
// even with C = identity. C is a contraction or absolute; unit "gradient". h_i, v_i [N,P] are kept while a client is absent.
// Source: S. Khirirat, A. Sadiev, A. Riabinin, E. Gorbunov, P. Richtarik, "Error feedback under (L0,L1)-smoothness: normalization and
// momentum", 2024.
#include <cmath>

#include "compressors/feedback/shifted.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/norms.hpp"

namespace fl {

struct Ef21NormalisedOptions {
  double momentum = 1.0;
};
inline void describe(Schema& s, Ef21NormalisedOptions& o) {
  s.field("momentum", o.momentum, "eta of v <- (1-eta) v + eta g; 1 = no momentum").above(0).at_most(1);
}

template <class T>
class Ef21Normalised final : public Shifted<T> {
 public:
  explicit Ef21Normalised(const Ef21NormalisedOptions& o)
      : Shifted<T>("ef21_normalised", {.lambda = 1, .nu = 1, .momentum = o.momentum, .has_momentum = o.momentum < 1}) {}

  [[nodiscard]] FeedbackNeeds needs() const override {
    FeedbackNeeds needs = Shifted<T>::needs();
    needs.units = {Unit::gradient};
    needs.units_why = "compresses gradients";
    needs.operators = {{.is = OperatorClass::contraction}};
    return needs;
  }

  void receive(const ServerRound<T>& round, std::span<const Aggregate> aggregates, std::span<double> estimate) const override {
    Shifted<T>::receive(round, aggregates, estimate);
    const double norm = std::sqrt(sum_of_squares(estimate.data(), estimate.size()));
    if (norm > 0)
      for (double& e : estimate) e /= norm;
  }
};

FL_REGISTER_PART(Feedback, Ef21Normalised, Ef21NormalisedOptions,
                 (PartInfo{"feedback", "ef21_normalised", "EF21 whose steps have the length of the step size",
                           "Khirirat, Sadiev, Riabinin, Gorbunov, Richtarik, 2024"}));

}  // namespace fl
