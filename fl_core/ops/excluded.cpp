#include "fl_core/ops/excluded.hpp"

#include "fl_core/ops/cpu/dense.hpp"
#include "fl_core/ops/cuda/excluded.hpp"

namespace fl {

template <class T>
void send_excluded(const Exec& exec, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                   std::span<Payload<T>* const> out) {
  if (exec.device == Device::cuda) return cuda::send_excluded(exec, input, scope, state, out);
  cpu::send_excluded(exec, input, scope, state, out);
}

template void send_excluded<float>(const Exec&, const Affine<float>&, const Scope&, const StateWrite<float>&,
                                   std::span<Payload<float>* const>);
template void send_excluded<double>(const Exec&, const Affine<double>&, const Scope&, const StateWrite<double>&,
                                    std::span<Payload<double>* const>);

}  // namespace fl
