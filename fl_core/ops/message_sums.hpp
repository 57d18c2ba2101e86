// Messages added to the rows of those who sent them, on whichever device they are: h_k += factor c_k, each product rounded in T, by the
// same expressions everywhere. Client state of EF21, DIANA and their kin moves like this.
#pragma once

#include <cstdint>
#include <span>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"

namespace fl {

// Whether a kernel may read the message: what ran on the host, or was decoded, may have left its buffers there.
template <class T>
[[nodiscard]] bool lies_on_device(const Payload<T>& message) {
  return message.index.device() != Device::cpu && (message.rest == nullptr || lies_on_device(*message.rest));
}

// Messages [K], of `rows.P` entries each (null: none), that lie on exec.device. rows: [K,P]; on a GPU their numbers are of its memory too,
// and nothing is waited for.
template <class T>
FL_API void add_messages(const Exec& exec, std::span<const Payload<T>* const> messages, const Scope& scope, T factor, BatchView<T> rows);

extern template void add_messages<float>(const Exec&, std::span<const Payload<float>* const>, const Scope&, float, BatchView<float>);
extern template void add_messages<double>(const Exec&, std::span<const Payload<double>* const>, const Scope&, double, BatchView<double>);

}  // namespace fl
