#include "fl_core/ops/cpu/top_k.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "fl_core/ops/cpu/entries.hpp"
#include "fl_core/ops/cpu/lane_maxima.hpp"
#include "fl_core/ops/cpu/largest.hpp"
#include "fl_core/ops/cpu/radix_select.hpp"

namespace fl::cpu {
namespace {

constexpr std::size_t kSmallSegment = 32768;  // elements; smaller ones stay in L2 and are not sampled
constexpr std::size_t kMaxLaneRank = 32;      // k up to here is bounded by lane maxima
constexpr std::size_t kSampleCluster = 16;    // neighbours sampled together: one cache line of floats
constexpr std::size_t kMaxClusters = 4096;
constexpr double kMaxSampledRatio = 0.25;  // k/n; above it candidates are most of the vector

// The selection of the k largest elements in one segment of one client.
template <class T>
class SegmentTopK {
 public:
  SegmentTopK(const ClientPass<T>& pass, const Segment& segment, std::size_t k, TieRule ties, EntryWriter<T>& writer, Workspace* workspace)
      : pass_(pass), begin_(segment.begin), n_(segment.size()), k_(k), ties_(ties), writer_(writer), workspace_(workspace) {}

  void run() {
    if (k_ == 1 && ties_ == TieRule::lowest_index) return take_largest();
    if (k_ == 0) return emit(~Key<T>{0}, 0);
    if (k_ >= n_) return emit(0, n_);
    if (k_ <= kMaxLaneRank && k_ < n_ / 8 && n_ <= kSmallSegment) {
      collect(lane_bound(), n_);
      return finish();
    }
    if (n_ <= kTile) return emit_tile();
    const std::size_t limit = 3 * k_ + kTile;
    if (n_ > kSmallSegment && static_cast<double>(k_) <= kMaxSampledRatio * static_cast<double>(n_)) {
      if (collect(sampled_bound(), limit) && writer_.count() - first_ >= k_) return finish();
      writer_.restore(pass_, first_, writer_.count());
      writer_.truncate(first_);
    }
    const KeyRange<T> range = narrow(limit);
    if (range.bits == 0) return emit(range.low, range.rank);
    collect(range.low, limit);
    finish();
  }

 private:
  // f(p, begin, count) for each tile; after it the state row holds p.
  template <class F>
  void for_tiles(F f) {
    alignas(64) T buffer[kTile];
    for (std::size_t begin = begin_; begin < begin_ + n_; begin += kTile) {
      const std::size_t count = std::min(kTile, begin_ + n_ - begin);
      if (!f(pass_.tile(begin, count, buffer), begin, count)) return;
    }
    pass_.evaluated = true;
  }

  // A segment of one tile whose k is not small: its k-th key is found in L1, in a copy that nobody else changes.
  void emit_tile() {
    Key<T> key = 0;
    std::size_t above = 0;
    for_tiles([&](const T* p, std::size_t, std::size_t count) {
      alignas(64) T own[kTile];
      std::copy_n(p, count, own);
      key = kth_largest_key(own, count, k_, workspace_);
      for (std::size_t j = 0; j < count; ++j) above += magnitude_key(own[j]) > key;
      return true;
    });
    emit(key, k_ - above);
  }

  Key<T> lane_bound() {
    LaneMaxima<T> lanes;
    for_tiles([&](const T* p, std::size_t, std::size_t count) {
      lanes.add(p, count);
      return true;
    });
    return lanes.kth(k_);
  }

  void take_largest() {
    const Largest<T> largest = find_largest(pass_, begin_, n_);
    writer_.reserve(1);
    writer_.append(static_cast<std::uint32_t>(largest.position), largest.p);
    writer_.settle(pass_, first_, first_ + 1);
  }

  // Appends every entry whose key reaches the bound, as if all were sent. False when there are more than `limit`: then the rest of
  // the segment is only evaluated.
  bool collect(Key<T> bound, std::size_t limit) {
    std::uint64_t words[kMaskWords];
    for_tiles([&](const T* p, std::size_t begin, std::size_t count) {
      if (writer_.count() - first_ > limit) return true;
      for (std::size_t j = 0; j < count; j += 64) words[j / 64] = mask_key_at_least(p + j, count - j, bound);
      writer_.reserve(count);
      writer_.append_tile(pass_, words, begin, count, p);
      return true;
    });
    return writer_.count() - first_ <= limit;
  }

  // A key that the k-th largest most likely reaches. Clusters lie evenly over the segment; how much their counts differ (neighbours are
  // alike in a layer) says how far below the sample's order statistic to stay: four standard deviations.
  Key<T> sampled_bound() {
    const std::size_t clusters = std::min(kMaxClusters, n_ / (16 * kSampleCluster));
    const std::size_t sampled = clusters * kSampleCluster;
    Workspace::Frame frame(*workspace_);
    T* sample = frame.template take<T>(sampled);
    for (std::size_t c = 0; c < clusters; ++c) {
      const std::size_t at = begin_ + c * n_ / clusters;
      load_tile(*pass_.input, pass_.client, at, kSampleCluster, sample + c * kSampleCluster);
    }
    const double mean = static_cast<double>(sampled) * static_cast<double>(k_) / static_cast<double>(n_);
    const auto rank = std::max<std::size_t>(1, static_cast<std::size_t>(mean));
    const Key<T> middle = kth_largest_key(sample, sampled, rank, workspace_);
    double squares = 0;
    for (std::size_t c = 0; c < clusters; ++c) {
      int above = 0;
      for (std::size_t i = 0; i < kSampleCluster; ++i) above += magnitude_key(sample[c * kSampleCluster + i]) >= middle;
      squares += static_cast<double>(above) * above;
    }
    const double lower_rank = static_cast<double>(rank) + 4 * std::sqrt(squares) + 8;
    if (lower_rank >= static_cast<double>(sampled)) return 0;
    return kth_largest_key(sample, sampled, static_cast<std::size_t>(lower_rank), workspace_);
  }

