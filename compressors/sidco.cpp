// SIDCo: the threshold is the quantile of a sparsity-inducing distribution fitted to the magnitudes, in one or several stages.
//
//   a_j = |x_j| / |x|_2,   wanted ratio r,   M stages,   C(x)_j = x_j if a_j > t, else 0
//   first stage, at ratio rho = r if M = 1 or r >= first_ratio, else first_ratio:
//     exponential    t = -mean(a) ln rho                                                              (SIDCo-E)
//     pareto         t = alpha (1 - rho^q) / q,   alpha = mean (mean^2/var + 1) / 2,   q = (mean^2/var - 1) / 2      (SIDCo-P)
//     gamma_pareto   t = beta P^-1(alpha, 1 - rho),  s = ln mean - mean ln a,  alpha = (3 - s + sqrt((s-3)^2 + 24 s)) / (12 s),
//                    beta = mean / alpha                                                              (SIDCo-GP)
//   M - 1 further stages at ratio rho = (r / first_ratio)^(1/(M-1)), on the magnitudes above t:  b = a - min a,
//     exponential    t = min a - mean(b) ln rho;        pareto, gamma_pareto   t = min a + (the quantile above, of b)
//
// var has n - 1 in its denominator; a fit of fewer than two different numbers ends the stages. With r >= first_ratio there is one stage.
// stages = 0 adapts M for each client: every update_every rounds the mean of sent/wanted is tested; above 1.2 the operator removes one
// stage, below 0.8 it adds one, within 1 .. ceil(log_0.5 r). The operator therefore stores three numbers per client: M - 1, the sum, the
// rounds. It has no class: the fit determines the number of entries sent, which may be 0. Intended for error feedback. Published bits: 32
// per value.
// Sums are those of reduce_rows, the same on every device; formulas are evaluated on the host. gamma_pareto takes a logarithm of every
// magnitude, which every device rounds alike (compressors/support/logarithm.hpp). A. M. Abdelmoniem, A. Elzanaty, M.-S. Alouini, M.
// Canini, "An efficient statistical-based gradient compression technique for distributed training systems", MLSys 2021, and its code, with
// which formulas and rules were compared.
// Group: sparsifier
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/support/dense_form.hpp"
#include "compressors/support/few_numbers.hpp"
#include "compressors/support/incomplete_gamma.hpp"
#include "compressors/support/logarithm.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "compressors/support/sparsity.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

enum class SidcoFit { exponential, pareto, gamma_pareto };

struct SidcoOptions {
  double ratio = 0.01, first_ratio = 0.25;
  SidcoFit fit = SidcoFit::exponential;
  std::int64_t stages = 0, update_every = 5;
};

inline void describe(Schema& s, SidcoOptions& o) {
  s.field("ratio", o.ratio, "fraction of a segment's entries that is wanted").above(0).below(1);
  s.choice("fit", o.fit, {{SidcoFit::exponential, "exponential"}, {SidcoFit::pareto, "pareto"}, {SidcoFit::gamma_pareto, "gamma_pareto"}},
           "distribution of the magnitudes: exponential, generalised Pareto, or gamma followed by generalised Pareto");
  s.field("stages", o.stages, "number of fits, each on the magnitudes above the previous threshold; 0 adapts the number")
      .at_least(0)
      .at_most(64);
  s.field("first_ratio", o.first_ratio, "ratio of the first of several stages").above(0).below(1);
  s.field("update_every", o.update_every, "rounds of a client after which an adapted number of stages is revised")
      .at_least(1)
      .at_most(1000000);
}

