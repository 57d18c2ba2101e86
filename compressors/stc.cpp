// Sparse ternary compression: the k largest entries of every segment, each replaced by its sign times their mean magnitude.
//
//   C(x)_j = mu sgn(x_j) for the k largest |x_j|, else 0;   mu = mean of their magnitudes;   |C(x) - x|^2 = |x|^2 - |Top_k(x)|_1^2 / k
//
// A contraction with delta(x) = |Top_k(x)|_1^2 / (k |x|_2^2) >= 1/d. STC uses it in both directions, with feedback ef14 on the uplink and
// the common reference on the downlink: the server's memory is the difference between its model and the reference.
// F. Sattler, S. Wiedemann, K.-R. Mueller, W. Samek, "Robust and communication-efficient federated learning from non-iid data", TNNLS 2020.
// Group: hybrid
#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/sparsity.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/ternary_top_k.hpp"

namespace fl {

struct StcOptions {
  Sparsity kept;
};
inline void describe(Schema& s, StcOptions& o) { describe_sparsity(s, o.kept); }
inline void validate(const StcOptions& o, Problems& problems) { validate_sparsity(o.kept, problems); }

namespace FL_DEVICE_NS {
namespace {

template <class T>
class Stc final : public Compressor<T> {
 public:
  explicit Stc(const StcOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    std::size_t largest = 1;
    for (const Segment& segment : scope.segments) largest = std::max(largest, segment.size());
    Contract contract;
    contract.cost = costs::selection(kept_fraction(options_.kept, scope)) +
                    EntryCost{2 * kept_fraction(options_.kept, scope), 2 * kept_fraction(options_.kept, scope)};
    contract.delta = 1 / static_cast<double>(largest);
    return contract;
  }
  void check(const Scope& scope) const override { check_sparsity("stc", options_.kept, scope); }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope&) const override { return all_known(sign_format()); }

  void compress(const Exec& exec, const CompressContext<T>&, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const PerSegment<std::uint32_t> kept = kept_per_segment(options_.kept, scope);
    ternary_top_k_rows(exec, input, scope, kept.span(), state, messages);
  }

  // Counts a sign per entry plus the Golomb cost of its position, as in the paper: b + 1/(1 - (1-p)^(2^b)) bits, and 32 for mu.
  [[nodiscard]] double published_bits(const Payload<T>& message, const Scope& scope) const override {
    if (message.silent) return 0;
    double bits = 32.0 * static_cast<double>(message.excluded.size());
    for (const Segment& segment : scope.segments) {
      const double k = kept_entries(options_.kept, segment.size()), p = k / static_cast<double>(segment.size());
      const double b = p < 1 ? std::max(0.0, 1 + std::floor(std::log2(std::log((std::sqrt(5.0) - 1) / 2) / std::log1p(-p)))) : 0;
      const double position = p < 1 ? b + 1 / (1 - std::pow(1 - p, std::exp2(b))) : 0;
      bits += k * (position + 1) + 32;
    }
    return bits;
  }

 private:
  StcOptions options_;
};

FL_REGISTER_PART(Compressor, Stc, StcOptions,
                 (PartInfo{"compressor", "stc", "sparse ternary: the k largest entries as signs times their mean magnitude",
                           "Sattler, Wiedemann, Mueller, Samek, TNNLS 2020"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
