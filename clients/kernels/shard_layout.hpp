// The sparse rows of a shard, arranged for gradients over all of them: margins z = A x and the transposed product acc += A^T z.
//
// A is stored twice. Lists of the entries of each row give the margins of a vector's width of rows at a time; lists of the entries of each
// column, in the order of the rows, give as many entries of the gradient without storing and loading them between two rows. Every sum has
// the order that it has in sparse_rows.hpp, so results have the same bits. A layout takes 4 bytes per entry, and twice the size of a value
// if values are not all one, plus a tenth to a quarter for lists that are filled up.
//
// Rows are taken in pieces, whose margins stay in the caches. Rows of blocks with many entries and rows of more than SlicedLists::kShort
// entries have no list; their margins are computed by sparse_rows.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "clients/kernels/row_passes.hpp"
#include "clients/kernels/sliced_lists.hpp"
#include "fl_core/memory/workspace.hpp"

namespace fl::kernels {

template <class V>
class ShardLayout {
 public:
  static constexpr std::size_t kRowsPerPiece = 4096;
  static_assert(kRowsPerPiece <= 64 * SparseRows<V>::kRowsPerBlock);  // for Piece::spread
  // Consecutive rows of a piece.
  struct Run {
    std::uint32_t first, count;
  };
  struct Piece {
    std::span<const std::uint32_t> rows;
    std::uint64_t spread = 0;     // bit b: block b of the rows is one that SparseRows spreads
    std::vector<Run> apart;       // rows that have no list
    SlicedLists columns_of_rows;  // of the other rows; the filler is D
    SlicedLists rows_of_columns;  // the filler is padded(rows)
  };

  // Returns whether a layout pays and can be stored: columns have a few entries each, and numbers are small.
  [[nodiscard]] static bool fits(const Dataset<V>& data, std::span<const std::uint32_t> rows);
  // Refers to `rows`.
  ShardLayout(const Dataset<V>& data, std::span<const std::uint32_t> rows);
  [[nodiscard]] std::span<const Piece> pieces() const { return pieces_; }
  // Returns the distance between the margins of two outputs: those of a piece, and a filler.
  [[nodiscard]] std::size_t stride() const;

 private:
  [[nodiscard]] static Piece piece_of(const Dataset<V>& data, std::span<const std::uint32_t> rows);

  std::vector<Piece> pieces_;
};

// A row of the data as entries first .. last-1.
struct EntryRange {
  std::uint64_t first, last;
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(last - first); }
};
template <class V>
[[nodiscard]] EntryRange entries_of(const Dataset<V>& data, std::uint32_t row) {
  return {data.sparse.row_begin[row], data.sparse.row_begin[row + 1]};
}

template <class V>
bool ShardLayout<V>::fits(const Dataset<V>& data, std::span<const std::uint32_t> rows) {
  constexpr std::size_t kLeastPerColumn = 4;
  std::size_t entries = 0;
  for (const std::uint32_t row : rows) entries += entries_of(data, row).size();
  return data.all_ones() && data.num_features < SlicedLists::kMost && entries >= kLeastPerColumn * data.num_features;
}

template <class V>
ShardLayout<V>::ShardLayout(const Dataset<V>& data, std::span<const std::uint32_t> rows) {
  for (std::size_t first = 0; first < rows.size(); first += kRowsPerPiece)
    pieces_.push_back(piece_of(data, rows.subspan(first, std::min(kRowsPerPiece, rows.size() - first))));
}

template <class V>
std::size_t ShardLayout<V>::stride() const {
  return static_cast<std::size_t>(padded(static_cast<int>(pieces_.front().rows.size()))) + kLanes;
}

template <class V>
typename ShardLayout<V>::Piece ShardLayout<V>::piece_of(const Dataset<V>& data, std::span<const std::uint32_t> rows) {
  using Source = SparseRows<V>;
  const Source source(data);
  const auto count = static_cast<std::uint32_t>(rows.size());
  std::vector<std::uint32_t> in_row(count), in_column(data.num_features);
  std::vector<Run> apart;
  std::uint64_t spread = 0;
  for (std::uint32_t first = 0; first < count; first += Source::kRowsPerBlock) {
    const auto block =
        source.block(rows.data() + first, static_cast<int>(std::min<std::uint32_t>(Source::kRowsPerBlock, count - first)), {});
    spread |= std::uint64_t{Source::spreads(block)} << (first / Source::kRowsPerBlock);
    if (block.entries() > Source::kFlat) {
      apart.push_back({first, static_cast<std::uint32_t>(block.count)});
      continue;
    }
    for (int r = 0; r < block.count; ++r) {
      const std::uint32_t row = first + static_cast<std::uint32_t>(r);
      if (block.length(r) <= SlicedLists::kShort)
        in_row[row] = block.length(r);
      else
        apart.push_back({row, 1});
    }
  }
  // Calls visit(row, column) for every entry.
  const auto for_each_entry = [&](const auto& visit) {
    for (std::uint32_t r = 0; r < count; ++r) {
      const EntryRange row = entries_of(data, rows[r]);
      for (std::uint64_t i = row.first; i < row.last; ++i) visit(r, data.sparse.column[i]);
    }
  };
  for_each_entry([&](std::uint32_t, std::uint32_t column) { ++in_column[column]; });
  const auto by_row = [&](const auto& visit) {
    for_each_entry([&](std::uint32_t r, std::uint32_t column) {
      if (in_row[r] > 0) visit(r, column);
    });
  };
  const auto by_column = [&](const auto& visit) { for_each_entry([&](std::uint32_t r, std::uint32_t column) { visit(column, r); }); };
  return {.rows = rows,
          .spread = spread,
          .apart = std::move(apart),
          .columns_of_rows = SlicedLists(in_row, data.num_features, by_row),
          .rows_of_columns = SlicedLists(in_column, static_cast<std::size_t>(padded(static_cast<int>(count))), by_column)};
}

