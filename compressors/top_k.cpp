// Top-k: the k entries of largest magnitude of every segment, exactly.
//
//   C(x)_j = x_j if |x_j| is among the k largest, else 0,      |C(x) - x|^2 <= (1 - k/d) |x|^2, tight when all |x_j| are equal
//
// Over several segments delta is the smallest k_l / d_l. If values are rounded on the wire, delta becomes delta (1 - u^2), u the relative
// rounding. Order: |x_j|, ties to the lowest index. "all" keeps every entry as large as the k-th (and every entry if the k-th is 0), as the
// published logistic-regression code does, and still counts k of them.
// Aji, Heafield, "Sparse communication for distributed gradient descent", EMNLP 2017; Stich, Cordonnier, Jaggi, "Sparsified SGD with
// memory", NeurIPS 2018; Alistarh et al., "The convergence of sparsified gradient methods", NeurIPS 2018.
// Group: sparsifier
#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/sparsity.hpp"
#include "compressors/support/value_format.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/message/payload_segments.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

struct TopKOptions {
  Sparsity kept;
  TieRule ties = TieRule::lowest_index;
  ValueFormat value_format = ValueFormat::native;
  std::int64_t published_bits_per_value = 32;
  bool count_index_bits = false;
};

inline void describe(Schema& s, TopKOptions& o) {
  describe_sparsity(s, o.kept);
  s.choice("ties", o.ties, {{TieRule::lowest_index, "lowest_index"}, {TieRule::all_ties, "all"}},
           "lowest_index keeps exactly k entries, all keeps every entry as large as the k-th");
  s.choice("value_format", o.value_format, value_format_names(), "number format of the values sent");
  s.field("published_bits_per_value", o.published_bits_per_value,
          "what the published count charges for a value: 32, or 64 with an int32 index")
      .at_least(1)
      .at_most(128)
      .unit("bits");
  s.field("count_index_bits", o.count_index_bits, "add ceil(log2 P) bits for each index to the published count");
}

inline void validate(const TopKOptions& o, Problems& problems) { validate_sparsity(o.kept, problems); }

namespace FL_DEVICE_NS {
namespace {

template <class T>
class TopK final : public Compressor<T> {
 public:
  explicit TopK(const TopKOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    const double rounding = relative_rounding<T>(options_.value_format);
    Contract contract;
    contract.cost = costs::selection(kept_fraction(options_.kept, scope));
    contract.delta = kept_fraction(options_.kept, scope) * (1 - rounding * rounding);
    contract.domain = rounding_domain<T>(options_.value_format);
    return contract;
  }

  void check(const Scope& scope) const override { check_sparsity("top_k", options_.kept, scope); }

  void compress(const Exec& exec, const CompressContext<T>&, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const PerSegment<std::uint32_t> kept = kept_per_segment(options_.kept, scope);
    top_k_rows(exec, input, scope, kept.span(), options_.ties, wire_of<T>(options_.value_format), state, messages);
  }

  // Counts k per segment, also if the tie rule sent more; excluded tensors count as raw values.
  [[nodiscard]] double published_bits(const Payload<T>& message, const Scope& scope) const override {
    if (message.silent) return 0;
    double k = 0;
    for (const Segment& segment : scope.segments) k += kept_entries(options_.kept, segment.size());
    const auto per_entry = options_.published_bits_per_value + (options_.count_index_bits ? published_index_bits(num_shared(scope)) : 0);
    return k * static_cast<double>(per_entry) + 32.0 * static_cast<double>(message.excluded.size());
  }

 private:
  TopKOptions options_;
};

FL_REGISTER_PART(Compressor, TopK, TopKOptions,
                 (PartInfo{"compressor", "top_k", "the k entries of largest magnitude, exactly",
                           "Aji, Heafield, Sparse communication for distributed gradient descent, EMNLP 2017"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
