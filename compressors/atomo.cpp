// ATOMO: an unbiased random choice among the atoms of a decomposition, the entries of a vector or the singular triplets of a matrix.
//
//   x = sum_i lambda_i a_i,   C(x) = sum over kept i of (lambda_i / p_i) a_i,   atom i kept with probability p_i,   sum p_i = budget
//   p: while |lambda_i| s > |lambda_rest|_1 for the largest one left: p_i = 1, s <- s - 1;   the rest p_i = |lambda_i| s / |lambda_rest|_1
//
// Unbiased, E|C(x)|^2 = sum lambda_i^2 / p_i, the minimum for this budget. p_i = budget / N is feasible, so omega = N / budget - 1 with N
// atoms (d entries, min(n,m) triplets), the largest over segments. scaled = true sends C / (1 + omega): a contraction in expectation, delta
// = 1 / (1 + omega). For entries, wangni's corrections converge to these probabilities. atoms = "entries": the budget is k or ratio;
// positions and values are sent. atoms = "singular": the budget is `rank` triplets per matrix; factors are sent, and tensors without a
// matrix shape are sent uncompressed. Published bits: 32 per number. H. Wang, S. Sievert, S. Liu, Z. Charles, D. Papailiopoulos, S. Wright,
// "ATOMO: Communication-efficient learning via atomic sparsification", NeurIPS 2018.
// Group: low rank
#include <algorithm>
#include <cmath>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/support/kept_with_probability.hpp"
#include "compressors/support/low_rank.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "compressors/support/sparsity.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

enum class Atoms { entries, singular };

struct AtomoOptions {
  Atoms atoms = Atoms::entries;
  Sparsity kept;
  std::int64_t rank = 2;
  bool scaled = false;
};

inline void describe(Schema& s, AtomoOptions& o) {
  s.choice("atoms", o.atoms, {{Atoms::entries, "entries"}, {Atoms::singular, "singular"}},
           "entries of a segment, or singular triplets of a matrix");
  describe_sparsity(s, o.kept);
  s.field("rank", o.rank, "singular triplets expected of each matrix, for atoms = \"singular\"").at_least(1).at_most(1024);
  s.field("scaled", o.scaled, "divide by 1 + omega: no longer unbiased, but a contraction, as error feedback needs it");
}
inline void validate(const AtomoOptions& o, Problems& problems) { validate_sparsity(o.kept, problems); }

namespace FL_DEVICE_NS {
namespace {

// Returns a with p_i = min(1, a lambda_i), from magnitudes in ascending order and their running sums. The sums start
// at the small end, where small terms still count.
template <class U>
[[nodiscard]] FL_HD inline double atomo_slope(const U* lambda, const double* sum, std::size_t n, double budget) {
  std::size_t uncertain = n;
  while (uncertain > 0 && budget > 1 && static_cast<double>(lambda[uncertain - 1]) * budget > sum[uncertain - 1]) {
    --uncertain;
    budget -= 1;
  }
  const double rest = uncertain > 0 ? sum[uncertain - 1] : 0, slope = rest > 0 ? budget / rest : 0;
  if (uncertain == n) return slope;
  const double least = 1 / static_cast<double>(lambda[uncertain]);
  return slope < least ? least : slope;
}

template <class T>
struct FindAtomo {
  const T* sorted;
  const double* sum;
  std::size_t n;
  double budget, *a;
  FL_HD void operator()(std::size_t) const { *a = atomo_slope(sorted, sum, n, budget); }
};

template <class T>
class Atomo final : public Compressor<T> {
 public:
  explicit Atomo(const AtomoOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    double omega = 0;
    for (const Segment& segment : scope.segments) omega = std::max(omega, omega_of(segment));
    Contract contract;
    contract.cost = stated_cost(scope);
    if (options_.scaled) {
      contract.delta = 1 / (1 + omega);
      contract.delta_holds = Contract::Holds::in_expectation;
    } else {
      contract.omega = omega;
    }
    if (has_matrices()) contract.domain = singular_value_domain<T>();
    return contract;
  }
  [[nodiscard]] Scope adapt(Scope scope) const override { return has_matrices() ? matrices_of(std::move(scope)) : scope; }
  void check(const Scope& scope) const override {
    if (has_matrices())
      demand_matrices("atomo with atoms = \"singular\"", scope);
    else
      check_sparsity("atomo", options_.kept, scope);
  }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    if (has_matrices()) return send_triplets(exec, context, input, scope, state, messages);
    std::vector<double> factor;
    for (const Segment& segment : scope.segments) factor.push_back(factor_of(segment));
    Workspace::Frame frame(*exec.workspace);
    T* sorted = frame.take<T>(largest_segment(scope));
    auto* sum = frame.take<double>(largest_segment(scope));
    send_with_probability(exec, context, input, scope, std::span<const double>(factor), state, messages,
                          [&](std::size_t, const T* p, std::size_t n, double* a) {
                            for_each(exec, n, CopyMagnitude<T>{p, sorted});
                            sort_rows(exec, sorted, 1, n);
                            running_sums(exec, static_cast<const T*>(sorted), n, sum);
                            const double budget = kept_entries(options_.kept, n);
                            for_each(exec, 1, FindAtomo<T>{sorted, sum, n, budget, a});
                          });
  }

