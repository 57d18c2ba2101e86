#include "clients/kernels/gram_extremes.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "fl_core/config/stopping.hpp"

namespace fl::kernels {

template <class Source>
Extremes gram_extremes(const Source& source, const LinearShape& shape, RowSet set) {
  constexpr std::size_t kDense = 600, kChunk = 256;
  const std::size_t m = set.rows.size(), n = shape.D + 1;
  const std::size_t features = shape.bias ? n : shape.D;
  const auto weight = [&](std::size_t r) { return set.weight.empty() ? 1.0 : set.weight[r]; };
  if (m < features && m <= kDense) {
    std::vector<double> B(m * n), G(m * m);
    expand_rows(source, shape, set.rows.data(), m, B.data());
    for (std::size_t r = 0; r < m; ++r)
      for (std::size_t j = 0; j < n; ++j) B[r * n + j] *= std::sqrt(weight(r));
    outer_gram(B.data(), m, n, G.data());
    return {0, extreme_eigenvalues(G.data(), m).largest};
  }
  if (features <= kDense) {
    std::vector<double> B(kChunk * n), w(kChunk), G(n * n, 0.0), used(features * features);
    for (std::size_t first = 0; first < m; first += kChunk) {
      check_for_stop();
      const std::size_t count = std::min(kChunk, m - first);
      expand_rows(source, shape, set.rows.data() + first, count, B.data());
      for (std::size_t r = 0; r < count; ++r) w[r] = weight(first + r);
      add_gram(B.data(), w.data(), count, n, G.data());
    }
    for (std::size_t i = 0; i < features; ++i) std::copy_n(G.data() + i * n, i + 1, used.data() + i * features);
    return extreme_eigenvalues(used.data(), features);
  }
  LinearShape single{shape.D, 1, shape.bias};
  std::vector<double> z(block_size<Source>(single));
  const double largest = largest_eigenvalue(single.size(), [&](const double* v, double* out) {
    check_for_stop();
    std::fill_n(out, single.size(), 0.0);
    for_each_row_block(source, set, {}, [&](const typename Source::RowBlock& rows, const double* w) {
      row_block_margins<true>(source, single, v, rows, z.data());
      block_scale(1, kStride<Source>, rows.count, 1.0, w, z.data());
      row_block_add(source, single, z.data(), rows, out);
    });
  });
  return {0, largest};
}

template Extremes gram_extremes(const DenseRows<float>&, const LinearShape&, RowSet);
template Extremes gram_extremes(const DenseRows<double>&, const LinearShape&, RowSet);
template Extremes gram_extremes(const PixelRows<float>&, const LinearShape&, RowSet);
template Extremes gram_extremes(const PixelRows<double>&, const LinearShape&, RowSet);
template Extremes gram_extremes(const SparseRows<float>&, const LinearShape&, RowSet);
template Extremes gram_extremes(const SparseRows<double>&, const LinearShape&, RowSet);

}  // namespace fl::kernels
