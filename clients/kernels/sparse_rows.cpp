#include "clients/kernels/sparse_rows.hpp"

#include "clients/kernels/row_products.hpp"

namespace fl::kernels {

// The loops over entries, with the arrays of the rows.
template <class V>
struct SparseRows<V>::Loops {
  const std::uint64_t* begin_;
  const std::uint32_t* column_;
  const V* value_;
  std::uint64_t num_entries_;

  static constexpr std::uint32_t kPad = 4 * kLanes;

  [[nodiscard]] double value(std::uint64_t i) const { return value_ == nullptr ? 1.0 : static_cast<double>(value_[i]); }

  template <class X>
  [[nodiscard, gnu::always_inline]] VecD vector_of_products(const X* x, std::uint64_t first) const {
    const VecD v = gather(x, column_ + first);
    return value_ == nullptr ? v : v * load(value_ + first);
  }
  // Computes out[i] = x[column] * value for n entries from `first` on.
  template <class X>
  [[gnu::always_inline]] void products(const X* x, std::uint64_t first, std::size_t n, double* out) const {
    const std::uint32_t* column = column_ + first;
    std::size_t i = 0;
    if (value_ == nullptr) {
      for (; i + kLanes <= n; i += kLanes) store(out + i, gather(x, column + i));
      for (; i < n; ++i) out[i] = static_cast<double>(x[column[i]]);
    } else {
      for (; i + kLanes <= n; i += kLanes) store(out + i, gather(x, column + i) * load(value_ + first + i));
      for (; i < n; ++i) out[i] = static_cast<double>(x[column[i]]) * static_cast<double>(value_[first + i]);
    }
  }
  // Computes the same in whole vectors: the last one reads entries of the next row and writes past this row's products, where the next
  // row's follow.
  template <class X>
  [[gnu::always_inline]] void row_products(const X* x, std::uint64_t first, std::size_t n, double* out) const {
    if (first + n + kLanes > num_entries_) return products(x, first, n, out);  // there is no next row
    const std::uint32_t* column = column_ + first;
    if (value_ == nullptr)
      for (std::size_t i = 0; i < n; i += kLanes) store(out + i, gather(x, column + i));
    else
      for (std::size_t i = 0; i < n; i += kLanes) store(out + i, gather(x, column + i) * load(value_ + first + i));
  }
  // Computes z[r] = sum of row r's products. The last W vectors are masked; most rows have no others. A vector of zeros does not change a
  // sum, so every W gives the same bits for rows that fit.
  template <int W>
  [[gnu::always_inline]] static void row_sums(const RowBlock& block, const double* product, double* z) {
    const VecI lane = lane_numbers();
    for (int r = 0; r < block.count; ++r) {
      const double* from = product + block.offset[r];
      std::int64_t left = block.length(r);
      VecD part[2] = {};
      for (; left > W * kLanes; left -= kLanes, from += kLanes) part[0] += load(from);
      for (int w = 0; w < W; ++w) part[w % 2] += lane + w * kLanes < left ? load(from + w * kLanes) : VecD{};
      z[r] = sum(part[0] + part[1]);
    }
  }
  // Computes the same without storing products. The last vectors read entries of the next row, which are masked.
  template <int W, class X>
  [[gnu::always_inline]] void direct_sums(const RowBlock& block, const X* x, double* z) const {
    const VecI lane = lane_numbers();
    for (int r = 0; r < block.count; ++r) {
      std::uint64_t at = begin_[block.rows[r]];
      std::int64_t left = block.length(r);
      VecD part[2] = {};
      for (; left > W * kLanes; left -= kLanes, at += kLanes) part[0] += vector_of_products(x, at);
      if (at + W * kLanes <= num_entries_) {
        for (int w = 0; w < W; ++w) part[w % 2] += lane + w * kLanes < left ? vector_of_products(x, at + w * kLanes) : VecD{};
      } else {
        alignas(64) double product[W * kLanes] = {};
        products(x, at, static_cast<std::size_t>(left), product);
        for (int w = 0; w < W; ++w) part[w % 2] += load(product + w * kLanes);
      }
      z[r] = sum(part[0] + part[1]);
    }
  }
  // Writes out = z[r] over the entries of row r. The next row overwrites entries written past a row's end.
  template <int W>
  [[gnu::always_inline]] static void spread_rows(const RowBlock& block, const double* z, double* out) {
    for (int r = 0; r < block.count; ++r) {
      double* to = out + block.offset[r];
      const VecD value = broadcast(z[r]);
      for (int w = 0; w < W; ++w) store(to + w * kLanes, value);
      for (std::uint32_t i = W * kLanes; i < block.length(r); i += kLanes) store(to + i, value);
    }
  }
  // Adds from[i] (times the value) to the column of each of n entries, in order. Four at a time, because g++ does not unroll the loop.
  template <class From>
  [[gnu::always_inline]] void scatter_entries(const From& from, std::uint64_t first, std::size_t n, double* acc) const {
    const std::uint32_t* column = column_ + first;
    std::size_t i = 0;
    if (value_ == nullptr) {
      for (; i + 4 <= n; i += 4) {
        acc[column[i]] += from(i);
        acc[column[i + 1]] += from(i + 1);
        acc[column[i + 2]] += from(i + 2);
        acc[column[i + 3]] += from(i + 3);
      }
      for (; i < n; ++i) acc[column[i]] += from(i);
    } else {
      for (; i < n; ++i) acc[column[i]] += from(i) * static_cast<double>(value_[first + i]);
    }
  }
  [[gnu::always_inline]] void scatter(const double* from, std::uint64_t first, std::size_t n, double* acc) const {
    scatter_entries([from](std::size_t i) { return from[i]; }, first, n, acc);
  }
  [[gnu::always_inline]] void scatter_row(double z, std::uint64_t first, std::size_t n, double* acc) const {
    scatter_entries([z](std::size_t) { return z; }, first, n, acc);
  }
  template <class X>
  [[nodiscard]] double long_row(const X* x, std::uint64_t first, std::uint64_t last) const {
    VecD part{};
    std::uint64_t i = first;
    for (; i + kLanes <= last; i += kLanes) part += value_ == nullptr ? gather(x, column_ + i) : gather(x, column_ + i) * load(value_ + i);
    double tail = 0;
    for (; i < last; ++i) tail += static_cast<double>(x[column_[i]]) * value(i);
    return sum(part) + tail;
  }
};

template <class V>
template <bool, class X>
void SparseRows<V>::margins(const RowBlock& block, const X* x, std::size_t outputs, std::size_t stride, double* z) const {
  const Loops loops{begin_, column_, value_, num_entries_};
  for (std::size_t o = 0; o < outputs; ++o, x += D_, z += stride) {
    if (block.entries() > kFlat) {
      for (int r = 0; r < block.count; ++r) z[r] = loops.long_row(x, begin_[block.rows[r]], begin_[block.rows[r] + 1]);
      continue;
    }
    if (block.count == 1 || (!block.contiguous && block.longest <= 3 * kLanes && block.longest > kLanes)) {
      if (block.longest <= 2 * kLanes)
        loops.template direct_sums<2>(block, x, z);
      else if (block.longest <= 3 * kLanes)
        loops.template direct_sums<3>(block, x, z);
      else
        loops.template direct_sums<4>(block, x, z);
      continue;
    }
    alignas(64) double product[kFlat + Loops::kPad];
    if (block.contiguous)
      loops.products(x, begin_[block.rows[0]], block.entries(), product);
    else
      for (int r = 0; r < block.count; ++r) loops.row_products(x, begin_[block.rows[r]], block.length(r), product + block.offset[r]);
    std::fill_n(product + block.entries(), Loops::kPad, 0.0);
    if (block.longest <= 2 * kLanes)
      loops.template row_sums<2>(block, product, z);
    else if (block.longest <= 3 * kLanes)
      loops.template row_sums<3>(block, product, z);
    else
      loops.template row_sums<4>(block, product, z);
  }
}

template <class V>
void SparseRows<V>::add(const RowBlock& block, const double* z, std::size_t outputs, std::size_t stride, double* acc) const {
  const Loops loops{begin_, column_, value_, num_entries_};
  for (std::size_t o = 0; o < outputs; ++o, z += stride, acc += D_) {
    if (block.entries() > kFlat) {
      for (int r = 0; r < block.count; ++r)
        for (std::uint64_t i = begin_[block.rows[r]]; i < begin_[block.rows[r] + 1]; ++i) acc[column_[i]] += z[r] * value(i);
      continue;
    }
    if (!spreads(block)) {
      for (int r = 0; r < block.count; ++r) loops.scatter_row(z[r], begin_[block.rows[r]], block.length(r), acc);
      continue;
    }
    alignas(64) double spread[kFlat + Loops::kPad];
    if (block.longest <= 2 * kLanes)
      loops.template spread_rows<2>(block, z, spread);
    else
      loops.template spread_rows<4>(block, z, spread);
    loops.scatter(spread, begin_[block.rows[0]], block.entries(), acc);
  }
}

FL_INSTANTIATE_ROWS(SparseRows);

}  // namespace fl::kernels