namespace FL_DEVICE_NS {
namespace {

// Computes a_j = |p_j| / norm of its segment.
template <class T>
struct Normalise {
  const T* p;
  double norm, *a;
  FL_HD void operator()(std::size_t j) const { a[j] = fabs(static_cast<double>(p[j])) / norm; }
};

// Maps of normalised magnitudes for sums over those above their segment's threshold; [S] on the device.
struct SquareOver {
  const double* largest;
  template <class T>
  FL_HD double operator()(T p, std::size_t s) const {
    const double x = fabs(static_cast<double>(p)) / largest[s];
    return x * x;
  }
};
struct CountAbove {
  const double* threshold;
  FL_HD double operator()(double a, std::size_t s) const { return a > threshold[s] ? 1 : 0; }
};
struct ValueAbove {
  const double* threshold;
  FL_HD double operator()(double a, std::size_t s) const { return a > threshold[s] ? a : 0; }
};
struct NegativeAbove {  // the maximum is minus the smallest magnitude
  const double* threshold;
  FL_HD double operator()(double a, std::size_t s) const { return a > threshold[s] ? -a : -HUGE_VAL; }
};
struct DeviationAbove {
  const double *threshold, *mean;
  FL_HD double operator()(double a, std::size_t s) const { return a > threshold[s] ? (a - mean[s]) * (a - mean[s]) : 0; }
};
struct LogOf {
  double smallest;
  FL_HD double operator()(double a) const { return portable_log(a + smallest); }
};

// Computes c = p if its normalised magnitude exceeds the threshold, else 0.
template <class T>
struct KeepAbove {
  const T* p;
  const double* a;
  double threshold;
  T* c;
  FL_HD void operator()(std::size_t j) const { c[j] = a[j] > threshold ? p[j] : T(0); }
};

// Moments of the magnitudes of a segment that lie above a threshold.
struct Moments {
  double n = 0, mean = 0, variance = 0, least = 0;
};

// Returns the moments [S] of a [P].
std::vector<Moments> moments_above(const Exec& exec, const double* a, const Scope& scope, const std::vector<double>& threshold) {
  Workspace::Frame frame(*exec.workspace);
  const Affine<double> input = vector_input(a, scope.P);
  const double* bound = on_device(exec, threshold, frame);
  const std::vector<double> count = reduced_on_host(exec, input, scope, CountAbove{bound}, Reduce::sum);
  const std::vector<double> sum = reduced_on_host(exec, input, scope, ValueAbove{bound}, Reduce::sum);
  const std::vector<double> negative = reduced_on_host(exec, input, scope, NegativeAbove{bound}, Reduce::max);
  std::vector<double> mean;
  for (std::size_t s = 0; s < count.size(); ++s) mean.push_back(count[s] > 0 ? sum[s] / count[s] : 0);
  const std::vector<double> squares = reduced_on_host(exec, input, scope, DeviationAbove{bound, on_device(exec, mean, frame)}, Reduce::sum);
  std::vector<Moments> moments;
  for (std::size_t s = 0; s < count.size(); ++s)
    moments.push_back({count[s], mean[s], squares[s] / std::max(1.0, count[s] - 1), -negative[s]});
  return moments;
}

// Returns the value that a fraction rho of the generalised Pareto distribution with these moments exceeds.
double pareto_quantile(double mean, double variance, double rho) {
  const double square = mean * mean / variance, alpha = 0.5 * mean * (square + 1), q = 0.5 * (square - 1);
  return std::fabs(q) < 1e-12 ? -alpha * std::log(rho) : -alpha * std::expm1(q * std::log(rho)) / q;
}

// Returns that value for the gamma distribution, with the closed approximation of its shape.
double gamma_quantile(double mean, double mean_log, double rho) {
  const double s = std::log(mean) - mean_log;
  if (!(s > 0)) return mean;  // all equal
  const double shape = (3 - s + std::sqrt((s - 3) * (s - 3) + 24 * s)) / (12 * s);
  return mean / shape * inverse_regularised_gamma(shape, 1 - rho);
}

// Returns the thresholds of the first stage [S], from all magnitudes.
std::vector<double> first_thresholds(const Exec& exec, const SidcoOptions& o, const double* a, const Scope& scope, double rho) {
  const std::size_t S = scope.segments.size();
  const std::vector<Moments> moments = moments_above(exec, a, scope, std::vector<double>(S, -1.0));
  std::vector<double> sum_log, threshold;
  if (o.fit == SidcoFit::gamma_pareto) {
    const LogOf log_of{std::numeric_limits<double>::epsilon()};
    sum_log = reduced_on_host(exec, vector_input(a, scope.P), scope, log_of, Reduce::sum);
  }
  for (std::size_t s = 0; s < S; ++s) {
    const Moments& m = moments[s];
    const auto n = static_cast<double>(scope.segments[s].size());
    threshold.push_back(o.fit == SidcoFit::exponential    ? -m.mean * std::log(rho)
                        : o.fit == SidcoFit::gamma_pareto ? gamma_quantile(m.mean, sum_log[s] / n, rho)
                        : m.variance > 0                  ? pareto_quantile(m.mean, m.variance, rho)
                                                          : m.mean);
  }
  return threshold;
}

// Returns the thresholds on normalised magnitudes [S]. Each stage has fewer magnitudes above its threshold.
std::vector<double> fitted_thresholds(const Exec& exec, const SidcoOptions& o, const double* a, const Scope& scope, int stages) {
  const bool is_single = stages == 1 || o.ratio >= o.first_ratio;
  std::vector<double> threshold = first_thresholds(exec, o, a, scope, is_single ? o.ratio : o.first_ratio);
  if (is_single) return threshold;
  const double rho = std::pow(o.ratio / o.first_ratio, 1.0 / (stages - 1));
  for (int stage = 1; stage < stages; ++stage) {
    const std::vector<Moments> moments = moments_above(exec, a, scope, threshold);
    bool has_moved = false;
    for (std::size_t s = 0; s < threshold.size(); ++s) {
      const Moments& m = moments[s];
      if (m.n < 2 || !(m.variance > 0)) continue;  // true for all later stages as well
      const double above = m.mean - m.least;
      threshold[s] = m.least + (o.fit == SidcoFit::exponential ? -above * std::log(rho) : pareto_quantile(above, m.variance, rho));
      has_moved = true;
    }
    if (!has_moved) break;
  }
  return threshold;
}

template <class T>
class Sidco final : public Compressor<T> {
 public:
  explicit Sidco(const SidcoOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope&) const override {
    Contract contract;
    contract.cost = stated_cost();
    return contract;
  }
  [[nodiscard]] std::size_t client_state_size(const Scope&) const override { return options_.stages == 0 ? 3 : 0; }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    Workspace::Frame frame(*exec.workspace);
    T *p = frame.take<T>(scope.P), *c = frame.take<T>(scope.P);
    auto* a = frame.take<double>(scope.P);
    const bool adapts = options_.stages == 0;
    std::optional<RememberedNumbers<T>> remembered;
    if (adapts) remembered.emplace(exec, context.remembered, 3);
    for (std::uint32_t k = 0; k < messages.size(); ++k) {
      load_vector(exec, input, k, p);
      const int stages = adapts ? adapted_stages(remembered->of(k)[0]) : static_cast<int>(options_.stages);
      select(exec, scope, p, a, stages, c);
      send_nonzeros(exec, scope, p, c, state.slice(k, 1), messages.subspan(k, 1));
      if (adapts) remembered->set(k, next_stages(remembered->of(k), messages[k]->num_sent, scope));
    }
    if (adapts) remembered->write(exec, context.remember);
  }