  // The range of the k-th key: known exactly (bits = 0), or so narrow that at most `limit` entries reach its lower end.
  KeyRange<T> narrow(std::size_t limit) {
    KeyRange<T> range{.low = 0, .bits = kKeyBits<T>, .rank = k_, .inside = n_};
    while (range.bits > 0) {
      LargeHistogram histogram;
      for_tiles([&](const T* p, std::size_t, std::size_t count) {
        histogram.add(p, count, range);
        return true;
      });
      range = histogram.narrow(range);
      if (k_ - range.rank + range.inside <= limit) break;
    }
    return range;
  }

  // Appends every entry above the key and the first `quota` equal to it: all of them under all_ties.
  void emit(Key<T> key, std::size_t quota) {
    if (ties_ == TieRule::all_ties && quota > 0) quota = n_;
    std::uint64_t words[kMaskWords];
    for_tiles([&](const T* p, std::size_t begin, std::size_t count) {
      for (std::size_t j = 0; j < count; j += 64) {
        const std::uint64_t above = key == ~Key<T>{0} ? 0 : mask_key_at_least(p + j, count - j, key + 1);
        std::uint64_t equal = mask_key_at_least(p + j, count - j, key) & ~above;
        auto surplus = static_cast<std::size_t>(std::popcount(equal));
        for (; surplus > quota; --surplus) equal &= ~(std::uint64_t{1} << (63 - std::countl_zero(equal)));
        quota -= surplus;
        words[j / 64] = above | equal;
      }
      writer_.reserve(count);
      writer_.append_tile(pass_, words, begin, count, p);
      return true;
    });
  }

  // Keeps k of the candidates in place and restores the state of the others. There are fewer than k only if another thread has changed the
  // numbers since their bound was found.
  void finish() {
    const std::size_t candidates = writer_.count() - first_;
    if (candidates <= k_) return;
    std::uint32_t* index = writer_.index() + first_;
    T* value = writer_.value() + first_;
    const Key<T> key = kth_largest_key(value, candidates, k_, workspace_);
    std::size_t above = 0;
    for (std::size_t i = 0; i < candidates; ++i) above += magnitude_key(value[i]) > key;
    std::size_t quota = ties_ == TieRule::all_ties ? candidates : k_ - above;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < candidates; ++i) {
      const Key<T> mine = magnitude_key(value[i]);
      if (mine > key || (mine == key && quota > 0)) {
        quota -= mine == key;
        index[kept] = index[i];
        value[kept++] = value[i];
      } else if (pass_.state != nullptr) {
        pass_.state[index[i]] = value[i];
      }
    }
    writer_.truncate(first_ + kept);
  }

  ClientPass<T> pass_;
  const std::size_t begin_, n_, k_;
  const TieRule ties_;
  EntryWriter<T>& writer_;
  Workspace* workspace_;
  const std::size_t first_ = writer_.count();
};

// The order statistic at `rank` from the largest, by histograms alone.
template <class T>
T magnitude_at_rank(const Affine<T>& input, std::size_t k, const Segment& segment, std::size_t rank) {
  KeyRange<T> range{.low = 0, .bits = kKeyBits<T>, .rank = rank, .inside = segment.size()};
  alignas(64) T buffer[kTile];
  while (range.bits > 0) {
    LargeHistogram histogram;
    for (std::size_t begin = segment.begin; begin < segment.end; begin += kTile) {
      const std::size_t count = std::min(kTile, segment.end - begin);
      histogram.add(view_tile(input, k, begin, count, buffer), count, range);
    }
    range = histogram.narrow(range);
  }
  return std::bit_cast<T>(range.low);
}

}  // namespace

template <class T>
void top_k_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, std::span<const std::uint32_t> k, TieRule ties,
                WireValue wire, const StateWrite<T>& state, std::span<Payload<T>* const> out) {
  for (std::size_t client = 0; client < input.clients(); ++client) {
    const ClientPass<T> pass(input, state, client);
    EntryWriter<T> writer(*out[client], wire, scope.segments.size());
    for (std::size_t s = 0; s < scope.segments.size(); ++s) {
      const std::size_t first = writer.count();
      SegmentTopK<T>(pass, scope.segments[s], k[s], ties, writer, exec.workspace).run();
      writer.finish_segment(s, first);
    }
    writer.close();
  }
}

template <class T>
void quantile_rows(const Exec&, const Affine<T>& input, const Scope& scope, double q, T* out) {
  for (std::size_t k = 0; k < input.clients(); ++k)
    for (const Segment& segment : scope.segments) {
      const std::size_t n = segment.size();
      if (n == 0) {
        *out++ = T(0);
        continue;
      }
      const auto from_below = static_cast<std::size_t>(std::ceil(q * static_cast<double>(n)));
      *out++ = magnitude_at_rank(input, k, segment, n - std::clamp<std::size_t>(from_below, 1, n) + 1);
    }
}

template void top_k_rows<float>(const Exec&, const Affine<float>&, const Scope&, std::span<const std::uint32_t>, TieRule, WireValue,
                                const StateWrite<float>&, std::span<Payload<float>* const>);
template void top_k_rows<double>(const Exec&, const Affine<double>&, const Scope&, std::span<const std::uint32_t>, TieRule, WireValue,
                                 const StateWrite<double>&, std::span<Payload<double>* const>);
template void quantile_rows<float>(const Exec&, const Affine<float>&, const Scope&, double, float*);
template void quantile_rows<double>(const Exec&, const Affine<double>&, const Scope&, double, double*);

}  // namespace fl::cpu
