// Common parts of the sparsifiers that estimate a separate threshold for every client and segment: the evaluated input, samples of its
// magnitudes, and one pass that sends the entries that reach the thresholds.
#pragma once

#include <math.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "compressors/compressor.hpp"
#include "fl_core/message/payload.hpp"
#include "fl_core/ops/ops.hpp"
#include "fl_core/random/random.hpp"

namespace fl::FL_DEVICE_NS {

// Evaluates p_j of client k from the affine form.
template <class T>
struct LoadInput {
  Affine<T> input;
  std::size_t k;
  T* p;
  FL_HD void operator()(std::size_t j) const { p[j] = input.at(k, j); }
};

// Samples the magnitude at a random position of n, drawn with replacement: floor(word_i * n / 2^32).
template <class T>
struct SampleMagnitude {
  RandomStream stream;
  const T* p;
  std::size_t n;
  T* sample;
  FL_HD void operator()(std::size_t i) const {
    const T drawn = p[static_cast<std::size_t>(stream.bits(i) * static_cast<std::uint64_t>(n) >> 32)];
    sample[i] = fabs(drawn);
  }
};

// Copies all magnitudes instead of a sample.
template <class T>
struct CopyMagnitude {
  const T* p;
  T* magnitude;
  FL_HD void operator()(std::size_t i) const { magnitude[i] = fabs(p[i]); }
};

// Returns the threshold, raised to `smallest` so that zeros never reach it.
template <class T>
[[nodiscard]] FL_HD inline T positive_threshold(T threshold, T smallest) {
  return threshold > smallest ? threshold : smallest;
}

// Sets the threshold to the rank-th largest of n sorted magnitudes.
template <class T>
struct TakeRank {
  const T* sorted;
  std::size_t n, rank;
  T smallest;
  T* threshold;
  FL_HD void operator()(std::size_t) const { *threshold = positive_threshold(sorted[n - rank], smallest); }
};

// A keep rule for select_rows: |p| reaches the threshold of its segment.
template <class T>
struct ReachesThreshold {
  const T* threshold;  // [S]
  [[nodiscard]] FL_HD T bound(std::size_t segment) const { return threshold[segment]; }
  [[nodiscard]] FL_HD bool operator()(T p, std::size_t segment) const { return (p < T(0) ? -p : p) >= threshold[segment]; }
};

// Returns the random stream of client k for segment s, with one draw per index.
template <class T>
[[nodiscard]] RandomStream segment_stream(const CompressContext<T>& context, std::size_t k, std::size_t s) {
  const auto layer = static_cast<std::uint32_t>(s);
  return {context.random_key, context.clients[k], context.round, layer >> 16, layer & 0xFFFF};
}

// Calls find(k, p, threshold) for every client, which fills threshold [S] from p [P]; both lie in the device's memory. Then sends all
// entries that reach their threshold.
template <class T, class Find>
void send_above_thresholds(const Exec& exec, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                           std::span<Payload<T>* const> messages, Find find) {
  Workspace::Frame frame(*exec.workspace);
  T* p = frame.take<T>(scope.P);
  T* threshold = frame.take<T>(scope.segments.size());
  for (std::uint32_t k = 0; k < messages.size(); ++k) {
    for_each(exec, scope.P, LoadInput<T>{input, k, p});
    find(k, p, threshold);
    // Reads p, which is one vector, instead of the several terms of the input.
    select_rows(exec, vector_input(static_cast<const T*>(p), scope.P), scope, ReachesThreshold<T>{threshold}, kNativeWire<T>,
                state.slice(k, 1), messages.subspan(k, 1));
  }
}

}  // namespace fl::FL_DEVICE_NS
