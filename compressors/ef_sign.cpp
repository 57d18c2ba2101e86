// Scaled sign: one bit per coordinate and the mean magnitude of the segment.
//
//   C(x) = (|x|_1 / d) sgn(x),   sgn(0) = +1,   |C(x) - x|^2 = |x|^2 - |x|_1^2 / d
//
// A contraction with delta(x) = |x|_1^2 / (d |x|_2^2) >= 1/d, d the size of the largest segment.
// Published bits: one per coordinate and 32 per segment.
// Karimireddy, Rebjock, Stich, Jaggi, "Error feedback fixes SignSGD and other gradient compression schemes", ICML 2019.
// Group: quantiser
#include <type_traits>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/op_types.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl::FL_DEVICE_NS {
namespace {

template <class T>
struct MeanMagnitude {
  FL_HD T operator()(double sum, std::size_t size) const { return static_cast<T>(sum / static_cast<double>(size)); }
};

struct SignLevel {
  using Map = std::integral_constant<LevelMap, LevelMap::sign>;
  static constexpr LevelWidth kWidth = LevelWidth::w8;
  static constexpr bool kHasChance = false;
  template <class T>
  FL_HD std::int32_t operator()(T p, T, std::uint32_t, std::size_t) const {
    return p < T(0) ? 0 : 1;
  }
};

template <class T>
class EfSign final : public Compressor<T> {
 public:
  explicit EfSign(const NoOptions&) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    Contract contract;
    contract.cost = costs::reading(2) + costs::levels(1, costs::Rounding::nearest);
    contract.delta = 1 / static_cast<double>(largest_segment(scope));
    return contract;
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope&) const override { return all_known(sign_format()); }

  void compress(const Exec& exec, const CompressContext<T>&, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    quantize_segments_fused(exec, input, scope, sign_format(), width_of(1), MagnitudeOf{}, Reduce::sum, MeanMagnitude<T>{}, SignLevel{},
                            std::span<const RandomStream>{}, state, messages);
  }
};

FL_REGISTER_PART(Compressor, EfSign, NoOptions,
                 (PartInfo{"compressor", "ef_sign", "sign times the mean magnitude of the segment; a contraction, for error feedback",
                           "Karimireddy, Rebjock, Stich, Jaggi, Error feedback fixes SignSGD, ICML 2019"}));

}  // namespace
}  // namespace fl::FL_DEVICE_NS
