// Variance-optimal sparsification: keeps entry j with probability p_j and sends x_j / p_j.
//
//   p_j = min(1, k |x_j| / |x|_1), then until nothing changes:  I = {p_j < 1},  c = (k - d + |I|) / sum_I p_j,  p_j <- min(1, c p_j) on I
//
// The result has sum p_j = k; it is the paper's algorithm of greedy probabilities. Unbiased, E|C(x)|^2 = sum x_j^2 / p_j <= (d/k) |x|^2
// after any number of corrections: the first p_j give at most |x|_1^2 / k, and later ones are larger. omega = d/k - 1, the largest over
// segments. scaled = true sends (k/d) C(x): a contraction in expectation with delta = k/d, as error feedback needs it.
// On the wire: positions and values (those with p_j < 1 are all +-|x|_1/k times the corrections; the entropy count uses this, the code does
// not). Published bits: 32 per value. Its fixed point is also ATOMO's rule for entries; ATOMO spends a budget greedily.
// J. Wangni, J. Wang, J. Liu, T. Zhang, "Gradient sparsification for communication-efficient distributed optimization", NeurIPS 2018.
// Group: sparsifier
#include <cmath>

#include "compressors/compressor.hpp"
#include "compressors/support/kept_with_probability.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/sparsity.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

struct WangniOptions {
  Sparsity kept;
  bool scaled = false;
  std::int64_t corrections = 100;
};

inline void describe(Schema& s, WangniOptions& o) {
  describe_sparsity(s, o.kept);
  s.field("scaled", o.scaled, "multiply by k/d: no longer unbiased, but a contraction, as error feedback needs it");
  s.field("corrections", o.corrections, "largest number of times that the probabilities are raised until they add up to k")
      .at_least(0)
      .at_most(1000000);
}
inline void validate(const WangniOptions& o, Problems& problems) { validate_sparsity(o.kept, problems); }

namespace FL_DEVICE_NS {
namespace {

// Computes *a with p_j = min(1, a |x_j|).
template <class T>
struct FindWangni {
  const T* p;
  std::size_t n;
  double k;
  std::int64_t corrections;
  double* a;

  FL_HD void operator()(std::size_t) const {
    double sum = 0;
    for (std::size_t j = 0; j < n; ++j) sum += magnitude(j);
    *a = sum > 0 ? k / sum : 0;
    for (std::int64_t i = 0; i < corrections && sum > 0; ++i) {
      const double c = correction(*a);
      if (!(c > 1)) return;
      *a *= c;
    }
  }
  [[nodiscard]] FL_HD double correction(double slope) const {
    double uncertain = 0, expected = 0;
    for (std::size_t j = 0; j < n; ++j) {
      const double probability = slope * magnitude(j);
      uncertain += probability < 1 ? 1 : 0;
      expected += probability < 1 ? probability : 0;
    }
    return expected > 0 ? (k - static_cast<double>(n) + uncertain) / expected : 0;
  }
  [[nodiscard]] FL_HD double magnitude(std::size_t j) const { return static_cast<double>(p[j] < T(0) ? -p[j] : p[j]); }
};

template <class T>
class Wangni final : public Compressor<T> {
 public:
  explicit Wangni(const WangniOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    const double fraction = kept_fraction(options_.kept, scope);
    Contract contract;
    contract.cost = stated_cost(scope);
    if (options_.scaled) {
      contract.delta = fraction;
      contract.delta_holds = Contract::Holds::in_expectation;
    } else {
      contract.omega = 1 / fraction - 1;
    }
    return contract;
  }
  void check(const Scope& scope) const override { check_sparsity("wangni", options_.kept, scope); }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const PerSegment<double> factor(
        scope, [this](std::size_t n) { return options_.scaled ? kept_entries(options_.kept, n) / static_cast<double>(n) : 1.0; });
    send_with_probability(exec, context, input, scope, factor.span(), state, messages,
                          [&](std::size_t, const T* p, std::size_t n, double* a) {
                            const auto k = static_cast<double>(kept_entries(options_.kept, n));
                            for_each(exec, 1, FindWangni<T>{p, n, k, options_.corrections, a});
                          });
  }

 private:
  // The probabilities are corrected until they sum to k, which takes a few readings of the entries; two are counted here.
  [[nodiscard]] EntryCost stated_cost(const Scope& scope) const {
    return costs::copy() + costs::reading(2) + 2 * costs::reading(4) + EntryCost{2, kRandomOperations + 4} +
           costs::kept(kept_fraction(options_.kept, scope));
  }
  WangniOptions options_;
};

FL_REGISTER_PART(Compressor, Wangni, WangniOptions,
                 (PartInfo{"compressor", "wangni", "random entries with the probabilities of least variance; unbiased",
                           "Wangni, Wang, Liu, Zhang, Gradient sparsification, NeurIPS 2018"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
