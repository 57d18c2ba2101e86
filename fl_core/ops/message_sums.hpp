// Adds messages to the rows of their senders, on either device: h_k += factor c_k, each product rounded in T, by the same expressions
// everywhere. Client state of EF21, DIANA and related methods changes this way.
#pragma once

#include <cstdint>
#include <span>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"

namespace fl {

// Returns whether a kernel may read the message. Messages that were made on the host or decoded may have host buffers.
template <class T>
[[nodiscard]] bool lies_on_device(const Payload<T>& message) {
  return message.index.device() != Device::cpu && (message.rest == nullptr || lies_on_device(*message.rest));
}

// Adds messages [K], of `rows.P` entries each (null: none), that are on exec.device. rows: [K,P]; on a GPU their row numbers are in GPU
// memory too, and the call does not wait.
template <class T>
FL_API void add_messages(const Exec& exec, std::span<const Payload<T>* const> messages, const Scope& scope, T factor, BatchView<T> rows);

extern template void add_messages<float>(const Exec&, std::span<const Payload<float>* const>, const Scope&, float, BatchView<float>);
extern template void add_messages<double>(const Exec&, std::span<const Payload<double>* const>, const Scope&, double, BatchView<double>);

}  // namespace fl
