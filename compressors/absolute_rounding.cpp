// Absolute rounding: every coordinate is rounded to a grid with a given step that does not grow with the input.
//
//   C(x)_j = t q_j,   a = |x_j| / t,   q_j = sgn(x_j) (floor(a) + [u < a - floor(a)])  (stochastic)   or the nearest integer, half to even
//   deadzone z > 0:   q_j = 0 where |x_j| < z t
//
// Absolute, and (stochastic, z = 0) unbiased. Proof: with f = a - floor(a) the error of a coordinate is -f t with probability 1-f and (1-f)
// t with probability f: its mean is 0, its mean square f (1-f) t^2 <= t^2/4, and its square is below t^2 for every draw. A coordinate in
// the deadzone has an error below z t. Over d compressed coordinates
//   stochastic  E|C(x)-x|^2 <= kappa^2 = d t^2 max(1/4, z^2),   |C(x)-x|^2 < d t^2 max(1, z^2) for every draw
//   nearest     |C(x)-x|^2 <= kappa^2 = d t^2 max(1/4, z^2) for every draw
// kappa does not depend on x: error feedback around C keeps an error of at most kappa for all gradients (Sahu et al., Remark 5), as around
// hard_threshold. hard_threshold sends kept entries at full precision; here each kept entry costs the log2 of its size.
// rule = "step": t is the given number, in units of the input. rule = "lambda": the number is in units of the gradient; if the input is a
// step (gradient times step size gamma), t = gamma * step. It may be a rule: "2*sqrt(epsilon/d)" has kappa^2 = epsilon (z <= 1/2).
//
// Bits: all levels of a message have the width that its largest one needs, 1 + floor(log2 q) + sign for |q| <= q. A message of zeros has no
// levels. A message with an entry beyond 2^24 steps (2^30 in float64) is sent as raw numbers, without an error. A deadzone of z >= 1/2
// sends more zeros, at the price of a bias of at most z t. Coded by their entropy H, levels cost d H bits: if a fraction p of them is
// nonzero and p is small, about d (p log2(1/p) + p log2(e) + p) for +-1. Published bits: the levels at that width; no scale is sent. We
// designed this operator: the paper below lists bounded rounding as absolute and asks for such operators in its outlook. Sahu, Dutta,
// Abdelmoniem, Banerjee, Canini, Kalnis, "Rethinking gradient sparsification as total error minimization", NeurIPS 2021.
// Group: quantiser
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "compressors/compressor.hpp"
#include "compressors/support/absolute_scale.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/message/payload_segments.hpp"

