// 8-bit approximation of Dettmers: sign and seven bits of a dynamic tree, relative to the largest magnitude of the segment.
//
//   scale = max|x|,   C(x)_j = scale sgn(x_j) tree(m), m = 0 .. 127 the entry nearest to t_j = |x_j| / scale
//   (fl_core/message/level_format.hpp)
//
// The tree has 2^i equal cells in the decade 10^(i-7) .. 10^(i-6), i = 0 .. 6, each represented by its middle. The relative error in the
// decade is at most rho_i = 4.5 / 2^i, and the absolute error of all smaller entries at most h_i = 0.45 10^(i-7) / 2^(i-1). No entry is
// further from its image than from zero, so |C(x)-x| <= |x|. A contraction: for each i = 3 .. 7 (rho_7 = 0: nothing lies above 1) delta >=
// 1 - rho_i^2 - d h_i^2, and, since the error of the largest entry is only (0.45/64) max|x|, delta >= (1 - (0.45/64)^2) / d; d is the size
// of the largest segment. For a fixed scale it is absolute, kappa^2 = d (0.45/64)^2 scale^2. Entries below 2.75e-7 of the largest become 0,
// the largest becomes 0.993 of itself. Published bits: 8 per coordinate and 32 per segment. The bounds are derived here. GRACE's code takes
// the entry at the left edge of a bin and not the nearest one.
// T. Dettmers, "8-bit approximations for parallelism in deep learning", ICLR 2016.
// Group: quantiser
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "fl_core/config/registry.hpp"

namespace fl::FL_DEVICE_NS {
namespace {

template <class T>
struct LargestScale {
  FL_HD T operator()(double largest, std::size_t) const { return usable_scale<T>(largest); }
};

// Entry m = 1 .. 127 is the nearest one from middle[m-1] on.
template <class T>
struct TreeLevel {
  using Map = std::integral_constant<LevelMap, LevelMap::dynamic_tree>;
  T middle[127];
  TreeLevel() {
    for (std::int32_t m = 1; m <= 127; ++m) middle[m - 1] = static_cast<T>((dynamic_tree(m - 1) + dynamic_tree(m)) / 2);
  }
  static constexpr LevelWidth kWidth = LevelWidth::w8;
  static constexpr bool kHasChance = false;
  FL_HD std::int32_t operator()(T p, T scale, std::uint32_t, std::size_t) const {
    const T t = scale > T(0) ? (p < T(0) ? -p : p) / scale : T(0);
    std::int32_t m = 0;  // number of middles that are at most t
    for (std::int32_t half = 64; half > 0; half /= 2) m += middle[m + half - 1] <= t ? half : 0;
    return p < T(0) ? -m : m;
  }
};

template <class T>
class Dettmers8 final : public Compressor<T> {
 public:
  explicit Dettmers8(const NoOptions&) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    const auto d = static_cast<double>(largest_segment(scope));
    constexpr double kTop = 0.45 / 64;
    double delta = (1 - kTop * kTop) / d;
    for (int i = 3; i <= 7; ++i) {
      const double rho = i < 7 ? std::ldexp(4.5, -i) : 0, h = std::ldexp(0.45 * std::pow(10.0, i - 7), 1 - i);
      delta = std::max(delta, 1 - rho * rho - d * h * h);
    }
    Contract contract;
    contract.cost = costs::reading(2) + costs::levels(8, costs::Rounding::nearest, 14);
    contract.delta = delta;
    contract.domain.largest.least = sizeof(T) == sizeof(float) ? 1e-31 : 1e-300;
    return contract;
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope&) const override {
    return all_known(dynamic_tree_format());
  }

  void compress(const Exec& exec, const CompressContext<T>&, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    quantize_segments_fused(exec, input, scope, dynamic_tree_format(), width_of(127), MagnitudeOf{}, Reduce::max, LargestScale<T>{},
                            TreeLevel<T>{}, std::span<const RandomStream>{}, state, messages);
  }
};

FL_REGISTER_PART(Compressor, Dettmers8, NoOptions,
                 (PartInfo{"compressor", "dettmers8", "8 bits: the nearest entry of a dynamic tree, relative to the largest; a contraction",
                           "Dettmers, 8-bit approximations for parallelism in deep learning, ICLR 2016"}));

}  // namespace
}  // namespace fl::FL_DEVICE_NS
