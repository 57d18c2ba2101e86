#include "fl_core/ops/row_moves.hpp"

#include <algorithm>

#include "fl_core/ops/cuda/row_moves.hpp"

namespace fl {

template <class T>
void copy_rows(const Exec& exec, BatchView<const T> from, BatchView<T> to) {
  if (exec.device == Device::cuda) return cuda::copy_rows(exec, from, to);
  for (std::uint32_t k = 0; k < to.K; ++k) std::copy_n(from.row(k), to.P, to.row(k));
}

template <class T>
void clear_entries(const Exec& exec, BatchView<T> rows, std::size_t begin, std::size_t end) {
  if (exec.device == Device::cuda) return cuda::clear_entries(exec, rows, begin, end);
  for (std::uint32_t k = 0; k < rows.K; ++k) std::fill(rows.row(k) + begin, rows.row(k) + end, T(0));
}

template void copy_rows<float>(const Exec&, BatchView<const float>, BatchView<float>);
template void copy_rows<double>(const Exec&, BatchView<const double>, BatchView<double>);
template void clear_entries<float>(const Exec&, BatchView<float>, std::size_t, std::size_t);
template void clear_entries<double>(const Exec&, BatchView<double>, std::size_t, std::size_t);

}  // namespace fl
