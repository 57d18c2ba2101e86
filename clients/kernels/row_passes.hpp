// Passes over rows of a linear model, for any source of rows (dense_rows.hpp, pixel_rows.hpp, sparse_rows.hpp) and any link (links.hpp). A
// parameter vector is W [O,D] row-major, followed by b [O] if there is a bias; acc has the same layout in double.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "clients/kernels/dense_rows.hpp"
#include "clients/kernels/links.hpp"
#include "clients/kernels/pixel_rows.hpp"
#include "clients/kernels/sparse_rows.hpp"
#include "clients/learning/model.hpp"

namespace fl::kernels {

struct LinearShape {
  std::size_t D = 0, O = 1;
  bool bias = false;
  [[nodiscard]] std::size_t weights() const { return D * O; }
  [[nodiscard]] std::size_t size() const { return weights() + (bias ? O : 0); }
};

// Returns the cost of a gradient. A dense row costs 2 D O operations in each pass; a sparse one 2 O for each number that it stores, whose
// value, place and O weights are read. The link takes `link` operations for each output.
template <class T>
[[nodiscard]] ModelCost cost_of_linear_model(const LinearShape& shape, bool is_sparse, double link) {
  const auto D = static_cast<double>(is_sparse ? 0 : shape.D), O = static_cast<double>(shape.O), P = static_cast<double>(shape.size());
  const double biases = shape.bias ? O : 0;
  StretchCost cost{.begin = 0, .end = shape.size()};
  cost.forward.row = work_on<T>(2 * D * O + biases + link * O, D + O);
  cost.backward.row = work_on<T>(2 * D * O + biases, D + O);
  if (is_sparse) {
    cost.forward.stored = work_on<T>(2 * O, 1 + O) + Work{0, sizeof(std::uint32_t)};
    cost.backward.stored = work_on<T>(2 * O, 1 + 2 * O) + Work{0, sizeof(std::uint32_t)};
  } else {
    cost.forward.minibatch = work_on<T>(0, P);
  }
  cost.backward.minibatch = work_on<T>(0, P);
  return {{cost}};
}

// The sizes of one block of margins [O,kStride].
template <class Source>
inline constexpr int kStride = padded(Source::kRowsPerBlock);
template <class Source>
[[nodiscard]] std::size_t block_size(const LinearShape& shape) {
  return shape.O * static_cast<std::size_t>(kStride<Source>);
}

// Computes the margins of a block; columns up to padded(count) become zero. kAdd: row_block_add of the same block follows.
template <bool kAdd, class Source, class X>
[[gnu::always_inline]] inline void row_block_margins(const Source& source, const LinearShape& shape, const X* x,
                                                     const typename Source::RowBlock& block, double* z) {
  constexpr std::size_t stride = kStride<Source>;
  source.template margins<kAdd>(block, x, shape.O, stride, z);
  for (std::size_t o = 0; o < shape.O; ++o, z += stride) {
    if (shape.bias)
      for (int r = 0; r < block.count; ++r) z[r] += static_cast<double>(x[shape.weights() + o]);
    for (int r = block.count; r < padded(block.count); ++r) z[r] = 0;
  }
}

// Computes acc += sum_r z[r] (row r, 1).
template <class Source>
[[gnu::always_inline]] inline void row_block_add(const Source& source, const LinearShape& shape, const double* z,
                                                 const typename Source::RowBlock& block, double* acc) {
  constexpr std::size_t stride = kStride<Source>;
  source.add(block, z, shape.O, stride, acc);
  if (!shape.bias) return;
  for (std::size_t o = 0; o < shape.O; ++o)
    for (int r = 0; r < block.count; ++r) acc[shape.weights() + o] += z[o * stride + static_cast<std::size_t>(r)];
}

// Multiplies column r of the block by scale * weight[r] (weight may be null).
inline void block_scale(std::size_t outputs, int stride, int count, double scale, const double* weight, double* z) {
  for (std::size_t o = 0; o < outputs; ++o, z += stride)
    for (int r = 0; r < count; ++r) z[r] *= weight == nullptr ? scale : scale * weight[r];
}

// Calls visit(block, its weights or null) for each block of a set; rows `after` follow its last block.
template <class Source, class Visit>
[[gnu::always_inline]] inline void for_each_row_block(const Source& source, const RowSet& set, std::span<const std::uint32_t> after,
                                                      const Visit& visit) {
  const std::size_t n = set.rows.size();
  for (std::size_t first = 0; first < n; first += Source::kRowsPerBlock) {
    const int count = static_cast<int>(std::min<std::size_t>(Source::kRowsPerBlock, n - first));
    const std::size_t end = first + static_cast<std::size_t>(count);
    visit(source.block(set.rows.data() + first, count, end < n ? set.rows.subspan(end) : after),
          set.weight.empty() ? nullptr : set.weight.data() + first);
  }
}

// Computes acc += scale * sum_r weight[r] grad l(x; r). Returns sum_r weight[r] l(x; r) if `losses` is set, else 0. z: block_size()
// numbers.
template <class Source, class X, class Link>
[[gnu::always_inline]] inline double add_gradient(const Source& source, const LinearShape& shape, const Link& link, const X* x,
                                                  const RowSet& set, double scale, double* acc, double* z, bool losses,
                                                  std::span<const std::uint32_t> after = {}) {
  constexpr int stride = kStride<Source>;
  double total = 0;
  for_each_row_block(source, set, after, [&](const typename Source::RowBlock& block, const double* weight) {
    alignas(64) double loss[stride];
    row_block_margins<true>(source, shape, x, block, z);
    link.derivative(block.rows, block.count, stride, z, losses ? loss : nullptr);
    if (losses) {
      double part = 0;
      for (int r = 0; r < block.count; ++r) part += weight == nullptr ? loss[r] : weight[r] * loss[r];
      total += part;
    }
    if (acc == nullptr) return;
    block_scale(shape.O, stride, block.count, scale, weight, z);
    row_block_add(source, shape, z, block, acc);
  });
  return total;
}

// Computes the gradient over one row, out = c row + l2 x. Returns the row's loss if `losses` is set, else 0.
template <class V, class Link>
[[gnu::always_inline]] inline double single_gradient(const DenseRows<V>& source, const LinearShape& shape, const Link& link, const V* x,
                                                     std::uint32_t row, double l2, V* out, double* z, bool losses,
                                                     std::span<const std::uint32_t> after) {
  constexpr int stride = kStride<DenseRows<V>>;
  alignas(64) double loss[stride] = {};
  row_block_margins<false>(source, shape, x, source.block(&row, 1, after), z);
  link.derivative(&row, 1, stride, z, losses ? loss : nullptr);
  for (std::size_t o = 0; o < shape.O; ++o) {
    source.scaled_row(row, z[o * stride], l2, x + o * shape.D, out + o * shape.D);
    if (shape.bias) out[shape.weights() + o] = static_cast<V>(z[o * stride] + l2 * static_cast<double>(x[shape.weights() + o]));
  }
  return losses ? loss[0] : 0;
}

// Returns the sum of losses, and adds the number of correct rows to `correct` unless it is null.
template <class Source, class X, class Link>
double sum_losses(const Source& source, const LinearShape& shape, const Link& link, const X* x, const RowSet& set, double* z,
                  std::uint64_t* correct) {
  constexpr int stride = kStride<Source>;
  double total = 0;
  for_each_row_block(source, set, {}, [&](const typename Source::RowBlock& block, const double*) {
    alignas(64) double loss[stride];
    row_block_margins<false>(source, shape, x, block, z);
    if (correct != nullptr)
      for (int r = 0; r < block.count; ++r) *correct += link.is_right(block.rows[r], r, stride, z) ? 1 : 0;
    link.derivative(block.rows, block.count, stride, z, loss);
    double part = 0;
    for (int r = 0; r < block.count; ++r) part += loss[r];
    total += part;
  });
  return total;
}

// Computes acc += sum_r weight[r] (Hessian of l(.; r) at x) v. z, u: block_size() numbers each.
template <class Source, class Link>
void add_hessian_times(const Source& source, const LinearShape& shape, const Link& link, const double* x, const RowSet& set,
                       const double* v, double* acc, double* z, double* u) {
  constexpr int stride = kStride<Source>;
  for_each_row_block(source, set, {}, [&](const typename Source::RowBlock& block, const double* weight) {
    row_block_margins<true>(source, shape, x, block, z);
    row_block_margins<true>(source, shape, v, block, u);
    link.curvature_times(block.count, stride, z, u);
    block_scale(shape.O, stride, block.count, 1.0, weight, u);
    row_block_add(source, shape, u, block, acc);
  });
}

}  // namespace fl::kernels
