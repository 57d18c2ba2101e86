// The extreme eigenvalues of the Gram matrix A^T diag(weight) A of some rows A, from which a linear model's smoothness is computed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "clients/kernels/gram.hpp"
#include "clients/kernels/row_passes.hpp"
#include "fl_core/config/device.hpp"

namespace fl::kernels {

// Writes B [count,D+1]: the rows, each followed by a one if there is a bias, else a zero.
template <class Source>
void expand_rows(const Source& source, const LinearShape& shape, const std::uint32_t* rows, std::size_t count, double* B) {
  for (std::size_t r = 0; r < count; ++r) {
    source.expand(rows[r], B + r * (shape.D + 1));
    B[r * (shape.D + 1) + shape.D] = shape.bias ? 1.0 : 0.0;
  }
}

// Returns the extreme eigenvalues over the rows of a set, with a column of ones for the bias. The least one is 0 where it is not computed:
// with fewer rows than features, and for many features. Source: DenseRows, PixelRows or SparseRows.
template <class Source>
[[nodiscard]] FL_API Extremes gram_extremes(const Source& source, const LinearShape& shape, RowSet set);

}  // namespace fl::kernels
