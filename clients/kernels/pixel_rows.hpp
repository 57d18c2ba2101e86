// Rows of a linear model that are stored as bytes of images, a few at a time: margins z = W a and the transposed product W += z a^T.
//
// A block of rows is expanded to numbers in the first-level cache and read there by all outputs and both products, so that memory moves one
// byte per feature. The numbers and the order of the sums are those of the expanded rows (dense_rows.hpp), and so are the results' bits.
// x [O,D] row-major, z [O,stride], acc [O,D] double.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "clients/kernels/dense_rows.hpp"

namespace fl::kernels {

template <class V>
class FL_API PixelRows {
 public:
  static constexpr int kRowsPerBlock = DenseRows<V>::kRowsPerBlock;
  // Some rows, expanded in the source's memory until it opens the next block.
  struct RowBlock {
    const std::uint32_t* rows;
    int count;
    const V* features;  // [count,D]
  };
  explicit PixelRows(const Dataset<V>& data)
      : data_(data), D_(data.num_features), room_(new V[static_cast<std::size_t>(kRowsPerBlock) * data.num_features]) {}

  [[nodiscard]] RowBlock block(const std::uint32_t* rows, int count, std::span<const std::uint32_t> next) const {
    data_.gather({rows, static_cast<std::size_t>(count)}, room_.get());
    for (const std::uint32_t row : next.first(std::min<std::size_t>(kRowsPerBlock, next.size()))) fetch_ahead(row);
    return {rows, count, room_.get()};
  }

  template <bool, class X>
  void margins(const RowBlock& block, const X* x, std::size_t outputs, std::size_t stride, double* z) const;
  void add(const RowBlock& block, const double* z, std::size_t outputs, std::size_t stride, double* acc) const;
  // Writes out [D] = the row, dense.
  void expand(std::uint32_t row, double* out) const {
    std::vector<V> features(D_);
    data_.gather({&row, 1}, features.data());
    std::copy(features.begin(), features.end(), out);
  }

 private:
  void fetch_ahead(std::uint32_t row) const {
    constexpr std::size_t kLine = 64, kMost = 1024;  // the processor follows a longer row by itself
    const std::uint8_t* bytes = data_.images.pixels.data() + std::size_t{row} * D_;
    for (std::size_t at = 0; at < std::min(D_, kMost); at += kLine) __builtin_prefetch(bytes + at, 0, 2);
  }
  template <class Visit>
  void in_pieces(const RowBlock& block, const Visit& visit) const;

  const Dataset<V>& data_;
  std::size_t D_;
  std::unique_ptr<V[]> room_;  // [kRowsPerBlock,D]
};

}  // namespace fl::kernels
