#include <algorithm>
#include <utility>

#include "fl_core/cuda/row_norms.hpp"
#include "fl_core/cuda/verbs.cuh"
#include "fl_core/payload_segments.hpp"

namespace fl::cuda {
namespace {

constexpr std::size_t kMostErrorBytes = std::size_t{256} << 20;  // of differences that lie there at a time

template <class T>
struct SubtractEntry {
  T* out;
  FL_HD void operator()(std::size_t j, T c) const { out[j] += T(-1) * c; }
};

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

// p -= c
template <class T>
void subtract(const Exec& exec, const Payload<T>& message, const Scope& scope, T* p) {
  if (!message.silent) {
    const bool own_shape = has_own_shape(message, scope);
    detail::visit_entries(exec, message, own_shape ? one_segment(message.length) : scope, SubtractEntry<T>{p});
    if (!message.excluded.empty() && !own_shape) {
      Workspace::Frame frame(*exec.workspace);
      const detail::EntryNumber<T> number{WireValue::fp32, {}, LevelWidth::w8, message.excluded.data(), nullptr, nullptr};
      for_each(exec, message.excluded.size(),
               detail::VisitEntry<T, SubtractEntry<T>>{plan_segments(exec, scope.excluded, frame), nullptr, number, SubtractEntry<T>{p}});
    }
  }
  if (message.rest != nullptr) subtract(exec, *message.rest, scope, p);
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
    for (std::size_t k = 0; k < count; ++k) subtract(exec, *messages[first + k], scope, p + k * P);
    norms_to(exec, Affine<T>().add(T(1), BatchView<const T>{p, nullptr, count, P, P}), norm + first);
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
