// fl_core/ops/row_sums.hpp on a GPU.
#pragma once

#include <span>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"

namespace fl::cuda {

// rows: of the GPU's memory, their numbers of the host's; sum: in host memory, complete on return.
template <class T>
void add_rows(const Exec& exec, BatchView<const T> rows, std::span<const double> factor, std::span<double> sum);

extern template void add_rows<float>(const Exec&, BatchView<const float>, std::span<const double>, std::span<double>);
extern template void add_rows<double>(const Exec&, BatchView<const double>, std::span<const double>, std::span<double>);

}  // namespace fl::cuda
