#include "scenarios/experiment/theory.hpp"

#include <algorithm>
#include <cmath>

#include "clients/learning/bounded_gradients.hpp"

namespace fl {
namespace {

constexpr double kRounding = 1 + 1e-9;  // tolerance for a step size given as 1/(2 L)

// Returns whether an option has the value that TOML writes as `value`; true if the part has no such option.
bool is_plain(Part part, const std::string& option, const std::string& value) {
  Schema schema = part.options.schema();
  const Field* field = schema.find(option);
  return field == nullptr || to_string(field->value()) == value;
}

// The compression error that remains: none, at most kappa, or a share below 1 - delta. An unbiased operator without feedback is noise.
struct Promise {
  int theorem = 0;
  double kappa = 0, delta = 0;
  bool is_lossless = false;
  double M = 0;  // omega of an unbiased operator, which also adds omega times the minibatches' noise
  bool in_expectation = false;
};

template <class T>
std::optional<Promise> promise_of(const TheoryParts<T>& parts) {
  using Holds = Contract::Holds;
  const ExchangeChannel<T>& up = parts.exchange.channels.front();
  const Contract contract = up.compressor->contract(up.scope);
  const std::string& feedback = parts.scenario.feedback_up.kind;
  const bool is_lossless = contract.kappa == 0.0 && contract.delta == 1.0;
  if (is_lossless && (feedback == "ef14" || feedback == "none")) return Promise{.theorem = 8, .delta = 1, .is_lossless = true};
  if (feedback == "none" && contract.omega && contract.domain.is_everywhere() && !contract.domain.at_step_size_one())
    return Promise{.theorem = 8, .M = *contract.omega, .in_expectation = true};
  if (feedback != "ef14" || !contract.domain.is_everywhere()) return std::nullopt;
  if (contract.kappa) {
    if (contract.domain.follows_local_step || contract.domain.follows_local_total) return std::nullopt;
    const double inside = parts.unit == Unit::step ? parts.step_size : 1;
    return Promise{.theorem = 6,
                   .kappa = up.compressor->kappa_at(up.scope, {.in_input = inside}) / inside,
                   .in_expectation = contract.kappa_holds == Holds::in_expectation};
  }
  if (contract.delta)
    return Promise{.theorem = 7, .delta = *contract.delta, .in_expectation = contract.delta_holds == Holds::in_expectation};
  return std::nullopt;
}

// Returns the smoothness that enters the theorem. For lossless compression only that of f enters its proof.
double smoothness_of(const Promise& promise, const TheoryNumbers& numbers) { return promise.is_lossless ? numbers.L : numbers.L_max; }

// Returns the largest step size that the theorem allows, times L.
double most_step(const Promise& promise, double largest_weight) {
  const double noisy = 1 / (1 + promise.M * largest_weight);
  if (promise.theorem == 8) return noisy;
  if (promise.theorem == 6) return 0.5 * noisy;
  return 0.5 * std::min(noisy, promise.delta / (2 * std::sqrt(1 - promise.delta)));
}

}  // namespace

template <class T>
std::optional<GradientNoise> gradient_noise(const FederatedProblem<T>& problem, const SamplingOptions& sampling) {
  if (!sampling.sample_file.empty()) return std::nullopt;
  GradientNoise noise;
  if (sampling.batch == 0) return noise;
  const std::vector<double> variance = problem.gradient_variance();
  if (variance.empty()) return std::nullopt;
  const auto b = static_cast<double>(sampling.batch);
  for (std::size_t i = 0; i < variance.size(); ++i) {
    const double m = static_cast<double>(problem.num_rows_of(i)), w = problem.weights()[i];
    const double share = sampling.replacement ? 1 / b : m > b ? (m - b) / (b * (m - 1)) : 0.0;
    noise.mean += w * share * variance[i];
    noise.of_mean += w * w * share * variance[i];
  }
  return noise;
}

bool has_everyone(const Scenario& scenario) {
  return scenario.participation.part.kind == "full" && scenario.delivery.kind == "all" && scenario.availability.kind == "always" &&
         !scenario.is_asynchronous();
}

bool has_constant_step(const Schedule& schedule) { return schedule.kind == Schedule::Kind::constant && schedule.warmup_rounds == 0; }

bool steps_plainly(const Part& server) {
  return server.kind == "sgd" && is_plain(server, "momentum", "0.0") && is_plain(server, "weight_decay", "0.0") &&
         is_plain(server, "learning_rate", "1.0") && is_plain(server, "nesterov", "\"none\"");
}

bool averages_by_weight(const Scenario& s) {
  if (s.aggregation.kind != "mean") return false;
  return s.server.average == Average::weighted || (s.server.average == Average::uniform && s.model.weights == ModelSpec::Weights::uniform);
}

bool sends_models_exactly(const Scenario& scenario) {
  return scenario.down.part.kind == "identity" && is_plain(scenario.down.part, "format", "\"native\"");
}

bool changes_nothing(const Part& postprocessor) { return postprocessor.kind == "none"; }

template <class T>
bool has_theory(const TheoryParts<T>& parts) {
  return parts.scenario.local.kind == "gradient" && parts.scenario.model.keep.empty() && !parts.local.traits().needs_optimum &&
         has_constant_step(parts.local.step_settings().schedule) && has_everyone(parts.scenario) &&
         steps_plainly(parts.scenario.server.part) && averages_by_weight(parts.scenario) && sends_models_exactly(parts.scenario) &&
         changes_nothing(parts.scenario.postprocessor) && parts.exchange.channels.size() == 1 && promise_of(parts).has_value();
}

template <class T>
std::vector<ResolvedConstant> theory_constants(const TheoryParts<T>& parts, const TheoryNumbers& numbers) {
  const std::optional<Promise> promise = promise_of(parts);
  if (!promise) return {};
  const double smoothness = smoothness_of(*promise, numbers);
  if (parts.step_size * smoothness > most_step(*promise, numbers.largest_weight) * kRounding) return {};
  std::vector<ResolvedConstant> constants = {{"theorem", static_cast<double>(promise->theorem)}, {"theorem_L", smoothness}};
  if (promise->theorem == 6) constants.push_back({"theorem_kappa", promise->kappa});
  if (promise->theorem == 7) constants.push_back({"theorem_delta", promise->delta});
  return constants;
}

template <class T>
std::vector<ResolvedConstant> convex_theory_constants(const TheoryParts<T>& parts, const TheoryNumbers& numbers, double mu,
                                                      double distance_sq) {
  const std::optional<Promise> promise = promise_of(parts);
  const bool is_absolute = promise && (promise->theorem == 6 || promise->theorem == 8);
  if (!is_absolute) return {};
  const double most = 0.25 / (1 + 2 * promise->M * numbers.largest_weight);
  if (parts.step_size * numbers.L_max > most * kRounding) return {};
  return {{"average_theorem", mu > 0 ? 4.0 : 5.0},
          {"average_L", numbers.L_max},
          {"average_kappa", promise->kappa},
          {"average_mu", mu},
          {"average_R0_sq", distance_sq}};
}

template <class T>
std::vector<ResolvedConstant> noise_constants(const TheoryParts<T>& parts, const TheoryNumbers& numbers) {
  const std::optional<Promise> promise = promise_of(parts);
  if (!promise) return {};
  const bool has_noise = promise->M > 0 || numbers.noise.mean > 0;
  std::vector<ResolvedConstant> constants;
  if (has_noise)
    constants = {{"theorem_M", promise->M},
                 {"theorem_sigma_sq", (1 + promise->M) * numbers.noise.mean},
                 {"theorem_mean_sigma_sq", (1 + promise->M) * numbers.noise.of_mean},
                 {"theorem_largest_weight", numbers.largest_weight}};
  if (has_noise || promise->in_expectation) constants.push_back({"theorem_in_expectation", 1});
  return constants;
}

template std::optional<GradientNoise> gradient_noise(const FederatedProblem<float>&, const SamplingOptions&);
template std::optional<GradientNoise> gradient_noise(const FederatedProblem<double>&, const SamplingOptions&);
template bool has_theory(const TheoryParts<float>&);
template bool has_theory(const TheoryParts<double>&);
template std::vector<ResolvedConstant> theory_constants(const TheoryParts<float>&, const TheoryNumbers&);
template std::vector<ResolvedConstant> theory_constants(const TheoryParts<double>&, const TheoryNumbers&);
template std::vector<ResolvedConstant> convex_theory_constants(const TheoryParts<float>&, const TheoryNumbers&, double, double);
template std::vector<ResolvedConstant> convex_theory_constants(const TheoryParts<double>&, const TheoryNumbers&, double, double);
template std::vector<ResolvedConstant> noise_constants(const TheoryParts<float>&, const TheoryNumbers&);
template std::vector<ResolvedConstant> noise_constants(const TheoryParts<double>&, const TheoryNumbers&);

}  // namespace fl
