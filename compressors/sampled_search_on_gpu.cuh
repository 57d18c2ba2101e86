// The search of dgc_sampled on a GPU, of all clients at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "compressors/sampled_search.hpp"
#include "compressors/thresholds.hpp"
#include "fl_core/ops/cuda/threshold_search.cuh"

namespace fl::cuda {

// Magnitudes at random positions of one segment, `size` of each client: those of SampleMagnitude.
template <class T>
struct SampleSegment {
  Affine<T> input;
  const RandomStream* stream;  // of the segment, S apart
  std::size_t S, begin, n, size;
  T* sample;  // [K,size]
  FL_HD void operator()(std::size_t index) const {
    const std::size_t k = index / size, i = index - k * size;
    const auto drawn = static_cast<std::size_t>(stream[k * S].bits(i) * static_cast<std::uint64_t>(n) >> 32);
    sample[index] = fabs(input.at(k, begin + drawn));
  }
};
template <class T>
struct PlaceThreshold {
  const T* from;  // [K]
  std::size_t S;
  T smallest;
  T* threshold;  // of the segment, S apart
  FL_HD void operator()(std::size_t k) const { threshold[k * S] = positive_threshold(from[k], smallest); }
};

// Sends what reaches the thresholds.
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
    T *sample = of_segment.take<T>(K * size), *found = of_segment.take<T>(K);
    for_each(exec, K * size, SampleSegment<T>{input, stream + s, S, segment.begin, segment.size(), size, sample});
    Scope whole;
    whole.P = size;
    whole.segments.push_back({.begin = 0, .end = size, .rows = size, .cols = 1});
    Affine<T> rows;
    rows.add(T(1), BatchView<const T>{sample, nullptr, K, size, size});
    const double q = (static_cast<double>(size - rank) + 0.5) / static_cast<double>(size);  // the rank-th from above
    quantile_rows(exec, rows, whole, q, found);
    for_each(exec, K, PlaceThreshold<T>{found, S, std::numeric_limits<T>::denorm_min(), threshold + s});
  }
  send_reaching(exec, input, scope, {search.wanted, search.tolerance, search.rounds}, threshold, state, messages);
}

}  // namespace fl::cuda
