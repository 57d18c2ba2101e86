// Random-k: a uniformly random set of k entries of every segment, drawn anew for each client and round.
//
//   C(x)_j = a x_j if j is in the set, else 0
//   a = 1:    a contraction in expectation, E|C(x) - x|^2 = (1 - k/d) |x|^2 exactly
//   a = d/k:  unbiased with omega = d/k - 1, exactly (scaled = true); over several segments the largest d_l/k_l counts
// positions = "sent": positions are transmitted as for every sparsifier.
// positions = "seed": the receiver draws the same set from the common seed, and only the k values travel.
// positions = "common": all clients of a round have one set, drawn from the seed; only values travel, and the messages' errors are not
// independent: their mean has the omega of one message.
// The set depends only on seed, channel, round, segment and, unless it is common, client.
// Stich, Cordonnier, Jaggi, "Sparsified SGD with memory", NeurIPS 2018; Wangni, Wang, Liu, Zhang, "Gradient sparsification for
// communication-efficient distributed optimization", NeurIPS 2018.
// Group: sparsifier
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/support/known_sizes.hpp"
#include "compressors/support/sparsity.hpp"
#include "compressors/support/value_format.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

enum class KnownSets { sent, seed, common };

struct RandomKOptions {
  Sparsity kept;
  KnownSets positions = KnownSets::sent;
  bool scaled = false;
  ValueFormat value_format = ValueFormat::native;
};

inline void describe(Schema& s, RandomKOptions& o) {
  describe_sparsity(s, o.kept);
  s.field("scaled", o.scaled, "multiply by d/k: unbiased, but not a contraction (error feedback needs false)");
  s.choice("value_format", o.value_format, value_format_names(), "number format of the values sent");
  s.choice("positions", o.positions, {{KnownSets::sent, "sent"}, {KnownSets::seed, "seed"}, {KnownSets::common, "common"}},
           "whether positions travel, or both sides draw them from a common seed: for each client, or one set for all clients")
      .added_later(Value{std::string("sent")});
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
    contract.cost = draw_cost(kept_fraction(options_.kept, scope));
    contract.domain = rounding_domain<T>(options_.value_format, options_.scaled ? 1 / fraction : 1);
    contract.errors_are_shared = options_.positions == KnownSets::common;
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

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope& scope) const override {
    MessageLevels known;
    if (options_.positions != KnownSets::sent) known.positions = &sizes_.of(kept_per_segment(options_.kept, scope).span());
    return known;
  }
  void reconstruct(const Exec& exec, const CompressContext<T>& context, const Scope& scope,
                   std::span<Payload<T>* const> messages) const override {
    for (std::size_t k = 0; k < messages.size(); ++k) {
      if (!messages[k]->has_known_positions()) continue;
      CompressContext<T> of_one = context;
      of_one.clients = context.clients.subspan(k, 1);
      draw(exec, of_one, scope, messages.subspan(k, 1));
    }
  }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    const PerSegment<T> factor(scope, [this](std::size_t n) {
      return options_.scaled ? static_cast<T>(static_cast<double>(n) / kept_entries(options_.kept, n)) : T(1);
    });
    draw(exec, context, scope, messages);
    gather_rows(exec, input, scope, factor.span(), wire_of<T>(options_.value_format), state, messages);
    for (Payload<T>* message : messages) message->set_known_positions(options_.positions != KnownSets::sent);
  }

 private:
  // Each kept entry draws its place, which is sorted in.
  [[nodiscard]] static EntryCost draw_cost(double fraction) { return {6 * fraction, fraction * (2 * kRandomOperations + 2)}; }
  // The number in place of a client's for a set that all clients have.
  static constexpr std::uint32_t kEveryone = 0xFFFFFFFF;

  // Draws the sets of the context's clients into their messages.
  void draw(const Exec& exec, const CompressContext<T>& context, const Scope& scope, std::span<Payload<T>* const> messages) const {
    const PerSegment<std::uint32_t> kept = kept_per_segment(options_.kept, scope);
    const auto draw_for = [&](std::span<const std::uint32_t> clients) {
      random_subset_rows(exec, scope, kept.span(), SubsetDraw{context.random_key, context.round, clients}, messages);
    };
    if (options_.positions == KnownSets::common)
      draw_for(std::vector<std::uint32_t>(messages.size(), kEveryone));
    else
      draw_for(context.clients);
  }
  RandomKOptions options_;
  KnownSizes sizes_;
};

FL_REGISTER_PART(Compressor, RandomK, RandomKOptions,
                 (PartInfo{"compressor", "random_k", "k random entries, scaled by d/k (unbiased) or not (a contraction)",
                           "Stich, Cordonnier, Jaggi, Sparsified SGD with memory, NeurIPS 2018"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
