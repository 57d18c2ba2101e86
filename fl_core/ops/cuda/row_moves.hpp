// fl_core/ops/row_moves.hpp on a GPU.
#pragma once

#include <cstddef>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"

namespace fl::cuda {

template <class T>
void copy_rows(const Exec& exec, BatchView<const T> from, BatchView<T> to);
template <class T>
void clear_entries(const Exec& exec, BatchView<T> rows, std::size_t begin, std::size_t end);

extern template void copy_rows<float>(const Exec&, BatchView<const float>, BatchView<float>);
extern template void copy_rows<double>(const Exec&, BatchView<const double>, BatchView<double>);
extern template void clear_entries<float>(const Exec&, BatchView<float>, std::size_t, std::size_t);
extern template void clear_entries<double>(const Exec&, BatchView<double>, std::size_t, std::size_t);

}  // namespace fl::cuda
