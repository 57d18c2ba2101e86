// EF21: d = C(g - h), h <- h + d. See shifted.hpp for the rule it shares with DIANA and EF-BV.
//
//   client  d = C(v - h),  h <- h + d          server  estimate = h_mean + mean d,  h_mean <- h_mean + mean_w d
// If all clients take part, the estimate is the mean of all h_i after the round, as published. v = g, or its momentum.
// init = "compressed" starts from h = 0 and sends C(g) first; "dense" sends the first gradient uncompressed (h = g) and counts it. momentum
// < 1 gives EF21-SGDM, also available as "ef21_sgdm". C is a contraction or absolute; an unscaled unbiased operator is refused.
// h_i [N,P] are kept while a client is absent.
// Source: P. Richtarik, I. Sokolov, I. Fatkhullin, "EF21: a new, simpler, theoretically better, and practically faster error feedback",
// NeurIPS 2021.
#include "compressors/feedback/shifted.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct Ef21Options {
  enum class Init { compressed, dense } init = Init::compressed;
  double momentum = 1.0;
};
inline void describe(Schema& s, Ef21Options& o) {
  s.choice("init", o.init, {{Ef21Options::Init::compressed, "compressed"}, {Ef21Options::Init::dense, "dense"}},
           "first message: C(g) from h = 0, or g itself (its bits are counted)");
  s.field("momentum", o.momentum, "eta of EF21-SGDM, v <- (1-eta) v + eta g; 1 = plain EF21").above(0).at_most(1);
}

template <class T>
class Ef21 final : public Shifted<T> {
 public:
  explicit Ef21(const Ef21Options& o)
      : Shifted<T>("ef21", {.lambda = 1,
                            .nu = 1,
                            .momentum = o.momentum,
                            .has_momentum = o.momentum < 1,
                            .dense_start = o.init == Ef21Options::Init::dense}),
        momentum_(o.momentum) {}

  [[nodiscard]] FeedbackNeeds needs() const override {
    FeedbackNeeds needs = Shifted<T>::needs();
    needs.operators = {{.is = OperatorClass::contraction}};
    return needs;
  }
  [[nodiscard]] TheoryStep theory_step_size(const TheoryFacts& facts) const override { return theory::ef21(facts, momentum_); }
  [[nodiscard]] TheoryStep tight_step_size(const TheoryFacts& facts) const override {
    return momentum_ < 1 ? Feedback<T>::tight_step_size(facts) : theory::tight(facts);
  }

 private:
  double momentum_;
};

FL_REGISTER_PART(Feedback, Ef21, Ef21Options,
                 (PartInfo{"feedback", "ef21", "compressed differences to a shift; momentum gives EF21-SGDM",
                           "Richtarik, Sokolov, Fatkhullin, NeurIPS 2021; Fatkhullin, Tyurin, Richtarik, NeurIPS 2023"}));

}  // namespace fl
