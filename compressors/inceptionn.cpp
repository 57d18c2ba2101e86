// INCEPTIONN: floats are truncated to fixed point, with a width that depends on their exponent.
//
//   |x_j| < 2^-b                    0                                     no bits
//   2^-b <= |x_j| < 2^-floor(b/2)   cut to 7 binary places                8 bits, the sign's included
//   2^-floor(b/2) <= |x_j| < 1      cut to 15 binary places               16 bits
//   1 <= |x_j|                      unchanged (here: cut to 15 places)    32 bits            and a tag of 2 bits for each
//
// Truncation is towards zero. Absolute: entries that become 0 are below 2^-b, the others lose less than 2^-7 and 2^-15; kappa = sqrt(d)
// 2^-min(b, 7) for every draw, d = all compressed coordinates; and |C(x)| <= |x| in every coordinate. Encoding here: levels of step 2^-15,
// as wide as the largest of the message requires. Published bits: the widths above and the tags, as the message shows them (a number that
// its 8 bits truncate to 0 counts as one without bits); numbers of 1 and more count as 32 bits. Compared with GRACE's code by reading it.
// GRACE has the same three classes; one of its 8 and 16 bits is never set, so its steps are 2^-6 and 2^-14, and a number that 8 bits
// truncate to 0 decodes to 2^-7. Li, Park, Alian, Yuan, Qu, Pan, Wang, Schwing, Esmaeilzadeh, Kim, "A network-centric hardware/algorithm
// co-design to accelerate distributed training of deep neural networks", MICRO 2018.
// Group: quantiser
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct InceptionnOptions {
  std::int64_t error_bits = 10;
};

inline void describe(Schema& s, InceptionnOptions& o) {
  s.field("error_bits", o.error_bits, "b: magnitudes below 2^-b become 0").at_least(1).at_most(15);
}

namespace FL_DEVICE_NS {
namespace {

constexpr int kFinePlaces = 15, kCoarsePlaces = 7;

template <class T>
struct CutLevel {
  using Map = std::integral_constant<LevelMap, LevelMap::linear>;
  double dropped, coarse, largest;  // 2^-b, 2^-floor(b/2), of a level
  static constexpr bool kHasChance = false;
  FL_HD std::int32_t operator()(T p, T, std::uint32_t, std::size_t) const {
    const double magnitude = static_cast<double>(p < T(0) ? -p : p);
    double a = magnitude * (1 << kFinePlaces);
    a = a < largest ? a : largest;  // NaN becomes the largest
    auto level = static_cast<std::int32_t>(a);
    constexpr std::int32_t kCoarse = 1 << (kFinePlaces - kCoarsePlaces);
    level = magnitude < coarse ? level / kCoarse * kCoarse : level;
    level = magnitude < dropped ? 0 : level;
    return p < T(0) ? -level : level;
  }
};

template <class T>
class Inceptionn final : public Compressor<T> {
 public:
  explicit Inceptionn(const InceptionnOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    Contract contract;
    contract.cost = costs::reading(2) + costs::levels(16, costs::Rounding::nearest, 6);
    contract.kappa =
        std::sqrt(compressed_size(scope)) * std::ldexp(1.0, -std::min<int>(static_cast<int>(options_.error_bits), kCoarsePlaces));
    contract.domain.entries = {0, sizeof(T) == sizeof(float) ? 512.0 : 32768.0, true};
    return contract;
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope&) const override {
    return all_known_but(KnownLevels::Travels::top, kFormat);
  }

  void compress(const Exec& exec, const CompressContext<T>&, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const double most = sizeof(T) == sizeof(float) ? 0x1p24 - 1 : 0x1p30 - 1;
    const std::vector<double> largest = reduced_on_host(exec, input, scope, MagnitudeOf{}, Reduce::max);
    const std::size_t S = scope.segments.size();
    for (std::uint32_t k = 0; k < messages.size(); ++k) {
      const double own = *std::max_element(largest.begin() + k * S, largest.begin() + (k + 1) * S) * (1 << kFinePlaces);
      const double top = std::clamp(std::floor(own), 1.0, most);
      const LevelFormat format = symmetric_levels(kFormat, static_cast<std::int32_t>(top));
      quantize_rows(exec, input.slice(k, 1), scope, format, width_of(static_cast<std::int64_t>(top)), static_cast<const T*>(nullptr),
                    CutLevel<T>{std::ldexp(1.0, -error_bits()), coarse(), top}, std::span<const RandomStream>{}, state.slice(k, 1),
                    messages.subspan(k, 1));
    }
  }

  [[nodiscard]] bool published_bits_read_entries() const override { return true; }
  [[nodiscard]] double published_bits(const Payload<T>& message, const Scope&) const override {
    if (message.silent) return 0;
    const double one = 1 << kFinePlaces;
    double bits = 2.0 * static_cast<double>(message.num_sent) + 32.0 * static_cast<double>(message.excluded.size());
    for (std::size_t i = 0; i < message.num_sent; ++i) {
      const double a = std::fabs(static_cast<double>(message.level(i)));
      bits += a >= one ? 32 : a >= one * coarse() ? 16 : a > 0 ? 8 : 0;
    }
    return bits;
  }

 private:
  static constexpr LevelFormat kFormat{.unit = 1.0 / (1 << kFinePlaces), .has_scale = false};
  [[nodiscard]] int error_bits() const { return static_cast<int>(options_.error_bits); }
  [[nodiscard]] double coarse() const { return std::ldexp(1.0, -(error_bits() / 2)); }
  InceptionnOptions options_;
};

FL_REGISTER_PART(Compressor, Inceptionn, InceptionnOptions,
                 (PartInfo{"compressor", "inceptionn", "floats cut to fixed point, 16, 8 or no bits by their exponent; absolute",
                           "Li et al., A network-centric hardware/algorithm co-design to accelerate distributed training, MICRO 2018"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
