// Scaled integers: a fixed grid of step 1/alpha, equal for all clients, so that switches and servers may add the integers.
//
//   q = round(alpha x),   C(x) = q / alpha
//   nearest (ties to even):  |C(x)_j - x_j| <= 1/(2 alpha),   kappa^2 = d / (4 alpha^2), pointwise
//   stochastic:              unbiased, |C(x)_j - x_j| < 1/alpha,   kappa^2 = d / alpha^2 pointwise (d / (4 alpha^2) in expectation)
//
// d = all compressed coordinates. Integers saturate at +-(2^(bits-1) - 1). A sum over n clients fits into 32 bits if alpha <= (2^31 - 1 -
// n) / (n max_i |x_i|_inf). Published bits: the integers.
// Sapio et al., "Scaling distributed machine learning with in-network aggregation" (SwitchML), NSDI 2021; stochastic rounding: Gupta,
// Agrawal, Gopalakrishnan, Narayanan, ICML 2015.
// Group: quantiser
#include <cmath>
#include <string>
#include <type_traits>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

enum class IntegerRounding { nearest, stochastic };

struct ScaledIntegerOptions {
  double alpha = 1048576;  // 2^20
  std::int64_t bits = 32;
  IntegerRounding rounding = IntegerRounding::nearest;
};

inline void describe(Schema& s, ScaledIntegerOptions& o) {
  s.field("alpha", o.alpha, "grid points per unit of the input; a power of two keeps the decoding exact").above(0).at_most(1e30);
  s.field("bits", o.bits, "width of an integer: 8, 16 or 32").at_least(8).at_most(32);
  s.choice("rounding", o.rounding, {{IntegerRounding::nearest, "nearest"}, {IntegerRounding::stochastic, "stochastic"}},
           "stochastic is unbiased");
}

inline void validate(const ScaledIntegerOptions& o, Problems& problems) {
  if (o.bits != 8 && o.bits != 16 && o.bits != 32) problems.push_back({"bits", "must be 8, 16 or 32, is " + std::to_string(o.bits)});
}

namespace FL_DEVICE_NS {
namespace {

// Computes in double for both precisions: every 32-bit integer is a double, and the saturated value converts without overflow.
template <class T>
struct IntegerLevel {
  using Map = std::integral_constant<LevelMap, LevelMap::linear>;
  double alpha, limit;
  bool stochastic;
  FL_HD std::int32_t operator()(T p, T, std::uint32_t word, std::size_t) const {
    double y = alpha * static_cast<double>(p);
    y = y < limit ? y : limit;  // NaN becomes the limit
    y = y > -limit ? y : -limit;
    // g++ 12 keeps the sign of -0 in (double)(int)-0.0, which should have none; + 0.0 removes it.
    if (!stochastic) return static_cast<std::int32_t>(rint(y) + 0.0);
    auto below = static_cast<std::int32_t>(y);
    below -= static_cast<double>(below) > y ? 1 : 0;
    return below + (static_cast<double>(word) * 0x1p-32 < y - static_cast<double>(below) ? 1 : 0);
  }
};

template <class T>
class ScaledInteger final : public Compressor<T> {
 public:
  explicit ScaledInteger(const ScaledIntegerOptions& options) : options_(options) {}

  // `linear` means that messages may be added before decoding; C itself is linear only up to the rounding.
  [[nodiscard]] Contract contract(const Scope& scope) const override {
    double d = 0;
    for (const Segment& segment : scope.segments) d += static_cast<double>(segment.size());
    Contract contract;
    contract.cost = costs::reading(2) + costs::levels(16, stochastic() ? costs::Rounding::random : costs::Rounding::nearest);
    contract.kappa = std::sqrt(d) / options_.alpha * (stochastic() ? 1 : 0.5);
    contract.linear = true;
    // Above 2^24 a level is itself rounded when it becomes a float32.
    const int digits = std::min(bits() - 1, sizeof(T) == sizeof(float) ? 24 : 31);
    contract.domain.entries.most = (std::ldexp(1.0, digits) - 1) / options_.alpha;
    return contract;
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope&) const override { return all_known(level_format()); }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const IntegerLevel<T> level{options_.alpha, static_cast<double>(largest()), stochastic()};
    const std::vector<RandomStream> streams = stochastic() ? client_streams(context) : std::vector<RandomStream>{};
    quantize_rows(exec, input, scope, level_format(), width_of(largest()), static_cast<const T*>(nullptr), level,
                  std::span<const RandomStream>(streams), state, messages);
  }

 private:
  [[nodiscard]] LevelFormat level_format() const {
    return {.min_level = static_cast<std::int32_t>(-largest() - 1),
            .bits = static_cast<std::uint8_t>(bits()),
            .unit = 1 / options_.alpha,
            .has_scale = false};
  }
  [[nodiscard]] int bits() const { return static_cast<int>(options_.bits); }
  [[nodiscard]] std::int64_t largest() const { return (std::int64_t{1} << (bits() - 1)) - 1; }
  [[nodiscard]] bool stochastic() const { return options_.rounding == IntegerRounding::stochastic; }
  ScaledIntegerOptions options_;
};

FL_REGISTER_PART(Compressor, ScaledInteger, ScaledIntegerOptions,
                 (PartInfo{"compressor", "scaled_integer", "integers on a fixed grid that may be added before decoding; absolute",
                           "Sapio et al., SwitchML, NSDI 2021"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
