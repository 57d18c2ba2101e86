// 3LC: every coordinate becomes -1, 0 or 1 times one number, which a sparsity multiplier increases to get more zeros.
//
//   M = s max|x| of the segment, 1 <= s < 2,   C(x)_j = M sgn(x_j) where |x_j| >= M/2, else 0
//
// A contraction: no entry's error exceeds the entry, and the largest one, for which C(x) = s max|x|, keeps (1 - (s-1)^2) of its square:
// delta >= s (2 - s) / d, d the size of the largest segment. Intended for error feedback.
// Published bits: five digits in a byte (base 3, "quartic"); runs of 2 .. 14 bytes that each represent five zeros become one of the 13
// unused byte values; 32 per segment. The wire format codes three levels as any other number of levels.
// Lim, Andersen, Kaminsky, "3LC: Lightweight and effective traffic compression for distributed machine learning", MLSys 2019. The packing
// is quoted from memory of the paper: 3^5 = 243 values leave 13 of a byte, one for each run length of 2 .. 14.
// Group: quantiser
#include <algorithm>
#include <type_traits>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct ThreeLcOptions {
  double sparsity = 1;
};

inline void describe(Schema& s, ThreeLcOptions& o) {
  s.field("sparsity", o.sparsity, "s, the sparsity multiplier: a larger one sends more zeros").at_least(1).below(2);
}

namespace FL_DEVICE_NS {
namespace {

template <class T>
struct MultipliedLargest {
  double s;
  FL_HD T operator()(double largest, std::size_t) const { return usable_scale<T>(s * largest); }
};

template <class T>
struct TernaryLevel {
  using Map = std::integral_constant<LevelMap, LevelMap::linear>;
  static constexpr LevelWidth kWidth = LevelWidth::w8;
  static constexpr bool kHasChance = false;
  FL_HD std::int32_t operator()(T p, T scale, std::uint32_t, std::size_t) const {
    const T half = scale / 2;
    return scale > T(0) ? (p >= half ? 1 : p <= -half ? -1 : 0) : 0;
  }
};

template <class T>
class ThreeLc final : public Compressor<T> {
 public:
  explicit ThreeLc(const ThreeLcOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    Contract contract;
    contract.cost = costs::reading(2) + costs::levels(2, costs::Rounding::nearest);
    contract.delta = options_.sparsity * (2 - options_.sparsity) / static_cast<double>(largest_segment(scope));
    contract.domain.largest = sizeof(T) == sizeof(float) ? MagnitudeRange{1.2e-38, 1e38} : MagnitudeRange{1e-307, 1e307};
    return contract;
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope&) const override { return all_known(kTernary); }

  void compress(const Exec& exec, const CompressContext<T>&, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    quantize_segments_fused(exec, input, scope, kTernary, width_of(1), MagnitudeOf{}, Reduce::max, MultipliedLargest<T>{options_.sparsity},
                            TernaryLevel<T>{}, std::span<const RandomStream>{}, state, messages);
  }

  [[nodiscard]] bool published_bits_read_entries() const override { return true; }
  [[nodiscard]] double published_bits(const Payload<T>& message, const Scope& scope) const override {
    if (message.silent) return 0;
    std::size_t first = 0, bytes = 0;
    for (const Segment& segment : scope.segments) {
      bytes += packed_bytes(message, first, segment.size());
      first += segment.size();
    }
    return 8.0 * static_cast<double>(bytes) + 32.0 * static_cast<double>(scope.segments.size() + message.excluded.size());
  }

 private:
  static constexpr LevelFormat kTernary{.map = LevelMap::linear, .min_level = -1, .bits = 2};
  // Returns the bytes of levels first .. first+count-1; the last byte is padded with zeros.
  [[nodiscard]] static std::size_t packed_bytes(const Payload<T>& message, std::size_t first, std::size_t count) {
    constexpr std::size_t kDigits = 5, kLongestRun = 14;
    std::size_t bytes = 0, run = 0;
    for (std::size_t i = 0; i < count; i += kDigits) {
      bool is_zero = true;
      for (std::size_t j = i; j < std::min(i + kDigits, count); ++j) is_zero = is_zero && message.level(first + j) == 0;
      run = is_zero && run < kLongestRun ? run + 1 : is_zero ? 1 : 0;
      bytes += run < 2 ? 1 : 0;  // after its second byte a run adds no byte
    }
    return bytes;
  }
  ThreeLcOptions options_;
};

FL_REGISTER_PART(Compressor, ThreeLc, ThreeLcOptions,
                 (PartInfo{"compressor", "three_lc", "-1, 0 or 1 times the largest magnitude and a multiplier; a contraction",
                           "Lim, Andersen, Kaminsky, 3LC, MLSys 2019"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
