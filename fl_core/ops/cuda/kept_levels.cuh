// Levels for the entries that a sparse message has kept; what the operations do is said in fl_core/ops/cpu/kept_levels.hpp.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/plan.cuh"
#include "fl_core/ops/cuda/quantize.cuh"

namespace fl::cuda {
namespace detail {

// One warp per client and segment. Entries are joined in ascending order, as on the CPU: lanes fetch 32 and every lane joins them all.
template <class T, class Map>
__global__ void reduce_entries(ScopePlan plan, std::size_t num_clients, const std::size_t* num_sent, const PayloadRow<T>* rows, Map map,
                               Reduce reduce, double* out) {
  const std::size_t pieces = num_clients * plan.num_segments;
  const unsigned lane = threadIdx.x % kWarp;
  for (std::size_t piece = thread_index() / kWarp; piece < pieces; piece += num_threads() / kWarp) {
    const std::size_t k = piece / plan.num_segments, s = piece % plan.num_segments;
    const PayloadRow<T>& row = rows[k];
    const std::size_t first = first_from(row.index, num_sent[k], plan.segment[s].begin), count = row.counts[s];
    double result = reduce == Reduce::sum || count == 0 ? 0.0 : -HUGE_VAL;
    for (std::size_t base = 0; base < count; base += kWarp) {
      const double mine = base + lane < count ? map(row.value[first + base + lane]) : 0.0;
      const int here = static_cast<int>(count - base < kWarp ? count - base : kWarp);
      for (int i = 0; i < here; ++i) {
        const double mapped = __shfl_sync(kAllLanes, mine, i);
        result = reduce == Reduce::sum ? result + mapped : result < mapped ? mapped : result;
      }
    }
    if (lane == 0) out[piece] = result;
  }
}

// One thread per entry; `largest` entries of each client are asked for, num_sent[k] exist.
template <class T, class Quantizer>
__global__ void encode_entries(ScopePlan plan, StateWrite<T> state, LevelFormat format, LevelWidth width, Quantizer q,
                               const RandomStream* stream, std::size_t num_clients, std::size_t largest, const std::size_t* num_sent,
                               const PayloadRow<T>* rows) {
  for (std::size_t piece = thread_index(); piece < num_clients * largest; piece += num_threads()) {
    const std::size_t k = piece / largest, i = piece % largest;
    if (i >= num_sent[k]) continue;
    const std::size_t j = rows[k].index[i], s = segment_at(plan, j, FirstElement{});
    const T* scale = rows[k].scale + s * scales_per_segment(format);
    const T p = rows[k].value[i];
    const std::int32_t level = q(p, numbers_for<Quantizer>(format, scale), stream == nullptr ? 0U : stream[k].bits(j), s);
    store_level(level_at(rows[k].levels, width, i), width, level);
    if (state.rule == StateRule::residual) state.out.row(k)[j] = p - level_value(format, level, scale);
  }
}

template <class T>
[[nodiscard]] std::vector<std::size_t> sent_entries(std::span<Payload<T>* const> messages) {
  std::vector<std::size_t> num_sent;
  num_sent.reserve(messages.size());
  for (const Payload<T>* message : messages) num_sent.push_back(message->num_sent);
  return num_sent;
}

}  // namespace detail

// out: [K,S] on the device, 0 where nothing was kept. map: T -> double, an FL_HD functor.
template <class T, class Map>
void reduce_kept(const Exec& exec, const Scope& scope, std::span<Payload<T>* const> messages, Map map, Reduce reduce, double* out) {
  Workspace::Frame frame(*exec.workspace);
  const ScopePlan plan = plan_segments(exec, scope.segments, frame);
  const std::vector<std::size_t> num_sent = detail::sent_entries(messages);
  Launch(exec, "reduce_kept", blocks_for(messages.size() * plan.num_segments * kWarp))(
      detail::reduce_entries<T, Map>, plan, messages.size(), upload(exec, std::span<const std::size_t>(num_sent), frame),
      upload_rows(exec, messages, frame), map, reduce, out);
}

// scale: [K,S,n] on the device; stream: [K] on the host, or empty.
template <class T, class Quantizer>
void encode_kept(const Exec& exec, const Scope& scope, const LevelFormat& format, LevelWidth width, const T* scale, Quantizer q,
                 std::span<const RandomStream> stream, const StateWrite<T>& state, std::span<Payload<T>* const> messages) {
  Workspace::Frame frame(*exec.workspace);
  const ScopePlan plan = plan_segments(exec, scope.segments, frame);
  const std::size_t K = messages.size(), n = scales_per_segment(format);
  const std::vector<std::size_t> num_sent = detail::sent_entries(messages);
  std::size_t largest = 0;
  for (Payload<T>* message : messages) {
    message->level_bytes.resize_for_overwrite(message->num_sent * static_cast<std::size_t>(width));
    message->scale.resize_for_overwrite(plan.num_segments * n);
    largest = std::max(largest, message->num_sent);
  }
  const PayloadRow<T>* rows = upload_rows(exec, messages, frame);
  if (n > 0) Launch(exec, "copy_scales", blocks_for(K * plan.num_segments * n))(detail::copy_scales<T>, plan, K, n, scale, rows);
  const RandomStream* streams = stream.empty() ? nullptr : upload(exec, stream, frame);
  Launch(exec, "encode_kept", blocks_for(K * largest))(detail::encode_entries<T, Quantizer>, plan, state, format, width, q, streams, K,
                                                       largest, upload(exec, std::span<const std::size_t>(num_sent), frame), rows);
  for (Payload<T>* message : messages) {
    message->values = WireValue::levels;
    message->level_format = format;
    message->level_width = width;
    message->value.resize_discard(0);
  }
}

template <class T, class Quantizer>
void encode_kept(const Exec& exec, const Scope& scope, const LevelFormat& format, LevelWidth width, const T* scale, Quantizer q,
                 const StateWrite<T>& state, std::span<Payload<T>* const> messages) {
  encode_kept(exec, scope, format, width, scale, q, std::span<const RandomStream>{}, state, messages);
}

}  // namespace fl::cuda
