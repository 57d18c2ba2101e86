// Absolute low rank: every matrix keeps all singular triplets whose singular value exceeds a threshold lambda.
//
//   M = U diag(s) V^T,   C(M) = sum_{s_i > lambda} s_i u_i v_i^T,   |C(M) - M|_F^2 = sum_{s_i <= lambda} s_i^2 <= min(n,m) lambda^2
//
// An absolute compressor with kappa^2 = sum over matrices of min(n,m) lambda^2. It applies the hard threshold to singular values instead of
// entries. We designed it following the outlook of Sahu, Dutta, Abdelmoniem, Banerjee, Canini, Kalnis, "Rethinking gradient sparsification
// as total error minimization", NeurIPS 2021, which asks for absolute compressors beyond sparsification.
// Proof of the bound: the u_i v_i^T are orthonormal in the inner product of matrices, so the squared error is the sum of the dropped
// squares: at most min(n,m) of them, each at most lambda^2. No choice of triplets is better at the price lambda^2 each: by Eckart and
// Young, exactly this C(M) attains min over Y of |Y - M|_F^2 + lambda^2 rank(Y). Hence for a fixed sequence of matrices and a budget of
// triplets over all rounds, a single threshold minimises the total error, as for entries. The theory of absolute compressors applies
// (maths.md): with error feedback the memory stays below gamma kappa for all data.
// Not a contraction: if all s_i <= lambda, nothing is sent. `rule` is as for hard_threshold: "threshold" is in units of the input; the
// others are in units of the gradient and follow the step size.
// On the wire: a rank and factors U diag(s), V per matrix. Tensors without a matrix shape are sent uncompressed. Published bits: 32 per
// number.
// Group: low rank
#include <algorithm>
#include <cmath>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/support/low_rank.hpp"
#include "compressors/support/operator_cost.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct AbsoluteLowRankOptions {
  double threshold = 0.1;
  StepRule rule = StepRule::input;
};

inline void describe(Schema& s, AbsoluteLowRankOptions& o) {
  s.field("threshold", o.threshold, "singular values up to here are dropped").above(0).at_most(1e30);
  describe_step_rule(s, o.rule, "threshold");
}

namespace FL_DEVICE_NS {
namespace {

template <class T>
class AbsoluteLowRank final : public Compressor<T> {
 public:
  explicit AbsoluteLowRank(const AbsoluteLowRankOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    double values = 0;
    for (const Segment& m : scope.segments) values += static_cast<double>(std::min(m.rows, m.cols));
    Contract contract;
    contract.cost = costs::copy() + costs::singular_values(scope);
    contract.kappa = std::sqrt(values) * options_.threshold;
    contract.domain.up_to_rounding = true;
    follow(contract.domain, options_.rule);
    return contract;
  }
  [[nodiscard]] Scope adapt(Scope scope) const override { return matrices_of(std::move(scope)); }
  void check(const Scope& scope) const override { demand_matrices("absolute_low_rank", scope); }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const double threshold = options_.threshold * step_factor(options_.rule, context.steps);
    send_factors(exec, input, scope, state, messages, [&](std::uint32_t, const T* p, FactorMessage<T>& message) {
      for (const Segment& m : scope.segments) {
        Workspace::Frame frame(*exec.workspace);
        const SingularValues d = singular_values(exec, p + m.begin, m, frame);
        std::size_t rank = 0;
        while (rank < d.rank && d.S[rank] > threshold) ++rank;
        message.add_leading(d, rank);
      }
    });
  }

 private:
  AbsoluteLowRankOptions options_;
};

FL_REGISTER_PART(Compressor, AbsoluteLowRank, AbsoluteLowRankOptions,
                 (PartInfo{"compressor", "absolute_low_rank", "singular values above a threshold; an absolute compressor of matrices",
                           "after the outlook of Sahu et al., Rethinking gradient sparsification, NeurIPS 2021"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
