// fl_core/ops/excluded.hpp on a GPU.
#pragma once

#include <span>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"

namespace fl::cuda {

template <class T>
FL_API void send_excluded(const Exec& exec, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                          std::span<Payload<T>* const> out);

}  // namespace fl::cuda
