#include <algorithm>
#include <vector>

#include "fl_core/ops/cuda/message_sums.hpp"
#include "fl_core/ops/cuda/ops.cuh"
#include "fl_core/ops/cuda/row_norms.hpp"

namespace fl::cuda {
namespace {

constexpr std::size_t kMostErrorBytes = std::size_t{256} << 20;  // of differences that lie there at a time

template <class T>
struct LoadRows {
  Affine<T> input;
  std::size_t P;
  T* p;
  FL_HD void operator()(std::size_t i) const {
    const std::size_t k = i / P;
    p[i] = input.at(k, i - k * P);
  }
};

[[nodiscard]] Scope one_segment(std::size_t P) {
  Scope scope;
  scope.P = P;
  scope.segments.push_back({.begin = 0, .end = P, .rows = P});
  return scope;
}

template <class T>
void norms_to(const Exec& exec, const Affine<T>& input, double* out) {
  reduce_rows(exec, input, one_segment(input.size()), SquareOf{}, Reduce::sum, out);
}

}  // namespace

template <class T>
void sums_of_squares(const Exec& exec, const Affine<T>& input, std::span<double> out) {
  Workspace::Frame frame(*exec.workspace);
  auto* norm = frame.take<double>(out.size());
  norms_to(exec, input, norm);
  ::fl::copy_bytes(out.data(), Device::cpu, norm, Device::cuda, out.size_bytes(), exec.stream);
}

template <class T>
void sums_of_squared_errors(const Exec& exec, const Affine<T>& input, const Scope& scope, std::span<Payload<T>* const> messages,
                            std::span<double> out) {
  const std::size_t P = input.size(), K = out.size();
  const std::size_t most = std::clamp<std::size_t>(kMostErrorBytes / (P * sizeof(T)), 1, std::max<std::size_t>(K, 1));
  Workspace::Frame frame(*exec.workspace);
  auto* norm = frame.take<double>(K);
  T* p = frame.take<T>(most * P);
  for (std::size_t first = 0; first < K; first += most) {
    const auto count = static_cast<std::uint32_t>(std::min(most, K - first));
    for_each(exec, count * P, LoadRows<T>{input.slice(static_cast<std::uint32_t>(first), count), P, p});
    const BatchView<T> rows{p, nullptr, count, P, P};
    const std::vector<const Payload<T>*> sent(messages.begin() + static_cast<std::ptrdiff_t>(first),
                                              messages.begin() + static_cast<std::ptrdiff_t>(first + count));
    add_messages(exec, std::span<const Payload<T>* const>(sent), scope, T(-1), rows);
    norms_to(exec, Affine<T>().add(T(1), rows), norm + first);
  }
  ::fl::copy_bytes(out.data(), Device::cpu, norm, Device::cuda, out.size_bytes(), exec.stream);
}

template void sums_of_squares<float>(const Exec&, const Affine<float>&, std::span<double>);
template void sums_of_squares<double>(const Exec&, const Affine<double>&, std::span<double>);
template void sums_of_squared_errors<float>(const Exec&, const Affine<float>&, const Scope&, std::span<Payload<float>* const>,
                                            std::span<double>);
template void sums_of_squared_errors<double>(const Exec&, const Affine<double>&, const Scope&, std::span<Payload<double>* const>,
                                             std::span<double>);

}  // namespace fl::cuda
