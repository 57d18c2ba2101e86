// Tests whether a received message has the form from which an operator computes entries. A peer may send another one.
#pragma once

#include "fl_core/message/payload_segments.hpp"

namespace fl {

// Returns whether the message has one level for each compressed entry.
template <class T>
[[nodiscard]] bool has_all_levels(const Payload<T>& message, const Scope& scope) {
  return !message.silent && message.values == WireValue::levels && message.positions == Positions::all &&
         message.num_sent == num_compressed(scope);
}

}  // namespace fl
