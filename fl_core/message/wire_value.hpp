// Returns a raw value as its receiver sees it: rounded to the wire format, in the type of the computation. Client state moves by this
// number.
#pragma once

#include "fl_core/config/device.hpp"
#include "fl_core/memory/batch_view.hpp"
#include "fl_core/message/half.hpp"
#include "fl_core/message/payload.hpp"

namespace fl {

template <class T>
[[nodiscard]] FL_HD inline T wire_value(WireValue format, T x) {
  if (format == WireValue::fp16) return round_to_half(x);
  if (format == WireValue::bf16) return round_to_bfloat16(x);
  if (format == WireValue::fp32) return static_cast<T>(static_cast<float>(x));
  return x;
}

// Returns the state after c was sent for p: p - c for StateRule::residual, 0 for zero_where_sent.
template <class T>
[[nodiscard]] FL_HD inline T state_where_sent(StateRule rule, T p, T c) {
  return rule == StateRule::residual ? p - c : T(0);
}

}  // namespace fl
