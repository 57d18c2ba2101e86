// Everything is sent: the segments' values in a wire format (identity), and the tensors that no operator compresses (excluded.hpp).
#pragma once

#include <span>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"
#include "fl_core/ops/cuda/excluded.hpp"

namespace fl::cuda {

// Values of all segments, one after another, rounded to the wire format; state from the rounded values. out: [K] payloads, cleared.
template <class T>
FL_API void dense_rows(const Exec& exec, const Affine<T>& input, const Scope& scope, WireValue wire, const StateWrite<T>& state,
                       std::span<Payload<T>* const> out);

}  // namespace fl::cuda
