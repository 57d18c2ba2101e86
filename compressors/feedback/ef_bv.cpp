// EF-BV: d = C(g - h), h <- h + lambda d, estimate h_mean + nu mean d. (1,1) is EF21; (1/(1+omega), 1) with unbiased C is DIANA.
#include "compressors/feedback/shifted.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct EfBvOptions {
  double lambda = 1.0, nu = 1.0;
};
inline void describe(Schema& s, EfBvOptions& o) {
  s.field("lambda", o.lambda, "step of the shift").above(0).at_most(1);
  s.field("nu", o.nu, "weight of the compressed difference in the estimate").above(0);
}

template <class T>
class EfBv final : public Shifted<T> {
 public:
  explicit EfBv(const EfBvOptions& o) : Shifted<T>("ef_bv", {.lambda = o.lambda, .nu = o.nu}), lambda_(o.lambda), nu_(o.nu) {}

  [[nodiscard]] TheoryStep theory_step_size(const TheoryFacts& facts) const override { return theory::ef_bv(facts, lambda_, nu_); }

 private:
  double lambda_, nu_;
};

FL_REGISTER_PART(Feedback, EfBv, EfBvOptions,
                 (PartInfo{"feedback", "ef_bv", "one rule between EF21 and DIANA", "Condat, Yi, Richtarik, NeurIPS 2022"}));

}  // namespace fl
