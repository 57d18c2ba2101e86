// SketchML's quantile buckets: entries that lie between the same two quantiles of the segment are replaced by their mean.
//
//   b_1 <= .. <= b_(q-1),   b_i = the entry of rank floor(i n / q) of the segment's n sorted ones
//   bucket(x_j) = number of b_i <= x_j,   C(x)_j = mean of the entries of its bucket
//
// C is the orthogonal projection on the buckets' indicator vectors: |C(x) - x| <= |x|, and q >= n distinct entries are sent exactly. No
// uniform delta: if one bucket holds all entries and its mean is 0 (few values, many ties), C(x) = 0.
// Encoding: ceil(log2 q) bits for a bucket, and the q means of each segment as a table; if all segments have fewer than q entries, the
// number of buckets is the size of the largest segment. Published bits: the same, 32 per mean. The source codes buckets further, with a
// MinMax sketch and keys as differences; quantiles are exact here, whereas the source estimates them with a sketch. Checked against a plain
// sort in tests/compressors.
//
// Jiang, Fu, Yang, Cui, "SketchML: Accelerating distributed machine learning with data sketches", SIGMOD 2018.
// Group: quantiser
#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>

#include "compressors/compressor.hpp"
#include "compressors/support/operator_cost.hpp"
#include "compressors/support/quantizer.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct SketchMlOptions {
  std::int64_t buckets = 256;
};

inline void describe(Schema& s, SketchMlOptions& o) {
  s.field("buckets", o.buckets, "q, the quantile buckets of each segment").at_least(2).at_most(65536);
}

namespace FL_DEVICE_NS {
namespace {

template <class T>
constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

// One segment of some clients, with n entries, in q buckets.
template <class T>
struct SortedSegment {
  T* sorted;  // [clients,n]
  std::size_t n, q;
};

template <class T>
struct CopySegment {
  Affine<T> input;
  std::size_t first, begin;  // client and entry
  SortedSegment<T> segment;
  // Replaces NaN, whose sign depends on the processor and would decide its position. (fabs(NaN) is negative on some GPUs.)
  FL_HD void operator()(std::size_t index) const {
    const std::size_t k = index / segment.n;
    const T p = input.at(first + k, begin + (index - k * segment.n));
    segment.sorted[index] = p == p ? p : kNan<T>;
  }
};

// Computes bound [q-1] of each client; clients are `stride` apart.
template <class T>
struct QuantileBounds {
  SortedSegment<T> segment;
  std::size_t stride;
  T* bound;
  FL_HD void operator()(std::size_t index) const {
    const std::size_t k = index / (segment.q - 1), i = index - k * (segment.q - 1);
    bound[k * stride + i] = segment.sorted[k * segment.n + (i + 1) * segment.n / segment.q];
  }
};

// Computes mean [q] of each client's sorted entries between two bounds; 0 if there are none.
template <class T>
struct BucketMeans {
  SortedSegment<T> segment;
  std::size_t bound_stride, mean_stride;
  const T* bound;
  T* mean;
  FL_HD void operator()(std::size_t index) const {
    const std::size_t k = index / segment.q, b = index - k * segment.q, n = segment.n;
    const T *sorted = segment.sorted + k * n, *own = bound + k * bound_stride;
    const std::size_t first = b == 0 ? 0 : first_at_least(sorted, own[b - 1]),
                      last = b + 1 == segment.q ? n : first_at_least(sorted, own[b]);
    double sum = 0;
    for (std::size_t i = first; i < last; ++i) sum += static_cast<double>(sorted[i]);
    mean[k * mean_stride + b] = last > first ? static_cast<T>(sum / static_cast<double>(last - first)) : T(0);
  }
  [[nodiscard]] FL_HD std::size_t first_at_least(const T* sorted, T value) const {
    std::size_t low = 0, high = segment.n;
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (sorted[middle] < value)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
};

template <class T>
struct BucketLevel {
  using Map = std::integral_constant<LevelMap, LevelMap::table>;
  std::size_t q;
  static constexpr bool kHasChance = false;
  FL_HD std::int32_t operator()(T p, const T* bound, std::uint32_t, std::size_t) const {
    std::size_t low = 0, high = q - 1;  // number of bounds that are at most p
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (bound[middle] <= p)
        low = middle + 1;
      else
        high = middle;
    }
    return static_cast<std::int32_t>(low);
  }
};

template <class T>
class SketchMl final : public Compressor<T> {
 public:
  explicit SketchMl(const SketchMlOptions& options) : options_(options) {}

