// Deep gradient compression's selection: a threshold from a sample is corrected by counting until about the wanted number of entries is
// sent.
//
//   t = the floor(r s)-th largest of s magnitudes drawn with replacement,  s = sample * d
//   at most `rounds` times: n = #{|x_j| >= t};   n > (1 + tolerance) r d: t <- (1 + tolerance) t;   n < (1 - tolerance) r d:
//   t <- (1 - tolerance) t;   else stop.                         C(x)_j = x_j if |x_j| >= t, else 0
//
// Defaults are those of the survey's code: sample 1%, ten rounds, tolerance 0.3. Our choice: t never exceeds the largest magnitude, so that
// at least one entry is sent and delta >= 1/d, and zeros are never sent. (Steps of 30% suit the tails of gradients. If magnitudes are
// bounded, as after rounding, t may oscillate around the wanted threshold and end far from it: lower the tolerance.) Warm-up: the paper's
// densities 25%, 6.25%, 1.5625%, 0.4% before the final 0.1%, one epoch each, are `warmup = [0.25, 0.0625, 0.015625, 0.004]` with
// `warmup_rounds` rounds each. Published bits: 32 per value. Feedback momentum_correction is the matching memory (momentum correction,
// factor masking). Y. Lin, S. Han, H. Mao, Y. Wang, W. J. Dally, "Deep gradient compression", ICLR 2018; the correcting rounds: H. Xu et
// al., "GRACE: A compressed communication framework for distributed machine learning", ICDCS 2021, and its code, with which this was
// compared.
// Group: sparsifier
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "compressors/support/sampled_search.hpp"
#include "compressors/support/sparsity.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct DgcSampledOptions {
  Sparsity kept{.k = 0, .ratio = 0.001};
  double sample = 0.01, tolerance = 0.3;
  std::int64_t rounds = 10, warmup_rounds = 0;
  std::vector<double> warmup;
};

inline void describe(Schema& s, DgcSampledOptions& o) {
  describe_sparsity(s, o.kept);
  s.field("sample", o.sample, "fraction of a segment's entries that the first threshold is estimated from, at least one")
      .above(0)
      .at_most(1);
  s.field("rounds", o.rounds, "largest number of corrections of the threshold; 0 uses the estimate unchanged").at_least(0).at_most(1000);
  s.field("tolerance", o.tolerance, "part of the wanted number by which the number sent may differ, and of a threshold's step")
      .above(0)
      .below(1);
  s.field("warmup", o.warmup, "densities of the first rounds, each for warmup_rounds; then ratio or k");
  s.field("warmup_rounds", o.warmup_rounds, "rounds that each density of the warm-up lasts").at_least(0).at_most(1000000000).unit("rounds");
}

inline void validate(const DgcSampledOptions& o, Problems& problems) {
  if (o.kept.k < 0) problems.push_back({"k", "must be at least 1, is " + std::to_string(o.kept.k)});
  for (const double density : o.warmup)
    if (!(density > 0 && density <= 1))
      problems.push_back({"warmup", "densities must be above 0 and at most 1, one is " + std::to_string(density)});
  if (o.warmup.empty() != (o.warmup_rounds == 0))
    problems.push_back({"warmup_rounds", "warmup and warmup_rounds go together: give both or none"});
}

// Returns the fraction of a segment of n elements that is wanted in a round (from 1).
[[nodiscard]] inline double density_of(const DgcSampledOptions& o, std::uint32_t round, std::size_t n) {
  if (o.warmup_rounds > 0) {
    const std::size_t stage = (round > 0 ? round - 1 : 0) / static_cast<std::size_t>(o.warmup_rounds);
    if (stage < o.warmup.size()) return o.warmup[stage];
  }
  return o.kept.k > 0 ? static_cast<double>(kept_entries(o.kept, n)) / static_cast<double>(n) : o.kept.ratio;
}

}  // namespace fl

// The header of the device defines send_by_samples.
#if defined(FL_DEVICE_IS_CUDA)
#include "compressors/support/sampled_search_on_gpu.cuh"
#else
#include "compressors/support/sampled_search_on_cpu.hpp"
#endif

namespace fl::FL_DEVICE_NS {
namespace {

template <class T>
class DgcSampled final : public Compressor<T> {
 public:
  explicit DgcSampled(const DgcSampledOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    Contract contract;
    contract.cost = stated_cost(scope);
    contract.delta = 1 / static_cast<double>(largest_segment(scope));
    return contract;
  }
  void check(const Scope& scope) const override { check_sparsity("dgc_sampled", options_.kept, scope); }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    std::vector<double> wanted;
    for (const Segment& segment : scope.segments)
      wanted.push_back(density_of(options_, context.round, segment.size()) * static_cast<double>(segment.size()));
    const SampledSearch search{wanted, options_.sample, options_.tolerance, options_.rounds};
    send_by_samples(exec, context, input, scope, search, state, messages);
  }

 private:
  // A sample is sorted; until the count is near enough, entries above the threshold are counted again, `rounds` times at most. One is
  // counted here, besides the one that selects.
  [[nodiscard]] EntryCost stated_cost(const Scope& scope) const {
    const double n = static_cast<double>(largest_segment(scope));
    return options_.sample * (EntryCost{2, 1 + kRandomOperations} + costs::sorting(options_.sample * n)) + costs::copy() +
           costs::reading(2) + costs::kept(kept_fraction(options_.kept, scope));
  }
  DgcSampledOptions options_;
};

FL_REGISTER_PART(Compressor, DgcSampled, DgcSampledOptions,
                 (PartInfo{"compressor", "dgc_sampled",
                           "a sampled threshold, corrected until about the wanted number is sent; warm-up densities",
                           "Lin, Han, Mao, Wang, Dally, Deep gradient compression, ICLR 2018"}));

}  // namespace
}  // namespace fl::FL_DEVICE_NS
