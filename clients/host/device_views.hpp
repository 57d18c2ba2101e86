// Views of managed memory for kernels. Their row numbers, which the host has, are copied to the GPU for the lifetime of the frame.
#pragma once

#include <cstdint>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/device_memory.hpp"
#include "fl_core/memory/exec.hpp"

namespace fl {

template <class U>
[[nodiscard]] BatchView<U> reachable(const Exec& exec, BatchView<U> view, Workspace::Frame& frame) {
  if (exec.device == Device::cpu || view.rows == nullptr) return view;
  auto* rows = frame.take<std::uint32_t>(view.K);
  upload_bytes(rows, view.rows, view.K * sizeof(std::uint32_t), exec.stream);
  view.rows = rows;
  return view;
}
template <class T>
[[nodiscard]] Affine<T> reachable(const Exec& exec, Affine<T> input, Workspace::Frame& frame) {
  for (int a = 0; a < input.num_terms; ++a) input.term[a] = reachable(exec, input.term[a], frame);
  return input;
}
template <class T>
[[nodiscard]] StateWrite<T> reachable(const Exec& exec, StateWrite<T> state, Workspace::Frame& frame) {
  if (state.rule != StateRule::none) state.out = reachable(exec, state.out, frame);
  return state;
}

}  // namespace fl