  [[nodiscard]] Contract contract(const Scope& scope) const override {
    Contract contract;
    contract.cost = costs::copy() + costs::sorting(static_cast<double>(largest_segment(scope))) +
                    costs::levels(16, costs::Rounding::nearest, std::ceil(std::log2(static_cast<double>(options_.buckets))));
    return contract;
  }

  void check(const Scope& scope) const override {
    const std::size_t numbers = scope.segments.size() * buckets_in(scope);
    if (numbers > 4 * scope.P + 1024)
      throw ConfigError("sketchml: " + std::to_string(buckets_in(scope)) + " means for each of " + std::to_string(scope.segments.size()) +
                        " segments are more than the " + std::to_string(scope.P) +
                        " parameters; use scope = \"model\", larger buckets of parameters, or fewer quantile buckets");
  }

  [[nodiscard]] MessageLevels known_levels(const CompressContext<T>&, const Scope& scope) const override {
    return all_known(table_format(static_cast<std::uint32_t>(buckets_in(scope))));
  }

  void compress(const Exec& exec, const CompressContext<T>&, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    Workspace::Frame frame(*exec.workspace);
    const std::size_t K = messages.size(), S = scope.segments.size(), q = buckets_in(scope), some = sorted_at_once(scope, K);
    T *sorted = frame.take<T>(some * largest_segment(scope)), *bound = frame.take<T>(K * S * (q - 1)), *mean = frame.take<T>(K * S * q);
    for (std::size_t s = 0; s < S; ++s) {
      const SortedSegment<T> segment{sorted, scope.segments[s].size(), q};
      for (std::size_t first = 0; first < K; first += some) {
        const std::size_t here = std::min(some, K - first), piece = first * S + s;
        for_each(exec, here * segment.n, CopySegment<T>{input, first, scope.segments[s].begin, segment});
        sort_rows(exec, sorted, here, segment.n);
        for_each(exec, here * (q - 1), QuantileBounds<T>{segment, S * (q - 1), bound + piece * (q - 1)});
        for_each(exec, here * q, BucketMeans<T>{segment, S * (q - 1), S * q, bound + piece * (q - 1), mean + piece * q});
      }
    }
    encode_levels_rows(exec, input, scope, table_format(static_cast<std::uint32_t>(q)), width_of(static_cast<std::int64_t>(q) - 1), mean,
                       bound, q - 1, BucketLevel<T>{q}, std::span<const RandomStream>{}, state, messages);
  }

 private:
  // Returns the number of buckets, at most the number of entries.
  [[nodiscard]] std::size_t buckets_in(const Scope& scope) const {
    return std::min(static_cast<std::size_t>(options_.buckets), std::max<std::size_t>(2, largest_segment(scope)));
  }
  // Returns the number of clients whose entries are sorted together: all of K, or as many as have 64 MiB.
  [[nodiscard]] static std::size_t sorted_at_once(const Scope& scope, std::size_t K) {
    constexpr std::size_t kMostBytes = std::size_t{64} << 20;
    return std::clamp<std::size_t>(kMostBytes / (sizeof(T) * std::max<std::size_t>(largest_segment(scope), 1)), 1,
                                   std::max<std::size_t>(K, 1));
  }
  SketchMlOptions options_;
};

FL_REGISTER_PART(Compressor, SketchMl, SketchMlOptions,
                 (PartInfo{"compressor", "sketchml", "the mean of the quantile bucket that an entry falls into",
                           "Jiang, Fu, Yang, Cui, SketchML, SIGMOD 2018"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
