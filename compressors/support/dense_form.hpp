// Helpers for operators that compute C(x) as a vector with many zeros: its nonzero entries become the message and define the state.
#pragma once

#include <cstddef>
#include <limits>
#include <span>

#include "compressors/compressor.hpp"
#include "fl_core/ops/ops.hpp"

namespace fl::FL_DEVICE_NS {

template <class T>
struct WriteDenseState {
  StateWrite<T> state;  // of one client
  std::size_t begin;
  const T *p, *c;  // of the segment
  FL_HD void operator()(std::size_t j) const {
    state.out.row(0)[begin + j] = state.rule == StateRule::residual ? p[j] - c[j] : c[j] != T(0) ? T(0) : p[j];
  }
};

// Sends the nonzero entries of c [P]. p [P] is the input. `state` and `message` belong to one client.
template <class T>
void send_nonzeros(const Exec& exec, const Scope& scope, const T* p, const T* c, const StateWrite<T>& state,
                   std::span<Payload<T>* const> message) {
  Affine<T> sent;
  sent.add(T(1), BatchView<const T>{c, nullptr, 1, scope.P, scope.P});
  select_rows(exec, sent, scope, AtLeast<T>{std::numeric_limits<T>::denorm_min()}, kNativeWire<T>, StateWrite<T>{}, message);
  if (state.rule == StateRule::none) return;
  for (const Segment& segment : scope.segments)
    for_each(exec, segment.size(), WriteDenseState<T>{state, segment.begin, p + segment.begin, c + segment.begin});
}

}  // namespace fl::FL_DEVICE_NS
