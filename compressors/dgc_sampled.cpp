// Deep gradient compression's selection: a threshold from a sample, corrected by counting until about the wanted number is sent.
//
//   t = the floor(r s)-th largest of s magnitudes drawn with replacement,  s = sample * d
//   at most `rounds` times: n = #{|x_j| >= t};   n > (1 + tolerance) r d: t <- (1 + tolerance) t;   n < (1 - tolerance) r d:
//   t <- (1 - tolerance) t;   else stop.                         C(x)_j = x_j if |x_j| >= t, else 0
//
// Defaults are those of the survey's code: sample 1%, ten rounds, tolerance 0.3. Ours: t never exceeds the largest magnitude, so that at
// least one entry is sent and delta >= 1/d, and zeros are never sent. (Steps of 30% suit the tails of gradients; where magnitudes are
// bounded, as after rounding, t may swing about the wanted one and end far off: lower the tolerance.) Warm-up: the paper's densities
// 25%, 6.25%, 1.5625%, 0.4% before the final 0.1%, an epoch each, are `warmup = [0.25, 0.0625, 0.015625, 0.004]` with `warmup_rounds`
// rounds each. Published bits: 32 per value. The memory that belongs to it (momentum correction, factor masking) is feedback
// momentum_correction. Y. Lin, S. Han, H. Mao, Y. Wang, W. J. Dally, "Deep gradient compression", ICLR 2018; the correcting rounds: H. Xu
// et al., "GRACE: A compressed communication framework for distributed machine learning", ICDCS 2021, and its code, with which this was
// compared.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "compressors/compressor.hpp"
#include "compressors/quantizer.hpp"
#include "compressors/sparsity.hpp"
#include "compressors/thresholds.hpp"
#include "fl_core/registry.hpp"
#include "fl_core/verbs.hpp"

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
  s.field("rounds", o.rounds, "corrections of the threshold at most; 0 takes the estimate as it is").at_least(0).at_most(1000);
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

// The fraction of a segment of n elements that is wanted in a round (from 1).
[[nodiscard]] inline double density_of(const DgcSampledOptions& o, std::uint32_t round, std::size_t n) {
  if (o.warmup_rounds > 0) {
    const std::size_t stage = (round > 0 ? round - 1 : 0) / static_cast<std::size_t>(o.warmup_rounds);
    if (stage < o.warmup.size()) return o.warmup[stage];
  }
  return o.kept.k > 0 ? static_cast<double>(kept_entries(o.kept, n)) / static_cast<double>(n) : o.kept.ratio;
}

namespace FL_DEVICE_NS {
namespace {

// 1 where an entry reaches its segment's threshold.
template <class T>
struct IsSent {
  const T* threshold;  // [S]
  FL_HD double operator()(T p, std::size_t segment) const { return (p < T(0) ? -p : p) >= threshold[segment] ? 1 : 0; }
};

// A step of segment s towards the wanted number; moved[s] tells whether there was one. A segment that stays has come to its end.
template <class T>
struct CorrectThreshold {
  const double *sent, *wanted;  // [S]
  double tolerance;
  T* threshold;          // [S]
  std::uint32_t* moved;  // [S]

