// Low-precision grid: b-bit integers on a grid that spans the segment, with random rounding.
//
//   step = lambda max|x| / (2^(b-1) - 1),   C(x)_j = step (floor(a) + [u < a - floor(a)])
//   a = x_j / step clipped to -2^(b-1) .. 2^(b-1) - 1
//
// lambda = 1 (clip = 1) clips nothing: unbiased with omega = min((d-1) / (4 s^2), sqrt(d-1) / (2 s)), s = 2^(b-1) - 1, as for qsgd with s
// levels of max|x|; for a given step E|C(x) - x|^2 <= d step^2 / 4. With lambda < 1 it is unbiased with respect to the clipped x~, and
// E|C(x) - x|^2 = E|C(x) - x~|^2 + |x~ - x|^2 <= lambda^2 d max|x|^2 / (4 s^2) + (1 - lambda)^2 |x|^2.
// scaled = true divides by 1 + omega: a contraction in expectation, delta = 1 / (1 + omega) without clipping.
// Published bits: b per coordinate and 32 per segment. The variance is derived here; the clipping factor is quoted from memory of the
// source. Yu, Wu, Huang, "Exploring fast and communication-efficient algorithms in large-scale distributed networks" (LPC-SVRG), AISTATS
// 2019; Yu, Wu, Huang, "Double quantization for communication-efficient distributed optimization", NeurIPS 2019.
// Group: quantiser
#include <cmath>
#include <type_traits>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/random_levels.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct LpcOptions {
  std::int64_t bits = 8;
  double clip = 1;
  bool scaled = false;
};

inline void describe(Schema& s, LpcOptions& o) {
  s.field("bits", o.bits, "b, the width of a level").at_least(2).at_most(16);
  s.field("clip", o.clip, "lambda: the grid ends at lambda max|x|; 1 clips nothing and is unbiased").above(0).at_most(1);
  s.field("scaled", o.scaled, "divide by 1 + omega, as error feedback needs it; without clipping a contraction");
}

namespace FL_DEVICE_NS {
namespace {

template <class T>
struct LpcStep {
  double factor;  // lambda / (2^(b-1) - 1)
  FL_HD T operator()(double largest, std::size_t) const { return usable_scale<T>(largest * factor); }
};

template <class T>
struct LpcLevel {
  using Map = std::integral_constant<LevelMap, LevelMap::linear>;
  double half;  // 2^(b-1)
  static constexpr bool kHasChance = true;
  FL_HD std::int32_t operator()(T p, T step, std::uint32_t word, std::size_t) const {
    double a = static_cast<double>(p) / static_cast<double>(step);
    a = a < half - 1 ? a : half - 1;  // NaN becomes the largest
    a = a > -half ? a : -half;
    a = step > T(0) ? a : 0;
    const double below = floor(a);
    return static_cast<std::int32_t>(below) + (static_cast<double>(word) * 0x1p-32 < a - below ? 1 : 0);
  }
};

template <class T>
class Lpc final : public Compressor<T> {
 public:
  explicit Lpc(const LpcOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    const double omega = omega_of(scope), kept = options_.clip, lost = 1 - kept;
    const bool clips = kept < 1;
    Contract contract;
    contract.cost = costs::reading(2) + costs::levels(8, costs::Rounding::random, 1);
    contract.domain.largest.least = std::ldexp(sizeof(T) == sizeof(float) ? 1.2e-38 : 1e-307, static_cast<int>(options_.bits));
    if (!options_.scaled) {
      contract.omega = clips ? kept * kept * grid_variance(scope) + lost * lost : omega;
    } else if (!clips) {
      contract.delta = 1 / (1 + omega);
      contract.delta_holds = Contract::Holds::in_expectation;
    }
    if (clips) contract.domain.unbiased_up_to = "clipping";
    return contract;
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope& scope) const override {
    return all_known(level_format(scope));
  }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const double half = std::ldexp(1.0, static_cast<int>(options_.bits) - 1);
    const std::vector<RandomStream> streams = client_streams(context);
    quantize_segments_fused(exec, input, scope, level_format(scope), width_of(static_cast<std::int64_t>(half) - 1), MagnitudeOf{},
                            Reduce::max, LpcStep<T>{options_.clip / (half - 1)}, LpcLevel<T>{half}, std::span<const RandomStream>(streams),
                            state, messages);
  }

 private:
  [[nodiscard]] LevelFormat level_format(const Scope& scope) const {
    return {.map = LevelMap::linear,
            .min_level = -(std::int32_t{1} << (options_.bits - 1)),
            .bits = static_cast<std::uint8_t>(options_.bits),
            .unit = options_.scaled ? 1 / (1 + omega_of(scope)) : 1.0};
  }
  [[nodiscard]] double levels() const { return std::ldexp(1.0, static_cast<int>(options_.bits) - 1) - 1; }
  [[nodiscard]] double omega_of(const Scope& scope) const {
    return random_levels_omega(LevelNorm::max, static_cast<double>(largest_segment(scope)), levels());
  }
  // Returns d / (4 s^2), the variance relative to max|x|^2.
  [[nodiscard]] double grid_variance(const Scope& scope) const {
    return static_cast<double>(largest_segment(scope)) / (4 * levels() * levels());
  }
  LpcOptions options_;
};

FL_REGISTER_PART(Compressor, Lpc, LpcOptions,
                 (PartInfo{"compressor", "lpc", "b-bit integers on a grid over the segment's range, rounded at random; unbiased",
                           "Yu, Wu, Huang, Double quantization for communication-efficient distributed optimization, NeurIPS 2019"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
