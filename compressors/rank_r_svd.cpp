// Truncated singular value decomposition: every matrix becomes its best approximation of rank r.
//
//   M = U diag(s) V^T,   C(M) = sum_{i <= r} s_i u_i v_i^T,   |C(M) - M|_F^2 = sum_{i > r} s_i^2 <= (1 - r / min(n,m)) |M|_F^2
//
// The bound holds because the kept singular values are the largest (Eckart, Young, "The approximation of one matrix by another of lower
// rank", Psychometrika 1936). delta = r / min(n,m), the least over matrices; it is tight if all singular values are equal.
// On the wire: factors U diag(s) and V, r (n + m) numbers per matrix, fewer if the rank is smaller. Tensors without a matrix shape are sent
// uncompressed. Published bits: 32 per number. It is the baseline of low-rank compression that PowerSGD and others approximate at lower
// cost: T. Vogels, S. P. Karimireddy, M. Jaggi, "PowerSGD", NeurIPS 2019.
// Group: low rank
#include <algorithm>

#include "compressors/compressor.hpp"
#include "compressors/support/low_rank.hpp"
#include "compressors/support/operator_cost.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct RankRSvdOptions {
  std::int64_t rank = 2;
};
inline void describe(Schema& s, RankRSvdOptions& o) {
  s.field("rank", o.rank, "singular triplets kept of each matrix").at_least(1).at_most(1024);
}

namespace FL_DEVICE_NS {
namespace {

template <class T>
class RankRSvd final : public Compressor<T> {
 public:
  explicit RankRSvd(const RankRSvdOptions& options) : rank_(static_cast<std::size_t>(options.rank)) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    double delta = 1;
    for (const Segment& m : scope.segments)
      delta = std::min(delta, static_cast<double>(rank_) / static_cast<double>(std::min(m.rows, m.cols)));
    Contract contract;
    contract.cost = costs::copy() + costs::singular_values(scope);
    contract.delta = delta;
    contract.domain = singular_value_domain<T>();
    return contract;
  }
  [[nodiscard]] Scope adapt(Scope scope) const override { return matrices_of(std::move(scope)); }
  void check(const Scope& scope) const override { demand_matrices("rank_r_svd", scope); }

  void compress(const Exec& exec, const CompressContext<T>&, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    send_factors(exec, input, scope, state, messages, [&](std::uint32_t, const T* p, FactorMessage<T>& message) {
      for (const Segment& m : scope.segments) {
        Workspace::Frame frame(*exec.workspace);
        const SingularValues d = singular_values(exec, p + m.begin, m, frame);
        message.add_leading(d, std::min(rank_, d.rank));
      }
    });
  }

 private:
  std::size_t rank_;
};

FL_REGISTER_PART(Compressor, RankRSvd, RankRSvdOptions,
                 (PartInfo{"compressor", "rank_r_svd", "the best approximation of rank r of every matrix",
                           "Eckart, Young, 1936; Vogels, Karimireddy, Jaggi, PowerSGD, NeurIPS 2019"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
