// Clip21: clipped differences to a shift, so that no client's message is longer than tau and no part of the gradient is lost permanently.
//
//   client  d = C(clip(g - h)),  clip(v) = min(1, tau/|v|) v,  h <- h + d
//   server  estimate = h_mean + mean d,  h_mean <- h_mean + mean_w d
// With C = identity, as published, h approaches g by tau per round and equals g once they are that close. C may compress the clipped
// vector: a contraction or absolute. It is not gradient descent with C = identity until the clipping ends. unit "gradient", tau in its
// unit.
// h_i [N,P] are kept while a client is absent.
// Source: S. Khirirat, E. Gorbunov, S. Horvath, R. Islamov, F. Karray, P. Richtarik, "Clip21: error feedback for gradient clipping", 2023.
#include <cmath>

#include "compressors/feedback/shifted.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/norms.hpp"

namespace fl {

struct Clip21Options {
  double tau = 1.0;
};
inline void describe(Schema& s, Clip21Options& o) { s.field("tau", o.tau, "largest norm of a client's difference").above(0); }

template <class T>
class Clip21 final : public Shifted<T> {
 public:
  explicit Clip21(const Clip21Options& o) : Shifted<T>("clip21", {.lambda = 1, .nu = 1}), tau_(o.tau) {}

  [[nodiscard]] FeedbackPlan plan() const override {
    FeedbackPlan plan = Shifted<T>::plan();
    plan.host_walks = "clips every difference of a gradient to its shift";
    // g -= h, the norm, and the factor.
    plan.cost = FeedbackCost{.inputs = 1, .moved = 1, .server = 5, .other = {.passes = 6, .operations = 4}};
    return plan;
  }
  [[nodiscard]] FeedbackNeeds needs() const override {
    FeedbackNeeds needs = Shifted<T>::needs();
    needs.units = {Unit::gradient};
    needs.units_why = "compresses gradients";
    needs.operators = {{.is = OperatorClass::contraction}};
    return needs;
  }

  [[nodiscard]] Send<T> prepare(const Exec&, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t) const override {
    const BatchView<T> shift = block.stored(round.state, "shift");
    for (std::uint32_t k = 0; k < block.K; ++k) clip(shift.row(k), block.vectors[0].row(k), round.P());
    Send<T> send;
    send.input.add(T(1), block.vectors[0]);
    return send;
  }

 private:
  // Computes g <- clip(g - h).
  void clip(const T* h, T* g, std::size_t P) const {
    for (std::size_t j = 0; j < P; ++j) g[j] -= h[j];
    const double norm = std::sqrt(sum_of_squares(g, P));
    if (norm <= tau_) return;
    const T factor = static_cast<T>(tau_ / norm);
    for (std::size_t j = 0; j < P; ++j) g[j] *= factor;
  }

  double tau_;
};

FL_REGISTER_PART(Feedback, Clip21, Clip21Options,
                 (PartInfo{"feedback", "clip21", "clipped differences to a shift",
                           "Khirirat, Gorbunov, Horvath, Islamov, Karray, Richtarik, 2023"}));

}  // namespace fl
