// QSGD: every coordinate is rounded at random to one of s levels between 0 and the norm of its segment.
//
//   C(x)_j = scale * sign(x_j) * xi_j,   a = s |x_j| / scale,   xi_j = (floor(a) + [u < a - floor(a)]) / s,   scale = |x|_2 or max|x|
//
// Unbiased. If d is the size of the largest segment,
//   l2:  omega = min(d / s^2, sqrt(d) / s)      (s = 1: the exact supremum is sqrt(d) - 1)
//   max: omega = min((d-1) / (4 s^2), sqrt(d-1) / (2 s))      (s = 1 is TernGrad without clipping)
// scaled = true sends C(x) / (1 + omega), a contraction in expectation with delta = 1 / (1 + omega), as error feedback needs it.
// A segment whose norm is 0, or too small to be divided into s normal numbers, is sent as zeros.
// Published bits: sign and level of fixed width, 1 + ceil(log2(s+1)) per coordinate, 32 per norm (the paper without Elias codes). adaqs.cpp
// and dqsgd.cpp contain schedules of s over rounds and norms.
// Alistarh, Grubic, Li, Tomioka, Vojnovic, "QSGD: Communication-efficient SGD via gradient quantization and encoding", NeurIPS 2017.
// Group: quantiser
#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/random_levels.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct QsgdOptions {
  std::int64_t levels = 127;
  LevelNorm norm = LevelNorm::l2;
  bool scaled = false;
};

inline void describe(Schema& s, QsgdOptions& o) {
  s.field("levels", o.levels, "s, the levels between 0 and the norm; 127 fills 8 bits with the sign").at_least(1).at_most(1048576);
  s.choice("norm", o.norm, {{LevelNorm::l2, "l2"}, {LevelNorm::max, "max"}}, "what a segment is divided by");
  s.field("scaled", o.scaled, "divide by 1 + omega: no longer unbiased, but a contraction, as error feedback needs it");
}

namespace FL_DEVICE_NS {
namespace {

template <class T>
class Qsgd final : public Compressor<T> {
 public:
  explicit Qsgd(const QsgdOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    const double omega = omega_of(scope);
    Contract contract;
    contract.cost = costs::reading(2) + costs::levels(8, costs::Rounding::random);
    if (options_.scaled) {
      contract.delta = 1 / (1 + omega);
      contract.delta_holds = Contract::Holds::in_expectation;
    } else {
      contract.omega = omega;
    }
    contract.domain = random_levels_domain<T>(options_.norm, unit(scope));
    return contract;
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope& scope) const override {
    return all_known(random_levels_format(options_.levels, unit(scope)));
  }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    send_random_levels(exec, context, input, scope, options_.norm, options_.levels, unit(scope), state, messages);
  }

 private:
  [[nodiscard]] double unit(const Scope& scope) const {
    const auto s = static_cast<double>(options_.levels);
    return options_.scaled ? 1 / (s * (1 + omega_of(scope))) : 1 / s;
  }
  [[nodiscard]] double omega_of(const Scope& scope) const {
    return random_levels_omega(options_.norm, static_cast<double>(largest_segment(scope)), static_cast<double>(options_.levels));
  }
  QsgdOptions options_;
};

FL_REGISTER_PART(Compressor, Qsgd, QsgdOptions,
                 (PartInfo{"compressor", "qsgd", "random rounding to s levels of the segment's norm; unbiased",
                           "Alistarh, Grubic, Li, Tomioka, Vojnovic, QSGD, NeurIPS 2017"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
