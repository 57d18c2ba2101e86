// Sends the tensors that no operator compresses, on the device of the messages: the operation send_excluded for code that calls operators.
#pragma once

#include <span>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"

namespace fl {

// Does the same as in fl_core/ops/cpu/dense.hpp. On a GPU, views and their `rows` are in GPU memory, and the call does not wait.
template <class T>
void send_excluded(const Exec& exec, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                   std::span<Payload<T>* const> out);

extern template void send_excluded<float>(const Exec&, const Affine<float>&, const Scope&, const StateWrite<float>&,
                                          std::span<Payload<float>* const>);
extern template void send_excluded<double>(const Exec&, const Affine<double>&, const Scope&, const StateWrite<double>&,
                                           std::span<Payload<double>* const>);

}  // namespace fl
