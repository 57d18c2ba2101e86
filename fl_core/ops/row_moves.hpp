// Copies or clears rows of clients in place. On a GPU, views and their row numbers are in GPU memory, and the calls do not wait.
#pragma once

#include <cstddef>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"

namespace fl {

// Copies from_k to to_k, to.P entries each.
template <class T>
FL_API void copy_rows(const Exec& exec, BatchView<const T> from, BatchView<T> to);

// Sets entries begin .. end-1 of every row to 0.
template <class T>
FL_API void clear_entries(const Exec& exec, BatchView<T> rows, std::size_t begin, std::size_t end);

extern template void copy_rows<float>(const Exec&, BatchView<const float>, BatchView<float>);
extern template void copy_rows<double>(const Exec&, BatchView<const double>, BatchView<double>);
extern template void clear_entries<float>(const Exec&, BatchView<float>, std::size_t, std::size_t);
extern template void clear_entries<double>(const Exec&, BatchView<double>, std::size_t, std::size_t);

}  // namespace fl
