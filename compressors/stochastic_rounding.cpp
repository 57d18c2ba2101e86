// Stochastic rounding to fixed point: a grid of step epsilon = 2^-FL that is equal for all clients.
//
//   C(x)_j = epsilon (floor(a) + [u < a - floor(a)]),   a = x_j / epsilon,   saturated at -2^(IL-1) and 2^(IL-1) - epsilon
//
// Absolute while nothing saturates: a coordinate's squared error is epsilon^2 f (1-f) in expectation, f = a - floor(a), so kappa^2 = d
// epsilon^2 / 4 in expectation (d epsilon^2 for every draw), and unbiased. rounding = "nearest": kappa^2 = d epsilon^2 / 4 for every draw,
// biased. d = all compressed coordinates. It uses no norm and no scale: unlike qsgd, the error does not grow with x. Encoding: integers of
// IL + FL bits. Published bits: the same. scaled_integer is the same grid with a free step and 8, 16 or 32 bits. Gupta, Agrawal,
// Gopalakrishnan, Narayanan, "Deep learning with limited numerical precision", ICML 2015.
// Group: quantiser
#include <cmath>
#include <string>
#include <type_traits>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

enum class FixedPointRounding { stochastic, nearest };

struct StochasticRoundingOptions {
  std::int64_t integer_bits = 2;
  std::int64_t fraction_bits = 14;
  FixedPointRounding rounding = FixedPointRounding::stochastic;
};

inline void describe(Schema& s, StochasticRoundingOptions& o) {
  s.field("integer_bits", o.integer_bits, "IL, bits before the point, the sign's included").at_least(1).at_most(32);
  s.field("fraction_bits", o.fraction_bits, "FL, bits after the point: the step is 2^-FL").at_least(0).at_most(40);
  s.choice("rounding", o.rounding, {{FixedPointRounding::stochastic, "stochastic"}, {FixedPointRounding::nearest, "nearest"}},
           "stochastic is unbiased; nearest rounds ties to even");
}

inline void validate(const StochasticRoundingOptions& o, Problems& problems) {
  const std::int64_t bits = o.integer_bits + o.fraction_bits;
  if (bits < 2 || bits > 32)
    problems.push_back({"fraction_bits", "integer_bits + fraction_bits must be 2 .. 32, is " + std::to_string(bits)});
}

namespace FL_DEVICE_NS {
namespace {

// Computes in double for both precisions: every 32-bit integer is a double, and the saturated value converts without overflow.
template <class T>
struct FixedPointLevel {
  using Map = std::integral_constant<LevelMap, LevelMap::linear>;
  double inverse, half;  // 1/epsilon, 2^(bits-1)
  bool stochastic;
  FL_HD std::int32_t operator()(T p, T, std::uint32_t word, std::size_t) const {
    double a = inverse * static_cast<double>(p);
    a = a < half - 1 ? a : half - 1;  // NaN becomes the largest
    a = a > -half ? a : -half;
    if (!stochastic) return static_cast<std::int32_t>(rint(a) + 0.0);  // as in scaled_integer.cpp
    const double below = floor(a);
    return static_cast<std::int32_t>(below) + (static_cast<double>(word) * 0x1p-32 < a - below ? 1 : 0);
  }
};

template <class T>
class StochasticRounding final : public Compressor<T> {
 public:
  explicit StochasticRounding(const StochasticRoundingOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    Contract contract;
    contract.cost = costs::reading(2) +
                    costs::levels(static_cast<double>(bits()), is_stochastic() ? costs::Rounding::random : costs::Rounding::nearest);
    contract.kappa = std::sqrt(compressed_size(scope)) * step() / 2;
    if (is_stochastic()) contract.kappa_holds = Contract::Holds::in_expectation;
    // Above 2^24 a level is itself rounded when it becomes a float32.
    const int digits = sizeof(T) == sizeof(float) ? std::min(bits() - 1, 24) : bits() - 1;
    contract.domain.entries.most = (std::ldexp(1.0, digits) - 1) * std::ldexp(1.0, -static_cast<int>(options_.fraction_bits));
    return contract;
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope&) const override { return all_known(level_format()); }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const double half = std::ldexp(1.0, bits() - 1);
    const std::vector<RandomStream> streams = is_stochastic() ? client_streams(context) : std::vector<RandomStream>{};
    quantize_rows(exec, input, scope, level_format(), width_of(static_cast<std::int64_t>(half) - 1), static_cast<const T*>(nullptr),
                  FixedPointLevel<T>{1 / step(), half, is_stochastic()}, std::span<const RandomStream>(streams), state, messages);
  }

 private:
  [[nodiscard]] LevelFormat level_format() const {
    return {.map = LevelMap::linear,
            .min_level = static_cast<std::int32_t>(-std::ldexp(1.0, bits() - 1)),
            .bits = static_cast<std::uint8_t>(bits()),
            .unit = step(),
            .has_scale = false};
  }
  [[nodiscard]] int bits() const { return static_cast<int>(options_.integer_bits + options_.fraction_bits); }
  [[nodiscard]] double step() const { return std::ldexp(1.0, -static_cast<int>(options_.fraction_bits)); }
  [[nodiscard]] bool is_stochastic() const { return options_.rounding == FixedPointRounding::stochastic; }
  StochasticRoundingOptions options_;
};

FL_REGISTER_PART(Compressor, StochasticRounding, StochasticRoundingOptions,
                 (PartInfo{"compressor", "stochastic_rounding", "random rounding to fixed point of IL.FL bits; absolute and unbiased",
                           "Gupta, Agrawal, Gopalakrishnan, Narayanan, Deep learning with limited numerical precision, ICML 2015"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
