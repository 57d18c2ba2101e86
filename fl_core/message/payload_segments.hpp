// The segments to which the entries of a message belong.
//
// A message usually describes the P parameters, by the segments of its scope. The message of a phase with its own shape (the factors of
// PowerSGD, a sketch) is instead one plain vector of `length` elements: one segment 0 .. length-1, nothing excluded.
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

[[nodiscard]] inline std::size_t num_unshared(const Scope& scope) {
  std::size_t total = 0;
  for (const Segment& tensor : scope.unshared) total += tensor.size();
  return total;
}

// Returns the number of shared parameters: those in the scope's segments and the excluded ones.
[[nodiscard]] inline std::size_t num_shared(const Scope& scope) { return scope.P - num_unshared(scope); }

// Returns the number of elements in the scope's segments.
[[nodiscard]] inline std::size_t num_compressed(const Scope& scope) { return num_shared(scope) - num_excluded(scope); }

// Returns whether the segments leave out parameters.
[[nodiscard]] inline bool has_gaps(const Scope& scope) { return !scope.excluded.empty() || !scope.unshared.empty(); }

// Returns whether the message is a plain vector. If its length happens to be P, entries for parameters outside the segments identify it.
template <class T>
[[nodiscard]] bool has_own_shape(const Payload<T>& message, const Scope& scope) {
  if (message.length != scope.P) return true;
  return has_gaps(scope) && message.positions == Positions::all && message.num_sent == message.length;
}

// Returns the segments. `plain` stores the single segment of a plain vector.
[[nodiscard]] inline std::span<const Segment> message_segments(const Scope& scope, bool own_shape, std::size_t length, Segment& plain) {
  if (!own_shape) return scope.segments;
  plain = Segment{.begin = 0, .end = length, .rows = length, .cols = 1};
  return {&plain, 1};
}

// Returns the number of segments that send entries.
template <class T>
[[nodiscard]] std::size_t num_sending(const Payload<T>& message, std::size_t segments) {
  if (message.positions != Positions::list) return message.num_sent > 0 ? segments : 0;
  std::size_t sending = 0;
  for (const std::uint32_t count : message.counts) sending += count > 0 ? 1 : 0;
  return sending;
}

// Returns whether Payload::scale has rows only for segments that send entries. Receivers store scales this way and need no tables for
// empty segments. Operators write a row for every segment.
template <class T>
[[nodiscard]] bool has_sending_scales_alone(const Payload<T>& message, std::size_t segments) {
  return message.values == WireValue::levels && message.scale.size() < segments * scales_per_segment(message.level_format);
}

}  // namespace fl
