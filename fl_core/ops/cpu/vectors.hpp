// One client's vector as a whole, for operators that go client by client.
//
//   load_vector      p [P] = input of client k
//   running_sums     sum[i] = x[0] + .. + x[i], added one after another in double
//   expand_message   out [P] = what the message stands for, 0 where nothing was sent
//   clear_sent       target[j] = 0 wherever an entry was sent
#pragma once

#include <cstddef>

#include "fl_core/memory/exec.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "fl_core/ops/cpu/tile.hpp"

namespace fl::cpu {

template <class T>
void load_vector(const Exec&, const Affine<T>& input, std::size_t k, T* p) {
  load_tile(input, k, 0, input.size(), p);
}

template <class T>
void running_sums(const Exec&, const T* x, std::size_t n, double* sum) {
  double total = 0;
  for (std::size_t i = 0; i < n; ++i) sum[i] = total += static_cast<double>(x[i]);
}

template <class T>
void expand_message(const Exec&, const Payload<T>& message, const Scope& scope, T* out) {
  write_dense(message, scope, out);
}

template <class T>
void clear_sent(const Exec&, const Payload<T>& message, const Scope& scope, T* target) {
  zero_where_sent(message, scope, target);
}

}  // namespace fl::cpu
