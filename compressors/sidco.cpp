// SIDCo: the threshold is the quantile of a sparsity-inducing distribution that is fitted to the magnitudes, in one or several stages.
//
//   a_j = |x_j| / |x|_2,   wanted ratio r,   M stages,   C(x)_j = x_j if a_j > t, else 0
//   first stage, at ratio rho = r if M = 1 or r >= first_ratio, else first_ratio:
//     exponential    t = -mean(a) ln rho                                                              (SIDCo-E)
//     pareto         t = alpha (1 - rho^q) / q,   alpha = mean (mean^2/var + 1) / 2,   q = (mean^2/var - 1) / 2      (SIDCo-P)
//     gamma_pareto   t = beta P^-1(alpha, 1 - rho),  s = ln mean - mean ln a,  alpha = (3 - s + sqrt((s-3)^2 + 24 s)) / (12 s),
//                    beta = mean / alpha                                                              (SIDCo-GP)
//   M - 1 further stages at ratio rho = (r / first_ratio)^(1/(M-1)), on what lies above t:  b = a - min a,
//     exponential    t = min a - mean(b) ln rho;        pareto, gamma_pareto   t = min a + (the quantile above, of b)
//
// var has n - 1 in its denominator; a fit of fewer than two different numbers ends the stages. With r >= first_ratio there is one stage.
// stages = 0 adapts M for each client: every update_every rounds the mean of sent/wanted is looked at; above 1.2 there is one stage fewer,
// below 0.8 one more, within 1 .. ceil(log_0.5 r). So the operator remembers three numbers of a client: M - 1, the sum, the rounds.
// No class: the number sent is the fit's, and may be none. For error feedback. Published bits: 32 per value.
// A. M. Abdelmoniem, A. Elzanaty, M.-S. Alouini, M. Canini, "An efficient statistical-based gradient compression technique for distributed
// training systems", MLSys 2021, and its code, with which formulas and rules were compared.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/dense_form.hpp"
#include "compressors/incomplete_gamma.hpp"
#include "compressors/sparsity.hpp"
#include "compressors/thresholds.hpp"
#include "fl_core/registry.hpp"
#include "fl_core/verbs.hpp"

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
  s.field("stages", o.stages, "fits one after another, each on what lies above the last; 0 adapts the number").at_least(0).at_most(64);
  s.field("first_ratio", o.first_ratio, "ratio of the first of several stages").above(0).below(1);
  s.field("update_every", o.update_every, "rounds of a client after which an adapted number of stages is revised")
      .at_least(1)
      .at_most(1000000);
}

