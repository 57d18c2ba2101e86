// The threshold search of dgc_sampled on a GPU, for all clients at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "compressors/support/sampled_search.hpp"
#include "compressors/support/thresholds.hpp"
#include "fl_core/ops/cuda/radix_select.cuh"
#include "fl_core/ops/cuda/threshold_search.cuh"

namespace fl::cuda {

// Samples magnitudes at random positions of one segment, `size` for each client, equal to those of SampleMagnitude.
template <class T>
struct SampleSegment {
  Affine<T> input;
  const RandomStream* stream;  // of the segment, with stride S
  std::size_t S, begin, n, size;
  T* sample;  // [K,size]
  FL_HD void operator()(std::size_t index) const {
    const std::size_t k = index / size;
    sample[index] = fabs(drawn(k, index - k * size));
  }
  [[nodiscard]] FL_HD T drawn(std::size_t k, std::size_t i) const {
    const auto place = static_cast<std::size_t>(stream[k * S].bits(i) * static_cast<std::uint64_t>(n) >> 32);
    return input.at(k, begin + place);
  }
};

// Takes the same magnitudes into shared memory, one block per client, and sets the segment's threshold to the rank-th largest of them.
constexpr int kSampleThreads = 1024;
constexpr std::size_t kMostSampleBytes = 64 * 1024;
template <class T>
__global__ void __launch_bounds__(kSampleThreads) sample_thresholds(SampleSegment<T> segment, unsigned rank, T smallest, T* threshold) {
  FL_SHARED_MEMORY(Key<T>, key);
  __shared__ RadixRoom room;
  constexpr unsigned kAtOnce = 4;  // numbers that a thread loads before it waits for the first
  const auto key_at = [key](std::size_t i, bool) { return key[i]; };
  for (std::size_t k = blockIdx.x; k < segment.input.clients(); k += gridDim.x) {
    for (std::size_t base = threadIdx.x; base < segment.size; base += kAtOnce * blockDim.x) {
      T p[kAtOnce];
      FL_UNROLL
      for (unsigned u = 0; u < kAtOnce; ++u) p[u] = base + u * blockDim.x < segment.size ? segment.drawn(k, base + u * blockDim.x) : T(0);
      FL_UNROLL
      for (unsigned u = 0; u < kAtOnce; ++u)
        if (base + u * blockDim.x < segment.size) key[base + u * blockDim.x] = magnitude_key(p[u]);
    }
    __syncthreads();
    const Key<T> found = select_key<Key<T>, kAtOnce>(segment.size, rank, leading_digits<Key<T>>(), room, key_at).key;
    if (threadIdx.x == 0) threshold[k * segment.S] = positive_threshold(magnitude_of(found), smallest);
    __syncthreads();  // before the next client's keys overwrite the memory
  }
}

template <class T>
struct PlaceThreshold {
  const T* from;  // [K]
  std::size_t S;
  T smallest;
  T* threshold;  // of the segment, with stride S
  FL_HD void operator()(std::size_t k) const { threshold[k * S] = positive_threshold(from[k], smallest); }
};

// Sends the entries that reach the thresholds.
template <class T>
void send_by_samples(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope,
                     const SampledSearch& search, const StateWrite<T>& state, std::span<Payload<T>* const> messages) {
  Workspace::Frame frame(*exec.workspace);
  const auto K = static_cast<std::uint32_t>(messages.size());
  const std::size_t S = scope.segments.size();
  std::vector<RandomStream> streams;
  for (std::uint32_t k = 0; k < K; ++k)
    for (std::size_t s = 0; s < S; ++s) streams.push_back(segment_stream(context, k, s));
  const RandomStream* stream = upload(exec, std::span<const RandomStream>(streams), frame);
  T* threshold = frame.take<T>(K * S);
  for (std::size_t s = 0; s < S; ++s) {
    Workspace::Frame of_segment(*exec.workspace);
    const Segment& segment = scope.segments[s];
    const std::size_t size = sample_size(search, segment.size()), rank = sample_rank(search, s, size);
    const SampleSegment<T> in_block{input, stream + s, S, segment.begin, segment.size(), size, nullptr};
    constexpr T kSmallest = std::numeric_limits<T>::denorm_min();
    if (size * sizeof(Key<T>) <= kMostSampleBytes) {
      Launch(exec, "sample_thresholds", K, kSampleThreads)
          .with_shared(size * sizeof(Key<T>))(sample_thresholds<T>, in_block, static_cast<unsigned>(rank), kSmallest, threshold + s);
      continue;
    }
    T *sample = of_segment.take<T>(K * size), *found = of_segment.take<T>(K);
    for_each(exec, K * size, SampleSegment<T>{input, stream + s, S, segment.begin, segment.size(), size, sample});
    Scope whole;
    whole.P = size;
    whole.segments.push_back({.begin = 0, .end = size, .rows = size, .cols = 1});
    Affine<T> rows;
    rows.add(T(1), BatchView<const T>{sample, nullptr, K, size, size});
    const double q = (static_cast<double>(size - rank) + 0.5) / static_cast<double>(size);  // the rank-th from above
    quantile_rows(exec, rows, whole, q, found);
    for_each(exec, K, PlaceThreshold<T>{found, S, kSmallest, threshold + s});
  }
  send_reaching(exec, input, scope, {search.wanted, search.tolerance, search.rounds}, threshold, state, messages);
}

}  // namespace fl::cuda
