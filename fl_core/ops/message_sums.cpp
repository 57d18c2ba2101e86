#include "fl_core/ops/message_sums.hpp"

#include "fl_core/message/payload_ops.hpp"
#include "fl_core/ops/cuda/message_sums.hpp"

namespace fl {

template <class T>
void add_messages(const Exec& exec, std::span<const Payload<T>* const> messages, const Scope& scope, T factor, BatchView<T> rows) {
  if (exec.device == Device::cuda) return cuda::add_messages(exec, messages, scope, factor, rows);
  for (std::size_t k = 0; k < messages.size(); ++k)
    if (messages[k] != nullptr) add_scaled(*messages[k], scope, factor, rows.row(k));
}

template void add_messages<float>(const Exec&, std::span<const Payload<float>* const>, const Scope&, float, BatchView<float>);
template void add_messages<double>(const Exec&, std::span<const Payload<double>* const>, const Scope&, double, BatchView<double>);

}  // namespace fl
