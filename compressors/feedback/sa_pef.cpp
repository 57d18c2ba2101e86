// SA-PEF: clients compute ahead of the model by a share of their error, and carry the rest as error feedback does.
//
//   client  y = w - alpha e,  local work from there gives u g,  p = (1 - alpha) e + u g,  c = C(p),  e <- p - c
//   server  estimate = sum_i weight_i c_i
// alpha = 0 is ef14, alpha = 1 step-ahead error feedback (SAEF), which sends nothing of e. u g is what was done beyond y: w - alpha e - y_H
// of H local steps (unit = update), or gamma g (unit = step). C is a contraction or absolute. e [N,P], kept while a client is absent.
// Source: D. K. Redie, R. Arablouei, S. Werner, "SA-PEF: step-ahead partial error feedback for efficient federated learning", TMLR 2026.
// That alpha e is not part of p is read off its best alpha, about 1/(1 + 12 s^2) with s = H gamma L: it minimises a multiple of
// (1 - alpha)^2 + 12 alpha^2 s^2, where the first term is the share of |e|^2 carried in p and the second what moving y changes in g.
#include "compressors/feedback/error_memory.hpp"
#include "fl_core/registry.hpp"

namespace fl {

struct SaPefOptions {
  double alpha = 0.5;
};
inline void describe(Schema& s, SaPefOptions& o) {
  s.field("alpha", o.alpha, "share of the error by which clients step ahead; 0 = ef14, 1 = SAEF").at_least(0).at_most(1);
}

namespace FL_DEVICE_NS {

template <class T>
class SaPef final : public ErrorMemory<T> {
 public:
  explicit SaPef(const SaPefOptions& o) : ErrorMemory<T>("sa_pef"), alpha_(o.alpha) {}

  [[nodiscard]] std::string offset_slot() const override { return "error"; }
  [[nodiscard]] double offset_factor() const override { return alpha_; }

  void check(const Surroundings& around, Problems& problems) const override {
    ErrorMemory<T>::check(around, problems);
    if (!around.computes_anywhere)
      problems.push_back({"feedback.up.kind", "sa_pef's clients compute at models of their own, which local kind '" + around.local_update +
                                                  "' does not: use \"sgd\" or \"gradient\""});
    if (around.unit == Unit::gradient)
      problems.push_back({"compressor.up.unit", "sa_pef takes its error off the model: unit must be \"step\" or \"update\""});
    if (around.num_phases > 1) problems.push_back({"compressor.up.kind", "sa_pef sends messages of one phase"});
  }

  [[nodiscard]] Send<T> prepare(const Exec&, const RoundContext<T>& context, const ClientBlock<T>& block, std::size_t) const override {
    Send<T> send;
    send.input.add(static_cast<T>(1 - alpha_), block.stored(*context.state, "error")).add(context.input_factor(), block.vectors[0]);
    send.state = {StateRule::residual, block.vectors[0]};
    return send;
  }

 private:
  double alpha_;
};

FL_REGISTER_PART(Feedback, SaPef, SaPefOptions,
                 (PartInfo{"feedback", "sa_pef", "step-ahead partial error feedback: a share of the error moves where clients compute",
                           "Redie, Arablouei, Werner, TMLR 2026"}));

}  // namespace FL_DEVICE_NS
}  // namespace fl
