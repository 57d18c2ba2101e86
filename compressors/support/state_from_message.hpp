// Computes the client's new state from the message as the receiver reads it, for operators whose message is assembled from parts.
#pragma once

#include <cstddef>

#include "compressors/compressor.hpp"
#include "fl_core/memory/workspace.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl::FL_DEVICE_NS {

template <class T>
struct CopyElements {
  const T* from;
  T* to;
  FL_HD void operator()(std::size_t j) const { to[j] = from[j]; }
};

// Writes p - c for the rule `residual`, where `left` holds c; for other rules it copies `left`.
template <class T>
struct WriteLeftState {
  StateWrite<T> state;
  std::size_t k, begin;
  const T *p, *left;  // of the segment
  FL_HD void operator()(std::size_t j) const { state.out.row(k)[begin + j] = state.rule == StateRule::residual ? p[j] - left[j] : left[j]; }
};

// Writes the state of client k, whose input is p [P]. Excluded tensors are not in the message yet; their state is unchanged and is written
// by the code that sends them.
template <class T>
void write_state_from_message(const Exec& exec, const Scope& scope, const T* p, const Payload<T>& message, const StateWrite<T>& state,
                              std::size_t k) {
  if (state.rule == StateRule::none) return;
  Workspace::Frame frame(*exec.workspace);
  T* left = frame.take<T>(scope.P);
  if (state.rule == StateRule::residual) {
    expand_message(exec, message, scope, left);
  } else {
    for_each(exec, scope.P, CopyElements<T>{p, left});
    clear_sent(exec, message, scope, left);
  }
  for (const Segment& segment : scope.segments)
    for_each(exec, segment.size(), WriteLeftState<T>{state, k, segment.begin, p + segment.begin, left + segment.begin});
}

}  // namespace fl::FL_DEVICE_NS
