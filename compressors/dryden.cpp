// Dryden's adaptive threshold: keeps the same fraction of the positive and of the negative entries, each side as one number.
//
//   t+ = the max(1, floor(r n+))-th largest of the n+ positive entries, t- likewise for the magnitudes of the n- negative ones
//   C(x)_j = mu+ if x_j >= t+,  -mu- if x_j <= -t-,  else 0;     mu+ and mu-: the mean magnitudes of the kept entries of each side
//
// C projects on two indicator vectors: |C(x) - x|^2 = |x|^2 - k+ mu+^2 - k- mu-^2, a contraction with delta >= 1/d, d the largest segment
// (on each side k mu^2 >= |x|^2 / n, as for sparse ternary compression). All entries equal to the threshold are kept. Intended for error
// feedback. On the wire: positions, a bit for the side, two numbers per segment. Published bits: per segment 2 * 32, and ceil(log2 d) + 1
// per entry. N. Dryden, T. Moon, S. A. Jacobs, B. Van Essen, "Communication quantization for data-parallel training of deep neural
// networks", MLHPC 2016. The thresholds are exact here; the survey's code estimates them from a sample.
// Group: sparsifier
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "compressors/support/sparsity.hpp"
#include "compressors/support/thresholds.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl {

struct DrydenOptions {
  double ratio = 0.01;
};
inline void describe(Schema& s, DrydenOptions& o) {
  s.field("ratio", o.ratio, "part of the positive and of the negative entries that is kept, at least one of each").above(0).at_most(1);
}

namespace FL_DEVICE_NS {
namespace {

// Writes sign * p if it is positive, else 0.
template <class T>
struct OneSide {
  const T* p;
  T sign;
  T* side;
  FL_HD void operator()(std::size_t j) const { side[j] = sign * p[j] > T(0) ? sign * p[j] : T(0); }
};

// Sets the threshold of one side from its sorted entries, which begin with zeros. It is infinite if the side has no entries.
template <class T>
struct SideThreshold {
  const T* sorted;
  std::size_t n;
  double ratio;
  T infinity;
  T* threshold;
  FL_HD void operator()(std::size_t) const {
    std::size_t zeros = 0;
    for (std::size_t end = n; zeros < end;) {
      const std::size_t middle = zeros + (end - zeros) / 2;
      if (sorted[middle] > T(0))
        end = middle;
      else
        zeros = middle + 1;
    }
    const std::size_t count = n - zeros, wanted = static_cast<std::size_t>(ratio * static_cast<double>(count));
    const std::size_t rank = wanted > 1 ? wanted : 1;
    *threshold = count > 0 ? sorted[n - rank] : infinity;
  }
};

template <class T>
struct ReachesSide {
  const T* threshold;  // [S,2] positive, negative
  FL_HD bool operator()(T p, std::size_t segment) const {
    return p > T(0) ? p >= threshold[2 * segment] : p < T(0) && -p >= threshold[2 * segment + 1];
  }
};

// Maps for reduce_kept that return sums and counts of one side.
struct SideSum {
  double sign;
  template <class T>
  FL_HD double operator()(T p) const {
    return sign * static_cast<double>(p) > 0 ? static_cast<double>(p) : 0.0;
  }
};
struct SideCount {
  double sign;
  template <class T>
  FL_HD double operator()(T p) const {
    return sign * static_cast<double>(p) > 0 ? 1.0 : 0.0;
  }
};

// Computes scale [K,S,2]: the mean of the negative side, then of the positive one.
template <class T>
struct SideMeans {
  const double *sums, *counts;  // [2][K,S], negative side first
  std::size_t pieces;
  T* scale;
  FL_HD void operator()(std::size_t i) const {
    for (std::size_t side = 0; side < 2; ++side) {
      const double count = counts[side * pieces + i];
      scale[2 * i + side] = count > 0 ? static_cast<T>(sums[side * pieces + i] / count) : T(0);
    }
  }
};

struct SideLevel {
  using Map = std::integral_constant<LevelMap, LevelMap::two_values>;
  template <class T>
  FL_HD std::int32_t operator()(T p, const T*, std::uint32_t, std::size_t) const {
    return p > T(0) ? 1 : 0;
  }
};

template <class T>
class Dryden final : public Compressor<T> {
 public:
  explicit Dryden(const DrydenOptions& options) : ratio_(options.ratio) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    Contract contract;
    contract.cost = costs::copy() + 2 * (costs::copy() + costs::sorting(static_cast<double>(largest_segment(scope)))) +
                    costs::kept(ratio_) + EntryCost{4 * ratio_, 4 * ratio_};
    contract.delta = 1 / static_cast<double>(largest_segment(scope));
    return contract;
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope&) const override { return all_known(two_value_format()); }

  void compress(const Exec& exec, const CompressContext<T>&, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    select(exec, input, scope, state, messages);
    Workspace::Frame frame(*exec.workspace);
    const std::size_t pieces = messages.size() * scope.segments.size();
    auto *sums = frame.take<double>(2 * pieces), *counts = frame.take<double>(2 * pieces);
    T* scale = frame.take<T>(2 * pieces);
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const double sign = side == 0 ? -1 : 1;
      reduce_kept(exec, scope, messages, SideSum{sign}, Reduce::sum, sums + side * pieces);
      reduce_kept(exec, scope, messages, SideCount{sign}, Reduce::sum, counts + side * pieces);
    }
    for_each(exec, pieces, SideMeans<T>{sums, counts, pieces, scale});
    encode_kept(exec, scope, two_value_format(), LevelWidth::w8, static_cast<const T*>(scale), SideLevel{}, state, messages);
  }

  [[nodiscard]] double published_bits(const Payload<T>& message, const Scope& scope) const override {
    if (message.silent) return 0;
    return 64.0 * static_cast<double>(scope.segments.size()) +
           static_cast<double>(message.num_sent) * (published_index_bits(largest_segment(scope)) + 1) +
           32.0 * static_cast<double>(message.excluded.size());
  }

 private:
  // Selects positions and raw values of the entries that both sides keep.
  void select(const Exec& exec, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
              std::span<Payload<T>* const> messages) const {
    Workspace::Frame frame(*exec.workspace);
    T *p = frame.take<T>(scope.P), *side = frame.take<T>(largest_segment(scope));
    T* threshold = frame.take<T>(2 * scope.segments.size());
    for (std::uint32_t k = 0; k < messages.size(); ++k) {
      for_each(exec, scope.P, LoadInput<T>{input, k, p});
      for (std::size_t i = 0; i < 2 * scope.segments.size(); ++i) {
        const Segment& segment = scope.segments[i / 2];
        for_each(exec, segment.size(), OneSide<T>{p + segment.begin, i % 2 == 0 ? T(1) : T(-1), side});
        sort_rows(exec, side, 1, segment.size());
        for_each(exec, 1, SideThreshold<T>{side, segment.size(), ratio_, std::numeric_limits<T>::infinity(), threshold + i});
      }
      select_rows(exec, input.slice(k, 1), scope, ReachesSide<T>{threshold}, kNativeWire<T>, state.slice(k, 1), messages.subspan(k, 1));
    }
  }

  double ratio_;
};

FL_REGISTER_PART(Compressor, Dryden, DrydenOptions,
                 (PartInfo{"compressor", "dryden", "the largest positive and negative entries, each side as its mean",
                           "Dryden, Moon, Jacobs, Van Essen, Communication quantization, MLHPC 2016"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
