// DQSGD: QSGD whose number of levels grows with the norm, so that the error stays bounded.
//
//   s(x) = max(1, ceil(c |x|_2)) of the segment,   C = QSGD with s(x) levels of |x|_2
//
// Absolute and unbiased: a coordinate becomes one of the two levels around it, which are |x| / s <= 1/c apart, so |C(x)_j - x_j| < 1/c for
// every draw and kappa^2 = d / c^2 (d / (4 c^2) in expectation), d = all compressed coordinates. As an unbiased operator it has omega =
// sqrt(d_l), d_l the largest segment: the bound of s = 1, for every x. rule = "levels": c is the given number, per unit of the input. The
// other rules: the number is per unit of the gradient and is divided by the step size, as hard_threshold multiplies by it.
// The message contains the scale |x| / s, so s need not be sent. Levels are as wide as the largest s of the message requires, at most
// max_levels; for larger norms s stays at max_levels and kappa no longer holds. Published bits: 1 + ceil(log2(s+1)) per coordinate, 32 per
// norm.
// The rule for s is from the cited paper; the constants are derived here.
// Yan, Huang, Lan, Song, "DQ-SGD: Dynamic quantization in SGD for communication-efficient distributed learning", 2021.
// Group: quantiser
#include <algorithm>
#include <cmath>
#include <string>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/random_levels.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct DqsgdOptions {
  double levels_per_unit = 1;
  StepRule rule = StepRule::input;
  std::int64_t max_levels = 1048576;
};

inline void describe(Schema& s, DqsgdOptions& o) {
  s.field("levels_per_unit", o.levels_per_unit, "c: a norm of |x| gets ceil(c |x|) levels").above(0).at_most(1e30);
  describe_step_rule(s, o.rule, "levels", "per unit of", "divided by");
  s.field("max_levels", o.max_levels, "upper bound of s").at_least(1).at_most(16777215);
}

namespace FL_DEVICE_NS {
namespace {

// Computes scale [K,S] = |x| / s.
template <class T>
struct DynamicScale {
  const double* squares;  // [K,S]
  double c, max_levels;
  T* scale;
  FL_HD void operator()(std::size_t i) const {
    const double norm = sqrt(squares[i]), wanted = ceil(c * norm);
    const double s = wanted < 1 ? 1 : wanted < max_levels ? wanted : max_levels;
    scale[i] = usable_scale<T>(norm / s);
  }
};

// Rounds to levels. The scale is the distance of two levels. A level is at most `most`, even after rounding errors.
template <class T>
struct StepLevel {
  using Map = std::integral_constant<LevelMap, LevelMap::linear>;
  double most;
  static constexpr bool kHasChance = true;
  FL_HD std::int32_t operator()(T p, T step, std::uint32_t word, std::size_t) const {
    double a = static_cast<double>(p < T(0) ? -p : p) / static_cast<double>(step);
    a = a < most ? a : most;  // NaN becomes the largest
    a = step > T(0) ? a : 0;
    const double below = floor(a);
    const auto level = static_cast<std::int32_t>(below) + (static_cast<double>(word) * 0x1p-32 < a - below ? 1 : 0);
    return p < T(0) ? -level : level;
  }
};

template <class T>
class Dqsgd final : public Compressor<T> {
 public:
  explicit Dqsgd(const DqsgdOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    Contract contract;
    contract.cost = costs::reading(2) + costs::levels(8, costs::Rounding::random);
    contract.kappa = kappa_at(scope, {});
    contract.omega = std::sqrt(static_cast<double>(largest_segment(scope)));
    contract.domain.norm = {sizeof(T) == sizeof(float) ? 1.2e-38 : 1e-150,
                            static_cast<double>(options_.max_levels) / options_.levels_per_unit};
    follow(contract.domain, options_.rule);
    return contract;
  }
  [[nodiscard]] double kappa_at(const Scope& scope, const StepSizes& steps) const override {
    return std::sqrt(compressed_size(scope)) / per_unit(steps);
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope&) const override {
    return all_known_but(KnownLevels::Travels::top, LevelFormat{});
  }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const double c = per_unit(context.steps);
    const auto max_levels = static_cast<double>(options_.max_levels);
    const std::size_t S = scope.segments.size();
    const std::vector<RandomStream> streams = client_streams(context);
    const std::vector<double> squares = reduced_on_host(exec, input, scope, SquareOf{}, Reduce::sum);
    for (std::uint32_t k = 0; k < messages.size(); ++k) {
      Workspace::Frame frame(*exec.workspace);
      auto* own_squares = frame.take<double>(S);
      copy_bytes(own_squares, kThisDevice, squares.data() + k * S, Device::cpu, S * sizeof(double), exec.stream);
      T* scale = frame.take<T>(S);
      for_each(exec, S, DynamicScale<T>{own_squares, c, max_levels, scale});
      const double largest = std::sqrt(*std::max_element(squares.begin() + k * S, squares.begin() + (k + 1) * S));
      const double wanted = std::ceil(c * largest);
      const double most = wanted >= 1 ? std::min(wanted, max_levels) : 1;  // 1 also for NaN
      quantize_rows(exec, input.slice(k, 1), scope, random_levels_format(static_cast<std::int64_t>(most), 1),
                    width_of(static_cast<std::int64_t>(most)), scale, StepLevel<T>{most}, std::span(streams).subspan(k, 1),
                    state.slice(k, 1), messages.subspan(k, 1));
    }
  }

 private:
  [[nodiscard]] double per_unit(const StepSizes& steps) const { return options_.levels_per_unit / step_factor(options_.rule, steps); }
  DqsgdOptions options_;
};

FL_REGISTER_PART(Compressor, Dqsgd, DqsgdOptions,
                 (PartInfo{"compressor", "dqsgd", "QSGD whose number of levels grows with the norm; absolute and unbiased",
                           "Yan, Huang, Lan, Song, DQ-SGD: Dynamic quantization in SGD, 2021"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
