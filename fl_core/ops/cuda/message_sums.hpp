// fl_core/ops/message_sums.hpp on a GPU.
#pragma once

#include <span>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"

namespace fl::cuda {

template <class T>
void add_messages(const Exec& exec, std::span<const Payload<T>* const> messages, const Scope& scope, T factor, BatchView<T> rows);

extern template void add_messages<float>(const Exec&, std::span<const Payload<float>* const>, const Scope&, float, BatchView<float>);
extern template void add_messages<double>(const Exec&, std::span<const Payload<double>* const>, const Scope&, double, BatchView<double>);

}  // namespace fl::cuda
