// The threshold search of dgc_sampled on the host, one client after another.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "compressors/support/sampled_search.hpp"
#include "compressors/support/thresholds.hpp"

namespace fl::cpu {

// Returns 1 for an entry that reaches its segment's threshold, else 0.
template <class T>
struct IsSent {
  const T* threshold;  // [S]
  double operator()(T p, std::size_t segment) const { return (p < T(0) ? -p : p) >= threshold[segment] ? 1 : 0; }
};

// Moves the threshold of segment s one step towards the wanted number of entries. moved[s] is 0 if the threshold did not move; the search
// of that segment is then finished.
template <class T>
struct CorrectThreshold {
  const double *sent, *wanted;  // [S]
  double tolerance;
  T* threshold;          // [S]
  std::uint32_t* moved;  // [S]

  void operator()(std::size_t s) const {
    const bool is_above = sent[s] > (1 + tolerance) * wanted[s], is_below = sent[s] < (1 - tolerance) * wanted[s];
    if (is_above)
      threshold[s] = static_cast<T>(1 + tolerance) * threshold[s];
    else if (is_below)
      threshold[s] = static_cast<T>(1 - tolerance) * threshold[s];
    moved[s] = is_above || is_below ? 1 : 0;
  }
};

// Limits each threshold to at most the largest magnitude and above zero.
template <class T>
struct LimitThreshold {
  const double* largest;  // [S], or null if no threshold can exceed it
  T smallest;
  T* threshold;  // [S]
  void operator()(std::size_t s) const {
    if (largest == nullptr) {
      threshold[s] = positive_threshold(threshold[s], smallest);
      return;
    }
    const T top = largest[s] > 0 ? static_cast<T>(largest[s]) : T(0);
    threshold[s] = positive_threshold(threshold[s] < top ? threshold[s] : top, smallest);
  }
};

template <class T>
void estimate_threshold(const Exec& exec, const RandomStream& stream, const T* p, std::size_t n, const SampledSearch& search, std::size_t s,
                        T* threshold) {
  Workspace::Frame frame(*exec.workspace);
  const std::size_t size = sample_size(search, n), rank = sample_rank(search, s, size);
  T* sample = frame.take<T>(size);
  for_each(exec, size, SampleMagnitude<T>{stream, p, n, sample});
  sort_rows(exec, sample, 1, size);
  for_each(exec, 1, TakeRank<T>{sample, size, rank, std::numeric_limits<T>::denorm_min(), threshold});
}

// Corrects the thresholds [S] of all segments together, until none of them moves or the rounds are used up.
template <class T>
void correct_thresholds(const Exec& exec, const Affine<T>& p, const Scope& scope, const SampledSearch& search, T* threshold) {
  Workspace::Frame frame(*exec.workspace);
  const std::size_t S = search.wanted.size();
  auto* reduced = frame.take<double>(S);
  std::vector<std::uint32_t> moved(S, 1);
  for (std::int64_t round = 0; round < search.rounds && std::ranges::count(moved, 1U) > 0; ++round) {
    reduce_rows(exec, p, scope, IsSent<T>{threshold}, Reduce::sum, reduced);
    for_each(exec, S, CorrectThreshold<T>{reduced, search.wanted.data(), search.tolerance, threshold, moved.data()});
  }
  // If the last count moved no threshold, every threshold is reached by some entry, so none is above the largest magnitude.
  const bool is_limited = search.rounds > 0 && std::ranges::count(moved, 1U) == 0;
  if (!is_limited) reduce_rows(exec, p, scope, MagnitudeOf{}, Reduce::max, reduced);
  for_each(exec, S, LimitThreshold<T>{is_limited ? nullptr : reduced, std::numeric_limits<T>::denorm_min(), threshold});
}

// Sends the entries that reach the thresholds.
template <class T>
void send_by_samples(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope,
                     const SampledSearch& search, const StateWrite<T>& state, std::span<Payload<T>* const> messages) {
  send_above_thresholds(exec, input, scope, state, messages, [&](std::uint32_t k, const T* p, T* threshold) {
    for (std::size_t s = 0; s < scope.segments.size(); ++s)
      estimate_threshold(exec, segment_stream(context, k, s), p + scope.segments[s].begin, scope.segments[s].size(), search, s,
                         threshold + s);
    correct_thresholds(exec, vector_input(p, scope.P), scope, search, threshold);
  });
}

}  // namespace fl::cpu
