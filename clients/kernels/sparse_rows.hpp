// CSR rows of a linear model, 64 at a time: margins z = W a and the transposed product W += z a^T.
//
// Rows are short (a dozen entries) and of uneven length, so loops over one row at a time would spend their time on mispredicted ends.
// Instead, a block's entries are treated as one run of products x[column] * value [E], summed per row with masked vectors. The transposed
// product first spreads each row's z over its entries. Blocks with more than kFlat entries are computed row by row, because ends are then
// rare.
// Features that are all one have no value array. x [O,D] row-major, z [O,stride], acc [O,D] double.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "clients/kernels/simd.hpp"
#include "fl_core/config/device.hpp"
#include "fl_core/data/dataset.hpp"

namespace fl::kernels {

template <class V>
class FL_API SparseRows {
 public:
  static constexpr int kRowsPerBlock = 64;
  static constexpr std::uint32_t kFlat = 2048;  // entries of a block that is computed as one run
  // Some rows of the data: entries of row r are offset[r] .. offset[r+1]-1 of the block's run.
  struct RowBlock {
    const std::uint32_t* rows;
    int count;
    bool contiguous = true;  // rows follow each other in the data, and so do their entries
    std::uint32_t longest = 0;
    std::uint32_t offset[kRowsPerBlock + 1];
    [[nodiscard]] std::uint32_t entries() const { return offset[count]; }
    [[nodiscard]] std::uint32_t length(int r) const { return offset[r + 1] - offset[r]; }
  };
  explicit SparseRows(const Dataset<V>& data)
      : begin_(data.sparse.row_begin.data()),
        column_(data.sparse.column.data()),
        value_(data.sparse.value.empty() ? nullptr : data.sparse.value.data()),
        num_entries_(data.sparse.column.size()),
        D_(data.num_features) {}

  // Ignores the rows that come next: the processor prefetches short rows by itself.
  [[nodiscard]] RowBlock block(const std::uint32_t* rows, int count, std::span<const std::uint32_t>) const {
    RowBlock block;
    block.rows = rows;
    block.count = count;
    std::uint32_t apart = 0;
    for (int r = 0; r < count; ++r) apart |= (rows[r] - rows[0]) ^ static_cast<std::uint32_t>(r);
    block.contiguous = apart == 0;
    block.offset[0] = 0;
    if (block.contiguous) {
      const std::uint64_t* begin = begin_ + rows[0];
      for (int r = 1; r <= count; ++r) block.offset[r] = static_cast<std::uint32_t>(begin[r] - begin[0]);
    } else {
      for (int r = 0; r < count; ++r)
        block.offset[r + 1] = block.offset[r] + static_cast<std::uint32_t>(begin_[rows[r] + 1] - begin_[rows[r]]);
    }
    for (int r = 0; r < count; ++r) block.longest = std::max(block.longest, block.length(r));
    return block;
  }

  template <bool kAdd, class X>
  void margins(const RowBlock& block, const X* x, std::size_t outputs, std::size_t stride, double* z) const;
  // Returns whether add() spreads z over the entries of the block, which makes +0.0 of -0.0.
  [[nodiscard]] static bool spreads(const RowBlock& block) {
    const bool ends_are_foreseen = block.entries() == static_cast<std::uint32_t>(block.count) * block.longest;
    return block.entries() <= kFlat && block.contiguous && !ends_are_foreseen;
  }
  void add(const RowBlock& block, const double* z, std::size_t outputs, std::size_t stride, double* acc) const;
  // Writes out [D] = the row, dense.
  void expand(std::uint32_t row, double* out) const {
    std::fill_n(out, D_, 0.0);
    for (std::uint64_t i = begin_[row]; i < begin_[row + 1]; ++i) out[column_[i]] = value(i);
  }

 private:
  struct Loops;

  [[nodiscard]] double value(std::uint64_t i) const { return value_ == nullptr ? 1.0 : static_cast<double>(value_[i]); }

  const std::uint64_t* begin_;
  const std::uint32_t* column_;
  const V* value_;
  std::uint64_t num_entries_;
  std::size_t D_;
};

}  // namespace fl::kernels
