// Which segments a message's entries belong to.
//
// A message usually describes the P parameters, segment by segment as its scope has them. A phase with a shape of its own (the factors of
// PowerSGD, a sketch) is one plain vector of `length` elements instead: one segment 0 .. length-1, nothing excluded.
#pragma once

#include <cstddef>
#include <span>

#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"

namespace fl {

[[nodiscard]] inline std::size_t num_excluded(const Scope& scope) {
  std::size_t total = 0;
  for (const Segment& tensor : scope.excluded) total += tensor.size();
  return total;
}

[[nodiscard]] inline std::size_t num_statistics(const Scope& scope) {
  std::size_t total = 0;
  for (const Segment& statistic : scope.statistics) total += statistic.size();
  return total;
}

// Parameters that are weights: in the scope's segments or excluded.
[[nodiscard]] inline std::size_t num_weights(const Scope& scope) { return scope.P - num_statistics(scope); }

// Elements in the scope's segments.
[[nodiscard]] inline std::size_t num_compressed(const Scope& scope) { return num_weights(scope) - num_excluded(scope); }

// Whether segments leave parameters out.
[[nodiscard]] inline bool has_gaps(const Scope& scope) { return !scope.excluded.empty() || !scope.statistics.empty(); }

// True where the message is a plain vector. When its length happens to be P, entries for the parameters that
// segments leave out give it away.
template <class T>
[[nodiscard]] bool has_own_shape(const Payload<T>& message, const Scope& scope) {
  if (message.length != scope.P) return true;
  return has_gaps(scope) && message.positions == Positions::all && message.num_sent == message.length;
}

// The segments; `plain` is where the single segment of a plain vector lives.
[[nodiscard]] inline std::span<const Segment> message_segments(const Scope& scope, bool own_shape, std::size_t length, Segment& plain) {
  if (!own_shape) return scope.segments;
  plain = Segment{.begin = 0, .end = length, .rows = length, .cols = 1};
  return {&plain, 1};
}

// How many of the segments send anything.
template <class T>
[[nodiscard]] std::size_t num_sending(const Payload<T>& message, std::size_t segments) {
  if (message.positions != Positions::list) return message.num_sent > 0 ? segments : 0;
  std::size_t sending = 0;
  for (const std::uint32_t count : message.counts) sending += count > 0 ? 1 : 0;
  return sending;
}

// True where Payload::scale has rows of the segments that send anything alone: so a receiver leaves them, which makes no tables for
// segments that send nothing. Operators write a row for every segment.
template <class T>
[[nodiscard]] bool has_sending_scales_alone(const Payload<T>& message, std::size_t segments) {
  return message.values == WireValue::levels && message.scale.size() < segments * scales_per_segment(message.level_format);
}

}  // namespace fl