 private:
  // The largest entry, the norm, the magnitudes in double, a reading for each stage of the fit (two where their number adapts), and the
  // selection.
  [[nodiscard]] EntryCost stated_cost() const {
    const double stages = options_.stages == 0 ? 2 : static_cast<double>(options_.stages);
    const double fit = options_.fit == SidcoFit::exponential ? 2 : 2 + kFunctionOperations;
    return costs::copy() + costs::reading(1) + costs::reading(2) + EntryCost{3, 2} + stages * EntryCost{2, fit} + EntryCost{4, 1} +
           costs::kept(options_.ratio);
  }
  // Computes c [P] = p if its normalised magnitude exceeds the threshold of its segment, else 0. a [P]: room for the magnitudes.
  void select(const Exec& exec, const Scope& scope, const T* p, double* a, int stages, T* c) const {
    Workspace::Frame frame(*exec.workspace);
    const std::size_t S = scope.segments.size();
    const Affine<T> input = vector_input(p, scope.P);
    const std::vector<double> largest = reduced_on_host(exec, input, scope, MagnitudeOf{}, Reduce::max);
    const std::vector<double> squares = reduced_on_host(exec, input, scope, SquareOver{on_device(exec, largest, frame)}, Reduce::sum);
    for (std::size_t s = 0; s < S; ++s) {
      const Segment& segment = scope.segments[s];
      for_each(exec, segment.size(), Normalise<T>{p + segment.begin, largest[s] * std::sqrt(squares[s]), a + segment.begin});
    }
    const std::vector<double> threshold = fitted_thresholds(exec, options_, a, scope, stages);
    for (std::size_t s = 0; s < S; ++s) {
      const Segment& segment = scope.segments[s];
      const bool is_usable = largest[s] > 0 && std::isfinite(largest[s]);
      const double bound = is_usable ? std::max(0.0, threshold[s]) : HUGE_VAL;
      for_each(exec, segment.size(), KeepAbove<T>{p + segment.begin, a + segment.begin, bound, c + segment.begin});
    }
  }

  // Returns the largest number of stages that the operator gives itself.
  [[nodiscard]] double most_stages() const { return std::max(1.0, std::ceil(std::log(options_.ratio) / std::log(0.5))); }
  // Returns the number of stages that a number of the state stands for. The state may come from a file or be another caller's.
  [[nodiscard]] int adapted_stages(T number) const {
    const double further = static_cast<double>(number);
    return 1 + static_cast<int>(further > 0 ? std::min(further, most_stages() - 1) : 0.0);
  }

  // Returns the next state. State: stages - 1, sum of sent/wanted, rounds since the last revision.
  [[nodiscard]] std::vector<T> next_stages(const std::vector<T>& memory, std::size_t num_sent, const Scope& scope) const {
    double stages = static_cast<double>(memory[0]) + 1;
    const double sum = static_cast<double>(memory[1]) + static_cast<double>(num_sent) / compressed_size(scope) / options_.ratio;
    const double rounds = static_cast<double>(memory[2]) + 1;
    const bool is_due = rounds >= static_cast<double>(options_.update_every);
    if (is_due) {
      stages += sum / rounds > 1.2 ? -1 : sum / rounds < 0.8 ? 1 : 0;
      stages = std::clamp(stages, 1.0, most_stages());
    }
    return {static_cast<T>(stages - 1), is_due ? T(0) : static_cast<T>(sum), is_due ? T(0) : static_cast<T>(rounds)};
  }

  SidcoOptions options_;
};

FL_REGISTER_PART(Compressor, Sidco, SidcoOptions,
                 (PartInfo{"compressor", "sidco", "entries above a quantile of a distribution that is fitted to the magnitudes, in stages",
                           "Abdelmoniem, Elzanaty, Alouini, Canini, SIDCo, MLSys 2021"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