namespace fl {

enum class AbsoluteRoundingMode { stochastic, nearest };

struct AbsoluteRoundingOptions {
  AbsoluteScale step;
  AbsoluteRoundingMode rounding = AbsoluteRoundingMode::stochastic;
  double deadzone = 0;
};

inline void describe(Schema& s, AbsoluteRoundingOptions& o) {
  describe_absolute_scale(s, o.step, "step", "t, the step of the grid");
  s.choice("rounding", o.rounding, {{AbsoluteRoundingMode::stochastic, "stochastic"}, {AbsoluteRoundingMode::nearest, "nearest"}},
           "stochastic is unbiased, nearest has half the largest error");
  s.field("deadzone", o.deadzone, "z: magnitudes below z steps become 0").at_least(0).at_most(1000);
}
inline void validate(const AbsoluteRoundingOptions& o, Problems& problems) { validate_absolute_scale("step", o.step, problems); }

namespace FL_DEVICE_NS {
namespace {

// The largest level. Larger levels would be rounded when they become numbers of T, or do not fit into 32 bits with their sign.
template <class T>
constexpr double kLargestGridLevel = sizeof(T) == sizeof(float) ? 0x1p24 - 1 : 0x1p30 - 1;

// Computes in double for both precisions: the saturated value converts without overflow.
template <class T>
struct GridLevel {
  using Map = std::integral_constant<LevelMap, LevelMap::linear>;
  double inverse, largest, deadzone;
  bool stochastic;
  FL_HD std::int32_t operator()(T p, T, std::uint32_t word, std::size_t) const {
    double a = inverse * static_cast<double>(p < T(0) ? -p : p);
    a = a < largest ? a : largest;  // NaN becomes the largest
    const double below = floor(a);
    const double q = stochastic ? below + (static_cast<double>(word) * 0x1p-32 < a - below ? 1 : 0) : rint(a);
    const auto level = static_cast<std::int32_t>(a < deadzone ? 0 : q);
    return p < T(0) ? -level : level;
  }
};

template <class T>
class AbsoluteRounding final : public Compressor<T> {
 public:
  explicit AbsoluteRounding(const AbsoluteRoundingOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    Contract contract;
    contract.cost = costs::reading(2) + costs::levels(16, is_stochastic() ? costs::Rounding::random : costs::Rounding::nearest, 2);
    contract.kappa = kappa_at(scope, {});
    if (is_stochastic()) contract.kappa_holds = Contract::Holds::in_expectation;
    follow(contract.domain, options_.step);
    return contract;
  }
  [[nodiscard]] double kappa_at(const Scope& scope, const StepSizes& steps) const override {
    return std::sqrt(compressed_size(scope)) * step_at(steps, num_shared(scope)) * std::max(0.5, options_.deadzone);
  }
  void check(const Scope& scope) const override { (void)step_at({}, num_shared(scope)); }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>& context, const Scope& scope) const override {
    return all_known_but(KnownLevels::Travels::top, level_format(step_at(context.steps, num_shared(scope))));
  }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const double step = step_at(context.steps, num_shared(scope));
    const std::vector<double> largest = reduced_on_host(exec, input, scope, MagnitudeOf{}, Reduce::max);
    const std::vector<RandomStream> streams = is_stochastic() ? client_streams(context) : std::vector<RandomStream>{};
    const std::size_t S = scope.segments.size();
    for (std::uint32_t k = 0; k < messages.size(); ++k) {
      const double most = std::max(0.0, *std::max_element(largest.begin() + k * S, largest.begin() + (k + 1) * S)) / step;
      send(exec, input.slice(k, 1), scope, step, most, std::span(streams).subspan(is_stochastic() ? k : 0, is_stochastic() ? 1 : 0),
           state.slice(k, 1), messages.subspan(k, 1));
    }
  }

 private:
  [[nodiscard]] static LevelFormat level_format(double step) { return {.unit = step, .has_scale = false}; }
  // Sends one client's message. `most` is the largest |x_j| / step.
  void send(const Exec& exec, const Affine<T>& input, const Scope& scope, double step, double most, std::span<const RandomStream> stream,
            const StateWrite<T>& state, std::span<Payload<T>* const> message) const {
    if (most == 0 || most < options_.deadzone || (!is_stochastic() && most <= 0.5))  // all levels are zero
      return select_rows(exec, input, scope, AtLeast<T>{std::numeric_limits<T>::infinity()}, kNativeWire<T>, state, message);
    if (most > kLargestGridLevel<T>) return dense_rows(exec, input, scope, kNativeWire<T>, state, message);
    const double largest = is_stochastic() ? std::ceil(most) : std::rint(most);
    const auto top = static_cast<std::int32_t>(largest);
    const LevelFormat format = symmetric_levels(level_format(step), top);
    quantize_rows(exec, input, scope, format, width_of(top), static_cast<const T*>(nullptr),
                  GridLevel<T>{1 / step, largest, options_.deadzone, is_stochastic()}, stream, state, message);
  }
  [[nodiscard]] double step_at(const StepSizes& steps, std::size_t d) const {
    return resolve_absolute_scale("absolute_rounding: step", options_.step, steps, d);
  }
  [[nodiscard]] bool is_stochastic() const { return options_.rounding == AbsoluteRoundingMode::stochastic; }
  AbsoluteRoundingOptions options_;
};

FL_REGISTER_PART(Compressor, AbsoluteRounding, AbsoluteRoundingOptions,
                 (PartInfo{"compressor", "absolute_rounding", "rounding to a grid of given step; an absolute compressor, unbiased",
                           "this project; after the outlook of Sahu et al., Rethinking gradient sparsification, NeurIPS 2021"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
