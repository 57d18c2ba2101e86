#include "fl_core/ops/row_norms.hpp"

#include "fl_core/message/payload_ops.hpp"
#include "fl_core/ops/cpu/reduce.hpp"
#include "fl_core/ops/cuda/row_norms.hpp"

namespace fl {
namespace {

template <class T>
[[nodiscard]] double norm_of(const Affine<T>& input, std::size_t k) {
  return cpu::reduce_segment<Reduce::sum>(input, k, Segment{.begin = 0, .end = input.size(), .rows = input.size()}, SquareOf{});
}

}  // namespace

template <class T>
void sums_of_squares(const Exec& exec, const Affine<T>& input, std::span<double> out) {
  if (exec.device == Device::cuda) return cuda::sums_of_squares(exec, input, out);
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = norm_of(input, k);
}

template <class T>
void sums_of_squared_errors(const Exec& exec, const Affine<T>& input, const Scope& scope, std::span<Payload<T>* const> messages,
                            std::span<double> out) {
  if (exec.device == Device::cuda) return cuda::sums_of_squared_errors(exec, input, scope, messages, out);
  Workspace::Frame frame(*exec.workspace);
  T* p = frame.take<T>(input.size());
  for (std::uint32_t k = 0; k < out.size(); ++k) {
    cpu::load_tile(input, k, 0, input.size(), p);
    add_scaled(*messages[k], scope, T(-1), p);
    out[k] = norm_of(Affine<T>().add(T(1), shared_view<const T>(p, 1, input.size())), 0);
  }
}

template void sums_of_squares<float>(const Exec&, const Affine<float>&, std::span<double>);
template void sums_of_squares<double>(const Exec&, const Affine<double>&, std::span<double>);
template void sums_of_squared_errors<float>(const Exec&, const Affine<float>&, const Scope&, std::span<Payload<float>* const>,
                                            std::span<double>);
template void sums_of_squared_errors<double>(const Exec&, const Affine<double>&, const Scope&, std::span<Payload<double>* const>,
                                             std::span<double>);

}  // namespace fl
