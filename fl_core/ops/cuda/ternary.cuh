// Values of a sparse message replaced by a sign and one magnitude per segment: the mean of the magnitudes that were kept.
#pragma once

#include <span>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"

namespace fl::cuda {

// Each message holds raw native values at listed positions, and `state` (residual rule) has been written for them, so it is 0 there.
// Afterwards the message holds signs and scales [S], and the state is value - sign * scale at the sent positions.
template <class T>
FL_API void ternarise_rows(const Exec& exec, const Scope& scope, const StateWrite<T>& state, std::span<Payload<T>* const> messages);

}  // namespace fl::cuda