  FL_HD void operator()(std::size_t s) const {
    const bool is_above = sent[s] > (1 + tolerance) * wanted[s], is_below = sent[s] < (1 - tolerance) * wanted[s];
    if (is_above)
      threshold[s] = static_cast<T>(1 + tolerance) * threshold[s];
    else if (is_below)
      threshold[s] = static_cast<T>(1 - tolerance) * threshold[s];
    moved[s] = is_above || is_below ? 1 : 0;
  }
};

// No threshold is above the largest magnitude, nor lets zeros through.
template <class T>
struct LimitThreshold {
  const double* largest;  // [S], or null where none is
  T smallest;
  T* threshold;  // [S]
  FL_HD void operator()(std::size_t s) const {
    if (largest == nullptr) {
      threshold[s] = positive_threshold(threshold[s], smallest);
      return;
    }
    const T top = largest[s] > 0 ? static_cast<T>(largest[s]) : T(0);
    threshold[s] = positive_threshold(threshold[s] < top ? threshold[s] : top, smallest);
  }
};

template <class T>
class DgcSampled final : public Compressor<T> {
 public:
  explicit DgcSampled(const DgcSampledOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    Contract contract;
    contract.delta = 1 / static_cast<double>(largest_segment(scope));
    return contract;
  }
  void check(const Scope& scope) const override { check_sparsity("dgc_sampled", options_.kept, scope); }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    std::vector<double> wanted;
    for (const Segment& segment : scope.segments)
      wanted.push_back(density_of(options_, context.round, segment.size()) * static_cast<double>(segment.size()));
    send_above_thresholds(exec, input, scope, state, messages, [&](std::uint32_t k, const T* p, T* threshold) {
      for (std::size_t s = 0; s < scope.segments.size(); ++s)
        estimate(exec, segment_stream(context, k, s), p + scope.segments[s].begin, scope.segments[s].size(), wanted[s], threshold + s);
      correct(exec, vector_input(p, scope.P), scope, wanted, threshold);
    });
  }

 private:
  static constexpr T kSmallest = std::numeric_limits<T>::denorm_min();

  void estimate(const Exec& exec, const RandomStream& stream, const T* p, std::size_t n, double wanted, T* threshold) const {
    Workspace::Frame frame(*exec.workspace);
    const auto size = std::max<std::size_t>(1, static_cast<std::size_t>(options_.sample * static_cast<double>(n)));
    const auto rank = std::clamp<std::size_t>(static_cast<std::size_t>(options_.sample * wanted), 1, size);
    T* sample = frame.take<T>(size);
    for_each(exec, size, SampleMagnitude<T>{stream, p, n, sample});
    sort_rows(exec, sample, 1, size);
    for_each(exec, 1, TakeRank<T>{sample, size, rank, kSmallest, threshold});
  }

  // The segments' thresholds [S] together, until all of them have come to their end.
  void correct(const Exec& exec, const Affine<T>& p, const Scope& scope, const std::vector<double>& wanted, T* threshold) const {
    Workspace::Frame frame(*exec.workspace);
    const std::size_t S = wanted.size();
    auto *reduced = frame.take<double>(S), *placed = frame.take<double>(S);
    auto* moved = frame.take<std::uint32_t>(S);
    copy_bytes(placed, kThisDevice, wanted.data(), Device::cpu, S * sizeof(double), exec.stream);
    std::vector<std::uint32_t> any(S, 1);
    for (std::int64_t round = 0; round < options_.rounds && std::ranges::count(any, 1U) > 0; ++round) {
      reduce_rows(exec, p, scope, IsSent<T>{threshold}, Reduce::sum, reduced);
      for_each(exec, S, CorrectThreshold<T>{reduced, placed, options_.tolerance, threshold, moved});
      copy_bytes(any.data(), Device::cpu, moved, kThisDevice, S * sizeof(std::uint32_t), exec.stream);
    }
    // Where the last count left all thresholds as they were, something reaches each of them, so none is above the largest magnitude.
    const bool is_limited = options_.rounds > 0 && std::ranges::count(any, 1U) == 0;
    if (!is_limited) reduce_rows(exec, p, scope, MagnitudeOf{}, Reduce::max, reduced);
    for_each(exec, S, LimitThreshold<T>{is_limited ? nullptr : reduced, kSmallest, threshold});
  }

  DgcSampledOptions options_;
};

FL_REGISTER_PART(Compressor, DgcSampled, DgcSampledOptions,
                 (PartInfo{"compressor", "dgc_sampled",
                           "a sampled threshold, corrected until about the wanted number is sent; warm-up densities",
                           "Lin, Han, Mao, Wang, Dally, Deep gradient compression, ICLR 2018"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
