// Natural dithering: QSGD with levels at powers of two, so that small coordinates are not all rounded to zero.
//
//   scale = |x|_p of the segment, t = |x_j| / scale;   levels 0, 2^(1-s), .., 1/4, 1/2, 1
//   C(x)_j = scale sgn(x_j) l, l one of the two levels around t, drawn so that E l = t
//
// Unbiased, omega = 1/8 + (d^(1/r) / 2^(s-1)) min(1, d^(1/r) / 2^(s-1)), r = min(p, 2), d the size of the largest segment. Proof: between
// two powers the variance is at most t^2/8 (as for natural compression); below tau = 2^(1-s) it is t (tau - t) <= min(t tau, tau^2), and
// sum_j t_j scale^2 = |x|_1 |x|_p <= d^(1/r) |x|^2, d scale^2 <= d^(2/r) |x|^2. scaled = true sends C(x) / (1 + omega), a contraction in
// expectation with delta = 1 / (1 + omega). Published bits: sign and level of fixed width, 1 + ceil(log2(s+1)) per coordinate, 32 per norm.
// Horvath, Ho, Horvath, Sahu, Canini, Richtarik, "Natural compression for distributed deep learning", 2019 (MSML 2022).
// Group: quantiser
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "compressors/support/random_levels.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

enum class DitheringNorm { l1, l2, max };

struct NaturalDitheringOptions {
  std::int64_t levels = 8;
  DitheringNorm norm = DitheringNorm::l2;
  bool scaled = false;
};

inline void describe(Schema& s, NaturalDitheringOptions& o) {
  s.field("levels", o.levels, "s, the powers of two between 0 and the norm, 1 included").at_least(1).at_most(60);
  s.choice("norm", o.norm, {{DitheringNorm::l1, "l1"}, {DitheringNorm::l2, "l2"}, {DitheringNorm::max, "max"}},
           "the p-norm that a segment is divided by");
  s.field("scaled", o.scaled, "divide by 1 + omega: no longer unbiased, but a contraction, as error feedback needs it");
}

namespace FL_DEVICE_NS {
namespace {

// Computes the scale, which contains the factor 1/(1+omega) because the map has no unit.
template <class T>
struct DitheringScale {
  DitheringNorm norm;
  double factor;
  T smallest;
  FL_HD T operator()(double reduced, std::size_t) const {
    const double scale = norm == DitheringNorm::l2 ? sqrt(reduced) : reduced;
    return scale < static_cast<double>(smallest) ? T(0) : static_cast<T>(scale * factor);
  }
};

// Rounds to levels. The message contains scale * factor; t refers to the scale itself.
template <class T>
struct DitheringLevel {
  using Map = std::integral_constant<LevelMap, LevelMap::power_of_two>;
  std::int32_t s;
  double factor;
  FL_HD std::int32_t operator()(T p, T scale, std::uint32_t word, std::size_t) const {
    double t = static_cast<double>(p < T(0) ? -p : p) * (factor / static_cast<double>(scale));
    t = t < 1 ? t : 1;  // NaN becomes 1
    t = scale > T(0) ? t : 0;
    int exponent = 0;
    const double mantissa = 2 * frexp(t, &exponent);  // t = mantissa 2^(exponent-1), 1 <= mantissa < 2
    std::int32_t level = exponent - 1 + s;            // level of the power below t
    double up = mantissa - 1;
    if (t < ldexp(1.0, 1 - s)) {
      level = 0;
      up = ldexp(t, s - 1);
    }
    level += static_cast<double>(word) * 0x1p-32 < up ? 1 : 0;
    return p < T(0) ? -level : level;
  }
};

template <class T>
class NaturalDithering final : public Compressor<T> {
 public:
  explicit NaturalDithering(const NaturalDitheringOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    const double omega = omega_of(scope);
    Contract contract;
    contract.cost = costs::reading(2) + costs::levels(8, costs::Rounding::random, 5);
    if (options_.scaled) {
      contract.delta = 1 / (1 + omega);
      contract.delta_holds = Contract::Holds::in_expectation;
    } else {
      contract.omega = omega;
    }
    const MagnitudeRange range =
        sizeof(T) == sizeof(float)
            ? MagnitudeRange{std::ldexp(options_.scaled ? (1 + omega) * 1.2e-38 : 1.2e-38, static_cast<int>(options_.levels))}
            : MagnitudeRange{1e-150, 1e150};
    (options_.norm == DitheringNorm::max ? contract.domain.largest : contract.domain.norm) = range;
    return contract;
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope&) const override { return all_known(level_format()); }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const auto s = static_cast<std::int32_t>(options_.levels);
    const double factor = options_.scaled ? 1 / (1 + omega_of(scope)) : 1.0;
    const T smallest = static_cast<T>(std::ldexp(static_cast<double>(std::numeric_limits<T>::min()) / factor, s));
    const DitheringScale<T> scale{options_.norm, factor, smallest};
    const std::vector<RandomStream> streams = client_streams(context);
    const auto quantize = [&](auto map, Reduce reduce) {
      quantize_segments_fused(exec, input, scope, level_format(), width_of(s), map, reduce, scale, DitheringLevel<T>{s, factor},
                              std::span<const RandomStream>(streams), state, messages);
    };
    switch (options_.norm) {
      case DitheringNorm::l1: return quantize(MagnitudeOf{}, Reduce::sum);
      case DitheringNorm::l2: return quantize(SquareOf{}, Reduce::sum);
      case DitheringNorm::max: return quantize(MagnitudeOf{}, Reduce::max);
    }
  }

 private:
  [[nodiscard]] LevelFormat level_format() const {
    const auto s = static_cast<std::int32_t>(options_.levels);
    return symmetric_levels({.map = LevelMap::power_of_two, .min_exponent = 1 - s}, s);
  }
  [[nodiscard]] double omega_of(const Scope& scope) const {
    const auto d = static_cast<double>(largest_segment(scope));
    const double most = (options_.norm == DitheringNorm::l1 ? d : std::sqrt(d)) / std::ldexp(1.0, static_cast<int>(options_.levels) - 1);
    return 1.0 / 8 + most * std::min(1.0, most);
  }
  NaturalDitheringOptions options_;
};

FL_REGISTER_PART(Compressor, NaturalDithering, NaturalDitheringOptions,
                 (PartInfo{"compressor", "natural_dithering", "random rounding to powers of two of the segment's norm; unbiased",
                           "Horvath, Ho, Horvath, Sahu, Canini, Richtarik, Natural compression, MSML 2022"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
