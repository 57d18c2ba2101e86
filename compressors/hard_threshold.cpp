// Hard threshold: keeps the entries that are at least as large as a threshold t.
//
//   C(x)_j = x_j if |x_j| >= t, else 0,      |C(x) - x|_inf < t,   |C(x) - x|^2 <= d t^2: absolute with kappa = sqrt(d) t
//
// rule = "threshold": t is the given number, in units of the input.
// rule = "lambda", for inputs that are steps (unit = "step": gradient times step size gamma): the number is in units of the gradient, and
// t = gamma lambda. rule = "gamma" and "gamma_steps", for inputs that are updates (unit = "update": the sum of local steps): t is the
// number times the step size of a local step, or times that and local.steps (stragglers, who take fewer steps, have the same t). All of
// them follow a step size that decays. The number may be an expression over k, epsilon, d (parameters) and, for steps, gamma (this round's
// step size):
//   "1/(2*sqrt(k))"             as good as Top-k with k entries, for a noise level of 1/4
//   "sqrt(epsilon/d)/gamma"     with rule = "lambda": the error of a step stays below epsilon, d gamma^2 lambda^2 = epsilon
// Strom, "Scalable distributed DNN training using commodity GPU cloud computing", INTERSPEECH 2015; Dutta et al., "On the discrepancy
// between the theoretical analysis and practical implementations of compressed communication", AAAI 2020; Sahu, Dutta, Abdelmoniem,
// Banerjee, Canini, Kalnis, "Rethinking gradient sparsification as total error minimization", NeurIPS 2021.
// Group: sparsifier
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <string>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/value_format.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/config/rule_field.hpp"
#include "fl_core/message/payload_segments.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

struct HardThresholdOptions {
  Expression threshold = 0.01;
  StepRule rule = StepRule::input;
  std::int64_t k = 0;
  double epsilon = 0;
  ValueFormat value_format = ValueFormat::native;
};

inline void describe(Schema& s, HardThresholdOptions& o) {
  rule_field(s, "threshold", o.threshold, {"k", "epsilon", "d", "gamma"}, "smallest magnitude that is kept");
  describe_step_rule(s, o.rule, "threshold");
  s.field("k", o.k, "value of k in a rule: entries that Top-k would keep").at_least(1).at_most(4294967295.0);
  s.field("epsilon", o.epsilon, "value of epsilon in a rule: squared error allowed per step").above(0);
  s.choice("value_format", o.value_format, value_format_names(), "number format of the values sent");
}

// Returns the threshold for the step sizes of a round and d parameters. Throws ConfigError unless it is a positive number.
inline double resolve_threshold(const HardThresholdOptions& o, const StepSizes& steps, std::size_t d) {
  double value = 0;
  if (o.threshold.is_number()) {
    static const std::map<std::string, double> kNoNames;
    value = o.threshold.resolve(kNoNames);
  } else {
    std::map<std::string, double> names = {{"d", static_cast<double>(d)}, {"gamma", steps.in_input}};
    if (o.k > 0) names["k"] = static_cast<double>(o.k);
    if (o.epsilon > 0) names["epsilon"] = o.epsilon;
    value = o.threshold.resolve(names);
  }
  const double factor = step_factor(o.rule, steps);
  value *= factor;
  if (!(value > 0) || std::isinf(value)) {
    const std::string rule = o.threshold.is_number() ? "" : "\"" + o.threshold.text() + "\" ";
    throw key_error("threshold", "hard_threshold: threshold " + rule + "must be a positive number, is " + to_string(Value{value}) +
                                     (factor > 0 ? "" : " because the step size is not positive") + "; to send everything use identity");
  }
  return value;
}

inline void validate(const HardThresholdOptions& o, Problems& problems) {
  for (const std::string& name : names_of(o.threshold))
    if ((name == "k" && o.k <= 0) || (name == "epsilon" && o.epsilon <= 0))
      problems.push_back({name, "is required, because threshold = \"" + o.threshold.text() + "\" names it"});
  if (!o.threshold.is_number()) return;
  try {
    (void)resolve_threshold(o, {}, 1);
  } catch (const ConfigError& error) {
    problems.push_back({"threshold", error.problems().front().message});
  }
}

namespace FL_DEVICE_NS {
namespace {

template <class T>
class HardThreshold final : public Compressor<T> {
 public:
  explicit HardThreshold(const HardThresholdOptions& options) : options_(options) {}

  // fp16 values satisfy the bound if their rounding does: |x_j| <= 2^11 t.
  [[nodiscard]] Contract contract(const Scope& scope) const override {
    Contract contract;
    contract.cost = costs::reading(2) + costs::kept(0);
    contract.kappa = kappa_at(scope, {});
    const double rounding = relative_rounding<T>(options_.value_format);
    contract.domain = rounding_domain<T>(options_.value_format);
    if (rounding > 0) {
      MagnitudeRange& sent = contract.domain.sent;
      sent.most = std::min(sent.most, resolve_threshold(options_, {}, num_shared(scope)) / rounding);
    }
    follow(contract.domain, options_.rule);
    contract.domain.follows_step |= names_gamma(options_.threshold);
    return contract;
  }
  [[nodiscard]] double kappa_at(const Scope& scope, const StepSizes& steps) const override {
    std::size_t d = 0;
    for (const Segment& segment : scope.segments) d += segment.size();
    return std::sqrt(static_cast<double>(d)) * resolve_threshold(options_, steps, num_shared(scope));
  }

  void check(const Scope& scope) const override { (void)resolve_threshold(options_, {}, num_shared(scope)); }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const auto threshold = static_cast<T>(threshold_for(context.steps, num_shared(scope)));
    const AtLeast<T> keep{std::max(threshold, std::numeric_limits<T>::denorm_min())};
    select_rows(exec, input, scope, keep, wire_of<T>(options_.value_format), state, messages);
  }

 private:
  // Returns the threshold for the step sizes of a round. A rule is evaluated once for them, because for small models its evaluation costs
  // more than the compression.
  double threshold_for(const StepSizes& steps, std::size_t d) {
    if (options_.threshold.is_number()) return resolve_threshold(options_, steps, d);
    const std::lock_guard lock(mutex_);
    if (steps != steps_ || d != d_) {
      threshold_ = resolve_threshold(options_, steps, d);
      steps_ = steps;
      d_ = d;
    }
    return threshold_;
  }

  HardThresholdOptions options_;
  std::mutex mutex_;
  StepSizes steps_{.in_input = std::numeric_limits<double>::quiet_NaN()};
  double threshold_ = 0;
  std::size_t d_ = 0;
};

FL_REGISTER_PART(Compressor, HardThreshold, HardThresholdOptions,
                 (PartInfo{"compressor", "hard_threshold", "every entry at least as large as a threshold; an absolute compressor",
                           "Dutta et al., On the discrepancy between theory and practice of compressed communication, AAAI 2020"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
