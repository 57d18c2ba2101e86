// 8-bit floats: every coordinate in OCP's E4M3 or E5M2 format, after scaling the segment to the format's range.
//
//   C(x)_j = scale * fp8(x_j / scale), to nearest, ties to even;   scale = max|x| / L,   L = 448 (e4m3) or 57344 (e5m2), the largest number
//
// A contraction: half an ulp is 2^-4 |x_j| (e4m3) or 2^-3 |x_j| (e5m2) of a normal number, and 2^-10 or 2^-17 of the scale of a subnormal
// one:
//   e4m3  delta = 1 - 2^-8 - d (2^-10 / 448)^2        e5m2  delta = 1 - 2^-6 - d (2^-17 / 57344)^2        d the largest segment
// scaled = false sends no scale (scale = 1): the same bounds hold if every x_j is 0 or between the smallest normal number and L; larger
// entries saturate. Published bits: 8 per coordinate and 32 per scale. fp16 and bf16 are other names of identity with their format.
// Micikevicius et al., "FP8 formats for deep learning", 2022; OCP 8-bit floating point specification (OFP8), rev. 1.0, 2023.
// Group: quantiser
#include <cmath>
#include <type_traits>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

enum class Fp8Format { e4m3, e5m2 };

struct Fp8Options {
  Fp8Format format = Fp8Format::e4m3;
  bool scaled = true;
};

inline void describe(Schema& s, Fp8Options& o) {
  s.choice("format", o.format, {{Fp8Format::e4m3, "e4m3"}, {Fp8Format::e5m2, "e5m2"}},
           "e4m3: three bits of mantissa, e5m2: two, and the range of fp16");
  s.field("scaled", o.scaled, "scale each segment so that its largest magnitude is the format's; false sends the numbers as they are");
}

namespace FL_DEVICE_NS {
namespace {

template <class T>
struct Fp8Scale {
  double largest_number;
  FL_HD T operator()(double largest, std::size_t) const { return usable_scale<T>(largest / largest_number); }
};

template <class T, LevelMap kMap>
struct Fp8Level {
  using Map = std::integral_constant<LevelMap, kMap>;
  static constexpr LevelWidth kWidth = LevelWidth::w8;
  static constexpr bool kHasChance = false;
  FL_HD std::int32_t operator()(T p, T scale, std::uint32_t, std::size_t) const {
    const T x = p / scale;
    const std::int32_t level = fp8_level(kMap, x);
    return scale > T(0) ? x != x ? level & 0x7f : level : 0;  // the sign of a NaN depends on the processor
  }
};

template <class T>
class Fp8 final : public Compressor<T> {
 public:
  explicit Fp8(const Fp8Options& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    const bool e4m3 = options_.format == Fp8Format::e4m3;
    const double relative = e4m3 ? 0x1p-4 : 0x1p-3, absolute = (e4m3 ? 0x1p-10 : 0x1p-17) / largest_number();
    Contract contract;
    contract.cost = (options_.scaled ? costs::reading(2) : EntryCost{}) + costs::levels(8, costs::Rounding::nearest, 6);
    contract.delta = 1 - relative * relative;
    if (options_.scaled) {
      *contract.delta -= static_cast<double>(largest_segment(scope)) * absolute * absolute;
      contract.domain.largest.least = sizeof(T) == sizeof(float) ? 1e-33 : 1e-300;
    } else {
      contract.domain.entries = e4m3 ? MagnitudeRange{0x1p-6, 448} : MagnitudeRange{0x1p-14, 57344};
    }
    return contract;
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope&) const override {
    return all_known(fp8_format(options_.format == Fp8Format::e4m3 ? LevelMap::fp8_e4m3 : LevelMap::fp8_e5m2, options_.scaled));
  }

  void compress(const Exec& exec, const CompressContext<T>&, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    if (options_.format == Fp8Format::e4m3)
      send<LevelMap::fp8_e4m3>(exec, input, scope, state, messages);
    else
      send<LevelMap::fp8_e5m2>(exec, input, scope, state, messages);
  }

 private:
  template <LevelMap kMap>
  void send(const Exec& exec, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
            std::span<Payload<T>* const> messages) const {
    const LevelFormat format = fp8_format(kMap, options_.scaled);
    if (options_.scaled)
      quantize_segments_fused(exec, input, scope, format, LevelWidth::w8, MagnitudeOf{}, Reduce::max, Fp8Scale<T>{largest_number()},
                              Fp8Level<T, kMap>{}, std::span<const RandomStream>{}, state, messages);
    else
      quantize_rows(exec, input, scope, format, LevelWidth::w8, static_cast<const T*>(nullptr), Fp8Level<T, kMap>{},
                    std::span<const RandomStream>{}, state, messages);
  }
  [[nodiscard]] double largest_number() const { return options_.format == Fp8Format::e4m3 ? 448 : 57344; }
  Fp8Options options_;
};

FL_REGISTER_PART(Compressor, Fp8, Fp8Options,
                 (PartInfo{"compressor", "fp8", "8-bit floats, e4m3 or e5m2, with a scale per segment; a contraction",
                           "Micikevicius et al., FP8 formats for deep learning, 2022"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