// A pass over a shard in its layout, for a model at x.
template <class V>
class ShardPass {
 public:
  // Scratch lasts as long as `frame`.
  ShardPass(Workspace::Frame& frame, const ShardLayout<V>& layout, const Dataset<V>& data, const LinearShape& shape, const V* x)
      : layout_(layout),
        source_(data),
        shape_(shape),
        stride_(layout.stride()),
        x_(x),
        wide_(frame.take<double>(shape.O * (shape.D + 1))),
        z_(frame.take<double>(shape.O * stride_)) {
    for (std::size_t o = 0; o < shape.O; ++o) {
      std::copy_n(x + o * shape.D, shape.D, wide_ + o * (shape.D + 1));
      wide_[o * (shape.D + 1) + shape.D] = 0;
    }
  }
  // Computes acc += scale * sum_r grad l(x; r), unless acc is null, and returns sum_r l(x; r) if `losses` is set, else 0, with the bits of
  // add_gradient() in row_passes.hpp over the same rows.
  template <class Link>
  double add_gradient(const Link& link, double scale, double* acc, bool losses) const {
    double total = 0;
    for (const auto& piece : layout_.pieces()) {
      margins(piece);
      slopes(piece, link, scale, losses ? &total : nullptr);
      if (acc != nullptr) add(piece, acc);
    }
    return total;
  }

 private:
  using Source = SparseRows<V>;
  using Piece = typename ShardLayout<V>::Piece;

  void margins(const Piece& piece) const {
    const std::size_t count = piece.rows.size();
    for (std::size_t o = 0; o < shape_.O; ++o) {
      double* z = z_ + o * stride_;
      std::fill_n(z, stride_, 0.0);
      piece.columns_of_rows.sum_lists(wide_ + o * (shape_.D + 1), z);
      for (const auto& run : piece.apart)
        source_.template margins<true>(source_.block(piece.rows.data() + run.first, static_cast<int>(run.count), {}), x_ + o * shape_.D, 1,
                                       stride_, z + run.first);
      if (shape_.bias)
        for (std::size_t r = 0; r < count; ++r) z[r] += static_cast<double>(x_[shape_.weights() + o]);
    }
  }
  // Replaces z by scale times the slopes of the losses. Adds the losses to `total`, unless it is null, one block's sum after another.
  template <class Link>
  void slopes(const Piece& piece, const Link& link, double scale, double* total) const {
    const int stride = static_cast<int>(stride_);
    for (std::size_t first = 0; first < piece.rows.size(); first += Source::kRowsPerBlock) {
      const int count = static_cast<int>(std::min<std::size_t>(Source::kRowsPerBlock, piece.rows.size() - first));
      alignas(64) double loss[kStride<Source>];
      link.derivative(piece.rows.data() + first, count, stride, z_ + first, total != nullptr ? loss : nullptr);
      if (total != nullptr) {
        double part = 0;
        for (int r = 0; r < count; ++r) part += loss[r];
        *total += part;
      }
      block_scale(shape_.O, stride, count, scale, nullptr, z_ + first);
    }
  }
  void add(const Piece& piece, double* acc) const {
    const std::size_t count = piece.rows.size();
    for (std::size_t o = 0; o < shape_.O; ++o) {
      double* z = z_ + o * stride_;
      if (shape_.bias) acc[shape_.weights() + o] = std::accumulate(z, z + count, acc[shape_.weights() + o]);
      for (std::size_t first = 0; first < count; first += Source::kRowsPerBlock)
        if ((piece.spread >> (first / Source::kRowsPerBlock) & 1) != 0)
          for (std::size_t r = first; r < std::min<std::size_t>(count, first + Source::kRowsPerBlock); ++r) z[r] += 0.0;
      z[padded(static_cast<int>(count))] = -0.0;
      piece.rows_of_columns.add_lists(z, acc + o * shape_.D);
    }
  }

  const ShardLayout<V>& layout_;
  Source source_;
  LinearShape shape_;
  std::size_t stride_;
  const V* x_;
  double* wide_;  // [O,D+1] x in double, with a zero behind each output's weights
  double* z_;     // [O,stride]
};

}  // namespace fl::kernels
