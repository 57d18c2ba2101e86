// Hard threshold: keeps the entries that are at least as large as a threshold t.
//
//   C(x)_j = x_j if |x_j| >= t, else 0,      |C(x) - x|_inf < t,   |C(x) - x|^2 <= d t^2: absolute with kappa = sqrt(d) t
//
// rule = "threshold": t is the given number, in units of the input.
// rule = "lambda", for inputs that are steps (unit = "step": gradient times step size gamma): the number is in units of the gradient, and
// t = gamma lambda. The number may be a rule over k, epsilon, d (parameters) and, for steps, gamma (this round's step size):
//   "1/(2*sqrt(k))"             as good as Top-k with k entries, for a noise level of 1/4
//   "sqrt(epsilon/d)/gamma"     with rule = "lambda": the error of a step stays below epsilon, d gamma^2 lambda^2 = epsilon
// Strom, "Scalable distributed DNN training using commodity GPU cloud computing", INTERSPEECH 2015; Dutta et al., "On the discrepancy
// between the theoretical analysis and practical implementations of compressed communication", AAAI 2020; Sahu, Dutta, Abdelmoniem,
// Banerjee, Canini, Kalnis, "Rethinking gradient sparsification as total error minimization", NeurIPS 2021.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <string>

#include "compressors/compressor.hpp"
#include "compressors/value_format.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/config/rule_field.hpp"
#include "fl_core/message/payload_segments.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

enum class ThresholdRule { threshold, lambda };

struct HardThresholdOptions {
  Expression threshold = 0.01;
  ThresholdRule rule = ThresholdRule::threshold;
  std::int64_t k = 0;
  double epsilon = 0;
  ValueFormat value_format = ValueFormat::native;
};

inline void describe(Schema& s, HardThresholdOptions& o) {
  rule_field(s, "threshold", o.threshold, {"k", "epsilon", "d", "gamma"}, "smallest magnitude that is kept");
  s.choice("rule", o.rule, {{ThresholdRule::threshold, "threshold"}, {ThresholdRule::lambda, "lambda"}},
           "threshold: in units of the input; lambda: in units of the gradient, times the step size, for unit = \"step\" alone");
  s.field("k", o.k, "value of k in a rule: entries that Top-k would keep").at_least(1).at_most(4294967295.0);
  s.field("epsilon", o.epsilon, "value of epsilon in a rule: squared error allowed per step").above(0);
  s.choice("value_format", o.value_format, value_format_names(), "number format of the values sent");
}

// Returns the threshold for a step size and d parameters. Throws ConfigError unless it is a positive number.
inline double resolve_threshold(const HardThresholdOptions& o, double gamma, std::size_t d) {
  double value = 0;
  if (o.threshold.is_number()) {
    static const std::map<std::string, double> kNoNames;
    value = o.threshold.resolve(kNoNames);
  } else {
    std::map<std::string, double> names = {{"d", static_cast<double>(d)}, {"gamma", gamma}};
    if (o.k > 0) names["k"] = static_cast<double>(o.k);
    if (o.epsilon > 0) names["epsilon"] = o.epsilon;
    value = o.threshold.resolve(names);
  }
  if (o.rule == ThresholdRule::lambda) value *= gamma;
  if (!(value > 0) || std::isinf(value)) {
    const std::string rule = o.threshold.is_number() ? "" : "\"" + o.threshold.text() + "\" ";
    throw key_error("threshold", "hard_threshold: threshold " + rule + "must be a positive number, is " + to_string(Value{value}) +
                                     (gamma > 0 || o.rule == ThresholdRule::threshold ? "" : " because the step size is not positive") +
                                     "; to send everything use identity");
  }
  return value;
}

inline void validate(const HardThresholdOptions& o, Problems& problems) {
  for (const std::string& name : names_of(o.threshold))
    if ((name == "k" && o.k <= 0) || (name == "epsilon" && o.epsilon <= 0))
      problems.push_back({name, "is required, because threshold = \"" + o.threshold.text() + "\" names it"});
  if (!o.threshold.is_number()) return;
  try {
    (void)resolve_threshold(o, 1.0, 1);
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
    contract.kappa = kappa_at(scope, 1);
    const double rounding = relative_rounding<T>(options_.value_format);
    contract.domain = rounding_domain<T>(options_.value_format);
    if (rounding > 0) {
      MagnitudeRange& sent = contract.domain.sent;
      sent.most = std::min(sent.most, resolve_threshold(options_, 1, num_weights(scope)) / rounding);
    }
    contract.domain.at_step_size_one = options_.rule == ThresholdRule::lambda || names_gamma(options_.threshold);
    return contract;
  }
  [[nodiscard]] double kappa_at(const Scope& scope, double step_size) const override {
    std::size_t d = 0;
    for (const Segment& segment : scope.segments) d += segment.size();
    return std::sqrt(static_cast<double>(d)) * resolve_threshold(options_, step_size, num_weights(scope));
  }

  void check(const Scope& scope) const override { (void)resolve_threshold(options_, 1.0, num_weights(scope)); }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const auto threshold = static_cast<T>(threshold_for(context.step_size, num_weights(scope)));
    const AtLeast<T> keep{std::max(threshold, std::numeric_limits<T>::denorm_min())};
    select_rows(exec, input, scope, keep, wire_of<T>(options_.value_format), state, messages);
  }

 private:
  // Returns the threshold of a step size. A rule is evaluated once per step size, because for small models its evaluation costs more than
  // the compression.
  double threshold_for(double gamma, std::size_t d) {
    if (options_.threshold.is_number()) return resolve_threshold(options_, gamma, d);
    const std::lock_guard lock(mutex_);
    if (gamma != gamma_ || d != d_) {
      threshold_ = resolve_threshold(options_, gamma, d);
      gamma_ = gamma;
      d_ = d;
    }
    return threshold_;
  }

  HardThresholdOptions options_;
  std::mutex mutex_;
  double gamma_ = std::numeric_limits<double>::quiet_NaN(), threshold_ = 0;
  std::size_t d_ = 0;
};

FL_REGISTER_PART(Compressor, HardThreshold, HardThresholdOptions,
                 (PartInfo{"compressor", "hard_threshold", "every entry at least as large as a threshold; an absolute compressor",
                           "Dutta et al., On the discrepancy between theory and practice of compressed communication, AAAI 2020"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
