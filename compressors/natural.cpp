// Natural compression: every coordinate becomes a power of two, its sign and its exponent.
//
//   x = +-m 2^e, 1 <= m < 2:     stochastic   2^(e+1) with probability m - 1, else 2^e      unbiased, omega = 1/8
//                                nearest      2^(e+1) if m >= 3/2, else 2^e                 |C(x)_j - x_j| <= |x_j| / 3, delta = 8/9
//
// The exponents are -127 .. 127 (float32) and -1023 .. 1023 (float64), so that sign, exponent and zero fill 9 and 12 bits. Smaller numbers
// are rounded between 0 and the smallest power, larger ones become the largest. All operations work on the bits of x: they are exact on
// every device. Published bits: 9 (float32) and 12 (float64) per coordinate.
// Horvath, Ho, Horvath, Sahu, Canini, Richtarik, "Natural compression for distributed deep learning", 2019 (MSML 2022).
// Group: quantiser
#include <cstring>
#include <type_traits>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

enum class NaturalRounding { stochastic, nearest };

struct NaturalOptions {
  NaturalRounding rounding = NaturalRounding::stochastic;
};

inline void describe(Schema& s, NaturalOptions& o) {
  s.choice("rounding", o.rounding, {{NaturalRounding::stochastic, "stochastic"}, {NaturalRounding::nearest, "nearest"}},
           "stochastic is unbiased, nearest is a contraction");
}

namespace FL_DEVICE_NS {
namespace {

// The layout of IEEE numbers. `top` is the level of the largest power; level l represents 2^(l - 1 + kMinExponent).
template <class T>
struct Ieee;
template <>
struct Ieee<float> {
  using Bits = std::uint32_t;
  static constexpr int kMantissaBits = 23, kMinExponent = -127, kMessageBits = 9;
};
template <>
struct Ieee<double> {
  using Bits = std::uint64_t;
  static constexpr int kMantissaBits = 52, kMinExponent = -1023, kMessageBits = 12;
};

// Rounds by adding a number t < 2^kM to the bits of |x|, whose carry out of the mantissa is the rounding: it carries if the mantissa
// exceeds the number drawn, 2^kM - 1 - t. One more 2^kM makes the level of the exponent. A denormal number lies on the line through 0,
// 2^kMinExponent and 2^(kMinExponent+1), which are 0, 1 and 2 times 2^(kM-1) in units of its last place: twice its bits and t. Both are
//
//   level = (m + min(m, 2^kM) + t) >> kM,   m the bits of |x|
//
// All steps are integers as wide as T without a branch. Otherwise g++ 12 does not vectorise the loop over a tile, which then takes several
// times as long. It does not vectorise a comparison of floats (p != p) or a choice that is the same for the whole loop either.
template <class T>
struct NaturalLevel {
  using Map = std::integral_constant<LevelMap, LevelMap::power_of_two>;
  using Bits = typename Ieee<T>::Bits;
  using Int = std::make_signed_t<Bits>;
  static constexpr int kM = Ieee<T>::kMantissaBits;
  static constexpr Bits kOne = Bits{1} << kM, kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  Bits flipped;  // t is the number drawn with these bits flipped. `nearest` draws 0, and carries from half of the step on

  FL_HD explicit NaturalLevel(bool stochastic) : flipped(stochastic ? kOne - 1 : kOne / 2) {}

  FL_HD std::int32_t operator()(T p, T, std::uint32_t word, std::size_t) const {
    Bits bits;
    memcpy(&bits, &p, sizeof(bits));
    const Bits magnitude = bits & ~kSign;
    // float32 uses 23 of the word's bits; float64 compares all 32 with the upper 32 of 52 (bias below 2^-32 of the step).
    const Bits drawn = sizeof(T) == sizeof(float) ? static_cast<Bits>(word >> (32 - 23)) : static_cast<Bits>(word) << (kM - 32);
    const Bits doubled = static_cast<Int>(magnitude) < static_cast<Int>(kOne) ? magnitude : kOne;
    Int level = static_cast<Int>((magnitude + doubled + (drawn ^ flipped)) >> kM);
    constexpr Int kTop = (1 << (Ieee<T>::kMessageBits - 1)) - 1;
    level = level < kTop ? level : kTop;
    // A NaN, which is beyond the negative infinity as an integer, counts as positive: its sign depends on the processor.
    constexpr Int kNegativeInfinity = static_cast<Int>(kSign | static_cast<Bits>(kTop) << kM);
    const Int negative = static_cast<Int>(bits) <= kNegativeInfinity ? -1 : 0;
    return static_cast<std::int32_t>((level ^ negative) - negative);
  }
};

template <class T>
class Natural final : public Compressor<T> {
 public:
  explicit Natural(const NaturalOptions& options) : stochastic_(options.rounding == NaturalRounding::stochastic) {}

  [[nodiscard]] Contract contract(const Scope&) const override {
    Contract contract;
    contract.cost = costs::levels(16, stochastic_ ? costs::Rounding::random : costs::Rounding::nearest, 3);
    if (stochastic_)
      contract.omega = 1.0 / 8;
    else
      contract.delta = 8.0 / 9;
    contract.domain.entries = sizeof(T) == sizeof(float) ? MagnitudeRange{0x1p-127, 0x1p127} : MagnitudeRange{0x1p-1023, 0x1p1023};
    return contract;
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope&) const override { return all_known(kFormat); }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const std::vector<RandomStream> streams = stochastic_ ? client_streams(context) : std::vector<RandomStream>{};
    quantize_rows(exec, input, scope, kFormat, width_of(-kFormat.min_level), static_cast<const T*>(nullptr), NaturalLevel<T>{stochastic_},
                  std::span<const RandomStream>(streams), state, messages);
  }

 private:
  static constexpr LevelFormat kFormat{.map = LevelMap::power_of_two,
                                       .min_level = 1 - (1 << (Ieee<T>::kMessageBits - 1)),
                                       .bits = Ieee<T>::kMessageBits,
                                       .min_exponent = Ieee<T>::kMinExponent,
                                       .has_scale = false};
  bool stochastic_;
};

FL_REGISTER_PART(Compressor, Natural, NaturalOptions,
                 (PartInfo{"compressor", "natural", "powers of two: sign and exponent only",
                           "Horvath, Ho, Horvath, Sahu, Canini, Richtarik, Natural compression, MSML 2022"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
