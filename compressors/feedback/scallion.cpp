// SCALLION: SCAFFOLD's controls with one compressed vector up, for unbiased operators.
//
//   client  H local steps y <- y - gamma (grad f_i(y) - (c_i - c)/H);  G_i: the sum of the gradients on the way
//           d = Q(alpha (G_i - c_i)),  c_i <- c_i + d
//   server  estimate = mean d / alpha + c,  c <- c + mean_w d
// c_i, c and G_i are sums over the round's H local steps, H times the letters of the source, so that the server's step is as long as the
// clients' (learning_rate = 1 averages models). unit = "gradient": such a sum. With Q = identity and alpha = 1 it is SCAFFOLD (option II)
// at half its bits. Q is unbiased, alpha at most 1/(1+omega). Local kind "scallion".
// c [P] is broadcast and paid for. c_i [N,P] is kept while a client is absent; the state takes population weights, |S|/N of the mean.
// Source: X. Huang, P. Li, X. Li, "Stochastic controlled averaging for federated learning with communication compression", ICLR 2024; that
// the server divides by alpha follows from alpha Q(v) standing for Q(alpha v), with which the estimate is unbiased.
#include <algorithm>

#include "compressors/feedback/controls.hpp"
#include "compressors/feedback/needs.hpp"
#include "fl_core/registry.hpp"

namespace fl {

struct ScallionOptions {
  double alpha = 0.1;
};
inline void describe(Schema& s, ScallionOptions& o) {
  s.field("alpha", o.alpha, "step of the controls, at most 1/(1+omega)").above(0).at_most(1);
}

namespace FL_DEVICE_NS {

template <class T>
class Scallion final : public Controls<T> {
 public:
  explicit Scallion(const ScallionOptions& o) : Controls<T>(o.alpha), alpha_(o.alpha) {}

  void check(const Surroundings& around, Problems& problems) const override {
    needs::local_kind("scallion", "scallion", around, problems);
    needs::own_messages("scallion", around, problems);
    needs::unbiased("scallion", around, problems, "scafcom");
    needs::at_most(
        "alpha", "1/(1+omega)", alpha_, [](double omega) { return 1 / (1 + omega); }, around, problems);
  }
  [[nodiscard]] Send<T> prepare(const Exec&, const RoundContext<T>&, const ClientBlock<T>& block, std::size_t) const override {
    Send<T> send;
    send.input.add(static_cast<T>(alpha_), block.vectors[0]);
    return send;
  }

 private:
  double alpha_;
};

FL_REGISTER_PART(Feedback, Scallion, ScallionOptions,
                 (PartInfo{"feedback", "scallion", "SCAFFOLD's controls with one vector up, compressed without bias",
                           "Huang, Li, Li, ICLR 2024"}));

}  // namespace FL_DEVICE_NS
}  // namespace fl
