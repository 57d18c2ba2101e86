// The client's new state, taken from the message as its receiver will read it: for operators whose message is put together from parts.
#pragma once

#include <algorithm>
#include <cstddef>

#include "compressors/compressor.hpp"
#include "fl_core/payload_ops.hpp"
#include "fl_core/workspace.hpp"

namespace fl {

// p [P]: the input of client k. Excluded tensors are not in the message yet and keep their state for whoever sends them.
template <class T>
void write_state_from_message(const Exec& exec, const Scope& scope, const T* p, const Payload<T>& message, const StateWrite<T>& state,
                              std::size_t k) {
  if (state.rule == StateRule::none) return;
  Workspace::Frame frame(*exec.workspace);
  T* left = frame.take<T>(scope.P);
  if (state.rule == StateRule::residual) {
    write_dense(message, scope, left);
    for (std::size_t j = 0; j < scope.P; ++j) left[j] = p[j] - left[j];
  } else {
    std::copy_n(p, scope.P, left);
    zero_where_sent(message, scope, left);
  }
  for (const Segment& segment : scope.segments) std::copy(left + segment.begin, left + segment.end, state.out.row(k) + segment.begin);
}

}  // namespace fl
