// Gradient dropping: keeps about a given fraction of each segment, the entries that reach a threshold estimated from a sample.
//
//   t = the floor(r s)-th largest of s magnitudes drawn at random,   C(x)_j = x_j if |x_j| >= t, else 0
//
// s = sample * d, r = k/d. exact = true takes all d magnitudes, so that t is the k-th largest and ties beyond k are sent too. Zeros are
// never sent. For every t the kept entries are the largest ones and include the largest of all: delta >= 1/d, and k/d if exact. Published
// bits: 32 per value. Intended for error feedback (ef14) with ratio 0.01 or 0.001 and scope "model" (one threshold for all layers) or
// "tensor". A. F. Aji, K. Heafield, "Sparse communication for distributed gradient descent", EMNLP 2017. The paper specifies only the
// sample size of 0.1% for the estimate; sampling with replacement is our choice.
// Group: sparsifier
#include <algorithm>
#include <cmath>
#include <limits>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "compressors/support/sparsity.hpp"
#include "compressors/support/thresholds.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

struct AjiDroppingOptions {
  Sparsity kept;
  double sample = 0.001;
  bool exact = false;
};

inline void describe(Schema& s, AjiDroppingOptions& o) {
  describe_sparsity(s, o.kept);
  s.field("sample", o.sample, "fraction of a segment's entries that the threshold is estimated from, at least one").above(0).at_most(1);
  s.field("exact", o.exact, "take the k-th largest magnitude of all entries as the threshold instead of a sample's");
}
inline void validate(const AjiDroppingOptions& o, Problems& problems) { validate_sparsity(o.kept, problems); }

namespace FL_DEVICE_NS {
namespace {

template <class T>
class AjiDropping final : public Compressor<T> {
 public:
  explicit AjiDropping(const AjiDroppingOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    Contract contract;
    contract.cost = sort_cost(scope);
    contract.delta = options_.exact ? kept_fraction(options_.kept, scope) : 1 / static_cast<double>(largest_segment(scope));
    return contract;
  }
  void check(const Scope& scope) const override { check_sparsity("aji_dropping", options_.kept, scope); }

  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    send_above_thresholds(exec, input, scope, state, messages, [&](std::uint32_t k, const T* p, T* threshold) {
      for (std::size_t s = 0; s < scope.segments.size(); ++s)
        estimate(exec, segment_stream(context, k, s), p + scope.segments[s].begin, scope.segments[s].size(), threshold + s);
    });
  }

 private:
  // All magnitudes or a sample of them are sorted.
  [[nodiscard]] EntryCost sort_cost(const Scope& scope) const {
    const double share = options_.exact ? 1 : options_.sample, n = static_cast<double>(largest_segment(scope));
    const double random = options_.exact ? 0 : kRandomOperations;
    return costs::copy() + share * (EntryCost{2, 1 + random} + costs::sorting(share * n)) + costs::reading(1) +
           costs::kept(kept_fraction(options_.kept, scope));
  }
  void estimate(const Exec& exec, const RandomStream& stream, const T* p, std::size_t n, T* threshold) const {
    Workspace::Frame frame(*exec.workspace);
    const std::size_t size =
        options_.exact ? n : std::max<std::size_t>(1, static_cast<std::size_t>(options_.sample * static_cast<double>(n)));
    T* sample = frame.take<T>(size);
    if (options_.exact)
      for_each(exec, n, CopyMagnitude<T>{p, sample});
    else
      for_each(exec, size, SampleMagnitude<T>{stream, p, n, sample});
    sort_rows(exec, sample, 1, size);
    const std::size_t k = kept_entries(options_.kept, n);
    const std::size_t rank = options_.exact ? k : std::max<std::size_t>(1, k * size / n);
    for_each(exec, 1, TakeRank<T>{sample, size, rank, std::numeric_limits<T>::denorm_min(), threshold});
  }

  AjiDroppingOptions options_;
};

FL_REGISTER_PART(Compressor, AjiDropping, AjiDroppingOptions,
                 (PartInfo{"compressor", "aji_dropping", "entries that reach a threshold, estimated from a random sample of the magnitudes",
                           "Aji, Heafield, Sparse communication for distributed gradient descent, EMNLP 2017"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
