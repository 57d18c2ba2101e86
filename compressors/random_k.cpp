// Random-k: a uniformly random set of k entries of every segment, drawn anew for each client and round.
//
//   C(x)_j = a x_j if j is in the set, else 0
//   a = 1:    a contraction in expectation, E|C(x) - x|^2 = (1 - k/d) |x|^2 exactly
//   a = d/k:  unbiased with omega = d/k - 1, exactly (scaled = true); over several segments the largest d_l/k_l counts
// Positions are transmitted as for every sparsifier. The set depends only on seed, channel, client, round and segment.
// Stich, Cordonnier, Jaggi, "Sparsified SGD with memory", NeurIPS 2018; Wangni, Wang, Liu, Zhang, "Gradient sparsification for
// communication-efficient distributed optimization", NeurIPS 2018.
#include "compressors/compressor.hpp"
#include "compressors/sparsity.hpp"
#include "compressors/value_format.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

struct RandomKOptions {
  Sparsity kept;
  bool scaled = false;
  ValueFormat value_format = ValueFormat::native;
};

inline void describe(Schema& s, RandomKOptions& o) {
  describe_sparsity(s, o.kept);
  s.field("scaled", o.scaled, "multiply by d/k: unbiased, but not a contraction (error feedback needs false)");
  s.choice("value_format", o.value_format, value_format_names(), "number format of the values sent");
}

inline void validate(const RandomKOptions& o, Problems& problems) { validate_sparsity(o.kept, problems); }

namespace FL_DEVICE_NS {
namespace {

template <class T>
class RandomK final : public Compressor<T> {
 public:
  explicit RandomK(const RandomKOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    const double rounding = relative_rounding<T>(options_.value_format), fraction = kept_fraction(options_.kept, scope);
    Contract contract;
    contract.domain = rounding_domain<T>(options_.value_format, options_.scaled ? 1 / fraction : 1);
    if (!options_.scaled) {
      contract.delta = fraction * (1 - rounding * rounding);
      contract.delta_holds = Contract::Holds::in_expectation;
      return contract;
    }
    // Rounding moves the mean by up to u |x_j| and raises the second moment by up to (1+u)^2.
    contract.omega = (1 + rounding) * (1 + rounding) / fraction - 1 + 2 * rounding;
    if (rounding > 0) contract.domain.unbiased_up_to = "the rounding";
    return contract;
  }

  void check(const Scope& scope) const override { check_sparsity("random_k", options_.kept, scope); }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const PerSegment<std::uint32_t> kept = kept_per_segment(options_.kept, scope);
    const PerSegment<T> factor(scope, [this](std::size_t n) {
      return options_.scaled ? static_cast<T>(static_cast<double>(n) / kept_entries(options_.kept, n)) : T(1);
    });
    random_subset_rows(exec, scope, kept.span(), SubsetDraw{context.random_key, context.round, context.clients}, messages);
    gather_rows(exec, input, scope, factor.span(), wire_of<T>(options_.value_format), state, messages);
  }

 private:
  RandomKOptions options_;
};

FL_REGISTER_PART(Compressor, RandomK, RandomKOptions,
                 (PartInfo{"compressor", "random_k", "k random entries, scaled by d/k (unbiased) or not (a contraction)",
                           "Stich, Cordonnier, Jaggi, Sparsified SGD with memory, NeurIPS 2018"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