 private:
  // Entries: magnitudes are sorted and added up in double, and every entry draws a number.
  [[nodiscard]] EntryCost stated_cost(const Scope& scope) const {
    if (has_matrices()) return costs::copy() + costs::singular_values(scope);
    return costs::copy() + costs::copy() + costs::sorting(static_cast<double>(largest_segment(scope))) + EntryCost{3, 1} +
           costs::reading(kRandomOperations + 4) + costs::kept(kept_fraction(options_.kept, scope));
  }
  [[nodiscard]] bool has_matrices() const { return options_.atoms == Atoms::singular; }
  [[nodiscard]] double omega_of(const Segment& segment) const {
    const auto atoms = static_cast<double>(has_matrices() ? std::min(segment.rows, segment.cols) : segment.size());
    const double budget = has_matrices() ? static_cast<double>(options_.rank) : kept_entries(options_.kept, segment.size());
    return std::max(0.0, atoms / budget - 1);
  }
  [[nodiscard]] double factor_of(const Segment& segment) const { return options_.scaled ? 1 / (1 + omega_of(segment)) : 1.0; }

  // Sends triplets. Draw i of a matrix is word i of the stream of its client, round and segment.
  void send_triplets(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope,
                     const StateWrite<T>& state, std::span<Payload<T>* const> messages) const {
    send_factors(exec, input, scope, state, messages, [&](std::uint32_t k, const T* p, FactorMessage<T>& message) {
      for (std::size_t s = 0; s < scope.segments.size(); ++s) {
        const Segment& m = scope.segments[s];
        Workspace::Frame frame(*exec.workspace);
        const SingularValues d = singular_values(exec, p + m.begin, m, frame);
        const RandomStream stream = segment_stream(context, k, s);
        const double slope = slope_of(d.S);
        std::vector<std::size_t> kept;
        std::vector<double> weight;
        for (std::size_t i = 0; i < d.rank; ++i) {
          const double probability = std::min(1.0, slope * d.S[i]);
          if (!(stream.uniform<double>(i) < probability)) continue;
          kept.push_back(i);
          weight.push_back(factor_of(m) * d.S[i] / probability);
        }
        message.add(d, kept, weight);
      }
    });
  }

  // Returns the slope a for the singular values S, which are descending.
  [[nodiscard]] double slope_of(const std::vector<double>& S) const {
    const std::vector<double> ascending(S.rbegin(), S.rend());
    std::vector<double> sum;
    for (const double s : ascending) sum.push_back((sum.empty() ? 0.0 : sum.back()) + s);
    return atomo_slope(ascending.data(), sum.data(), sum.size(), static_cast<double>(options_.rank));
  }

  AtomoOptions options_;
};

FL_REGISTER_PART(Compressor, Atomo, AtomoOptions,
                 (PartInfo{"compressor", "atomo", "random entries or singular triplets with the probabilities of least variance; unbiased",
                           "Wang, Sievert, Liu, Charles, Papailiopoulos, Wright, ATOMO, NeurIPS 2018"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
