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
#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>

#include "compressors/compressor.hpp"
#include "compressors/quantizer.hpp"
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

template <class T>
struct CopySegment {
  Affine<T> input;
  std::size_t k, begin;
  T* to;
  // Replaces NaN, whose sign depends on the processor and would decide its position. (fabs(NaN) is negative on some GPUs.)
  FL_HD void operator()(std::size_t j) const {
    const T p = input.at(k, begin + j);
    to[j] = p == p ? p : kNan<T>;
  }
};

// Computes bound [q-1] of a sorted segment.
template <class T>
struct QuantileBounds {
  const T* sorted;
  std::size_t n, q;
  T* bound;
  FL_HD void operator()(std::size_t i) const { bound[i] = sorted[(i + 1) * n / q]; }
};

// Computes mean [q] of the sorted entries between two bounds; 0 if there are none.
template <class T>
struct BucketMeans {
  const T* sorted;
  std::size_t n, q;
  const T* bound;
  T* mean;
  FL_HD void operator()(std::size_t b) const {
    const std::size_t first = b == 0 ? 0 : first_at_least(bound[b - 1]), last = b + 1 == q ? n : first_at_least(bound[b]);
    double sum = 0;
    for (std::size_t i = first; i < last; ++i) sum += static_cast<double>(sorted[i]);
    mean[b] = last > first ? static_cast<T>(sum / static_cast<double>(last - first)) : T(0);
  }
  [[nodiscard]] FL_HD std::size_t first_at_least(T value) const {
    std::size_t low = 0, high = n;
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

  [[nodiscard]] Contract contract(const Scope&) const override { return {}; }

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
    const std::size_t S = scope.segments.size(), q = buckets_in(scope);
    T *sorted = frame.take<T>(largest_segment(scope)), *bound = frame.take<T>(S * (q - 1)), *mean = frame.take<T>(S * q);
    for (std::uint32_t k = 0; k < messages.size(); ++k) {
      for (std::size_t s = 0; s < S; ++s) {
        const std::size_t n = scope.segments[s].size();
        for_each(exec, n, CopySegment<T>{input, k, scope.segments[s].begin, sorted});
        sort_rows(exec, sorted, 1, n);
        for_each(exec, q - 1, QuantileBounds<T>{sorted, n, q, bound + s * (q - 1)});
        for_each(exec, q, BucketMeans<T>{sorted, n, q, bound + s * (q - 1), mean + s * q});
      }
      encode_levels_rows(exec, input.slice(k, 1), scope, table_format(static_cast<std::uint32_t>(q)),
                         width_of(static_cast<std::int64_t>(q) - 1), mean, bound, q - 1, BucketLevel<T>{q}, std::span<const RandomStream>{},
                         state.slice(k, 1), messages.subspan(k, 1));
    }
  }

 private:
  // Returns the number of buckets, at most the number of entries.
  [[nodiscard]] std::size_t buckets_in(const Scope& scope) const {
    return std::min(static_cast<std::size_t>(options_.buckets), std::max<std::size_t>(2, largest_segment(scope)));
  }
  SketchMlOptions options_;
};

FL_REGISTER_PART(Compressor, SketchMl, SketchMlOptions,
                 (PartInfo{"compressor", "sketchml", "the mean of the quantile bucket that an entry falls into",
                           "Jiang, Fu, Yang, Cui, SketchML, SIGMOD 2018"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