namespace FL_DEVICE_NS {
namespace {

struct Moments {
  double mean = 0, variance = 0, least = 0;
  std::size_t n = 0;
};

Moments moments_of(const std::vector<double>& a) {
  Moments m;
  m.n = a.size();
  if (a.empty()) return m;
  m.least = *std::min_element(a.begin(), a.end());
  for (const double x : a) m.mean += x;
  m.mean /= static_cast<double>(m.n);
  for (const double x : a) m.variance += (x - m.mean) * (x - m.mean);
  m.variance /= std::max(1.0, static_cast<double>(m.n) - 1);
  return m;
}

// What a fraction rho of the generalised Pareto distribution with these moments exceeds.
double pareto_quantile(double mean, double variance, double rho) {
  const double square = mean * mean / variance, alpha = 0.5 * mean * (square + 1), q = 0.5 * (square - 1);
  return std::fabs(q) < 1e-12 ? -alpha * std::log(rho) : -alpha * std::expm1(q * std::log(rho)) / q;
}

// The same for the gamma distribution, by the closed approximation of its shape.
double gamma_quantile(const std::vector<double>& a, double mean, double rho) {
  double mean_log = 0;
  for (const double x : a) mean_log += std::log(x + std::numeric_limits<double>::epsilon());
  mean_log /= static_cast<double>(a.size());
  const double s = std::log(mean) - mean_log;
  if (!(s > 0)) return mean;  // all equal
  const double shape = (3 - s + std::sqrt((s - 3) * (s - 3) + 24 * s)) / (12 * s);
  return mean / shape * inverse_regularised_gamma(shape, 1 - rho);
}

double first_threshold(const SidcoOptions& o, const std::vector<double>& a, double rho) {
  const Moments m = moments_of(a);
  if (o.fit == SidcoFit::exponential) return -m.mean * std::log(rho);
  if (o.fit == SidcoFit::gamma_pareto) return gamma_quantile(a, m.mean, rho);
  return m.variance > 0 ? pareto_quantile(m.mean, m.variance, rho) : m.mean;
}

// The threshold on normalised magnitudes; `a` is what the fits are made of and shrinks from stage to stage.
double fitted_threshold(const SidcoOptions& o, std::vector<double> a, int stages) {
  const bool is_single = stages == 1 || o.ratio >= o.first_ratio;
  double threshold = first_threshold(o, a, is_single ? o.ratio : o.first_ratio);
  if (is_single) return threshold;
  const double rho = std::pow(o.ratio / o.first_ratio, 1.0 / (stages - 1));
  for (int stage = 1; stage < stages; ++stage) {
    std::erase_if(a, [threshold](double x) { return !(x > threshold); });
    const Moments m = moments_of(a);
    if (m.n < 2 || !(m.variance > 0)) break;
    const double above = m.mean - m.least;
    threshold = m.least + (o.fit == SidcoFit::exponential ? -above * std::log(rho) : pareto_quantile(above, m.variance, rho));
  }
  return threshold;
}

template <class T>
class Sidco final : public Compressor<T> {
 public:
  explicit Sidco(const SidcoOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope&) const override { return {}; }
  [[nodiscard]] std::size_t client_state_size(const Scope&) const override { return options_.stages == 0 ? 3 : 0; }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    Workspace::Frame frame(*exec.workspace);
    T *p = frame.take<T>(scope.P), *c = frame.take<T>(scope.P);
    for (std::uint32_t k = 0; k < messages.size(); ++k) {
      for_each(exec, scope.P, LoadInput<T>{input, k, p});
      const int stages = options_.stages > 0 ? static_cast<int>(options_.stages) : 1 + static_cast<int>(context.remembered.row(k)[0]);
      for (const Segment& segment : scope.segments) select(p + segment.begin, segment.size(), stages, c + segment.begin);
      send_nonzeros(exec, scope, p, c, state.slice(k, 1), messages.subspan(k, 1));
      if (options_.stages == 0) next_stages(context.remembered.row(k), *messages[k], scope, context.remember.row(k));
    }
  }

 private:
  // c = p where its normalised magnitude exceeds the threshold, else 0
  void select(const T* p, std::size_t n, int stages, T* c) const {
    std::vector<double> a(n);
    double largest = 0, sum = 0;
    for (std::size_t j = 0; j < n; ++j) largest = std::max(largest, a[j] = std::fabs(static_cast<double>(p[j])));
    std::fill_n(c, n, T(0));
    if (!(largest > 0) || !std::isfinite(largest)) return;
    for (double& x : a) sum += (x / largest) * (x / largest);
    const double norm = largest * std::sqrt(sum);
    for (double& x : a) x /= norm;
    const double threshold = std::max(0.0, fitted_threshold(options_, a, stages));
    for (std::size_t j = 0; j < n; ++j) c[j] = a[j] > threshold ? p[j] : T(0);
  }

  // before, after: stages - 1, sum of sent/wanted, rounds since the last revision
  void next_stages(const T* before, const Payload<T>& message, const Scope& scope, T* after) const {
    double size = 0, stages = static_cast<double>(before[0]) + 1;
    for (const Segment& segment : scope.segments) size += static_cast<double>(segment.size());
    const double sum = static_cast<double>(before[1]) + static_cast<double>(message.num_sent) / size / options_.ratio;
    const double rounds = static_cast<double>(before[2]) + 1;
    const bool is_due = rounds >= static_cast<double>(options_.update_every);
    if (is_due) {
      stages += sum / rounds > 1.2 ? -1 : sum / rounds < 0.8 ? 1 : 0;
      stages = std::clamp(stages, 1.0, std::max(1.0, std::ceil(std::log(options_.ratio) / std::log(0.5))));
    }
    after[0] = static_cast<T>(stages - 1);
    after[1] = is_due ? T(0) : static_cast<T>(sum);
    after[2] = is_due ? T(0) : static_cast<T>(rounds);
  }

  SidcoOptions options_;
};

FL_REGISTER_HOST_PART(Compressor, Sidco, SidcoOptions,
                      (PartInfo{"compressor", "sidco", "what exceeds the quantile of a distribution fitted to the magnitudes, in stages",
                                "Abdelmoniem, Elzanaty, Alouini, Canini, SIDCo, MLSys 2021"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
