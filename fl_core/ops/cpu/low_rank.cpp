#include "fl_core/ops/cpu/low_rank.hpp"

#include <algorithm>
#include <cstring>

#include "fl_core/memory/workspace.hpp"
#include "fl_core/ops/cpu/tile.hpp"

namespace fl::cpu {
namespace {

constexpr std::size_t kLanesOf64Bytes = 64;
template <class T>
inline constexpr std::size_t kVector = kLanesOf64Bytes / sizeof(T);
template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(64)));
};
template <class T>
using Vec = typename VectorOf<T>::type;

// Rows and columns of a tile of the input, 16 KiB of floats; columns of the factors whose sums stay in registers at once.
constexpr std::size_t kRows = 8, kCols = 512, kFactors = 4;

template <class T>
Vec<T> load(const T* p) {
  Vec<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
void store(T* p, const Vec<T>& v) {
  std::memcpy(p, &v, sizeof v);
}
template <class T>
T sum_of(const Vec<T>& v) {
  T lanes[kVector<T>];
  std::memcpy(lanes, &v, sizeof v);
  for (std::size_t half = kVector<T> / 2; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  return lanes[0];
}

// Rows 0 .. rows()-1 of a tile [kRows,kCols] of the input; columns past the last and rows past rows() are zero. The tiles beside each other
// are evaluated together, row by row, because memory is read several times as fast in its order.
template <class T>
class Tile {
 public:
  Tile(const Affine<T>& input, std::size_t k, const Segment& segment, Workspace::Frame& frame)
      : input_(input),
        k_(k),
        segment_(segment),
        stride_(in_vectors(std::min(kPanel, segment.cols))),
        panel_(frame.take<T>(kRows * stride_)) {}

  // Call it for the tiles of a matrix in the order of each_tile().
  void load(std::size_t row, std::size_t column) {
    if (column % kPanel == 0) load_panel(row, column);
    rows_ = std::min(kRows, segment_.rows - row);
    columns_ = std::min(kCols, segment_.cols - column);
    entries_ = panel_ + column % kPanel;
  }
  [[nodiscard]] const T* row(std::size_t i) const { return entries_ + i * stride_; }
  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t columns() const { return columns_; }
  // Returns the number of columns in whole vectors.
  [[nodiscard]] std::size_t width() const { return in_vectors(columns_); }

 private:
  static constexpr std::size_t kPanel = 8 * kCols;  // columns
  [[nodiscard]] static std::size_t in_vectors(std::size_t columns) { return (columns + kVector<T> - 1) / kVector<T> * kVector<T>; }

  void load_panel(std::size_t row, std::size_t column) {
    const std::size_t columns = std::min(kPanel, segment_.cols - column);
    for (std::size_t i = 0; i < kRows; ++i) {
      T* to = panel_ + i * stride_;
      const std::size_t filled = row + i < segment_.rows ? columns : 0;
      if (filled > 0) load_tile(input_, k_, segment_.begin + (row + i) * segment_.cols + column, filled, to);
      std::fill(to + filled, to + in_vectors(columns), T(0));
    }
  }

  const Affine<T>& input_;
  std::size_t k_;
  const Segment& segment_;
  std::size_t stride_;  // of the panel's rows
  T* panel_;            // [kRows, stride]
  const T* entries_ = nullptr;
  std::size_t rows_ = 0, columns_ = 0;
};

// Calls f(first row, first column) for the tiles of a matrix, row of tiles by row of tiles.
template <class F>
void each_tile(const Segment& segment, const F& f) {
  for (std::size_t row = 0; row < segment.rows; row += kRows)
    for (std::size_t column = 0; column < segment.cols; column += kCols) f(row, column);
}

// Calls f.operator()<kR>(first) for the columns of a factor, kFactors at a time and then one by one.
template <class F>
void each_chunk(std::size_t r, const F& f) {
  std::size_t first = 0;
  for (; first + kFactors <= r; first += kFactors) f.template operator()<kFactors>(first);
  for (; first < r; ++first) f.template operator()<1>(first);
}

// A factor [m,r] with its columns as rows [r,stride], stride a whole number of vectors and the rest zeros.
template <class T>
struct Columns {
  std::size_t stride;
  T* data;
  Columns(std::size_t m, std::size_t r, Workspace::Frame& frame)
      : stride((m + kVector<T> - 1) / kVector<T> * kVector<T>), data(frame.take<T>(stride * std::max<std::size_t>(r, 1))) {
    std::fill_n(data, stride * r, T(0));
  }
  void read(const T* Q, std::size_t m, std::size_t r) {
    for (std::size_t j = 0; j < m; ++j)
      for (std::size_t c = 0; c < r; ++c) data[c * stride + j] = Q[j * r + c];
  }
  void write(T* Q, std::size_t m, std::size_t r) const {
    for (std::size_t j = 0; j < m; ++j)
      for (std::size_t c = 0; c < r; ++c) Q[j * r + c] = data[c * stride + j];
  }
  [[nodiscard]] T* column(std::size_t c) const { return data + c * stride; }
};

// out[i][c] += the tile's rows times kR columns, kPair rows at a time.
template <std::size_t kR, std::size_t kPair, class T>
FL_WIDE_VECTORS void dot_rows(const Tile<T>& tile, std::size_t i, const T* Q, std::size_t stride, T* out, std::size_t r) {
  Vec<T> sum[kPair][kR] = {};
  for (std::size_t j = 0; j < tile.width(); j += kVector<T>) {
    Vec<T> q[kR];
#pragma GCC unroll 4
    for (std::size_t c = 0; c < kR; ++c) q[c] = load(Q + c * stride + j);
#pragma GCC unroll 4
    for (std::size_t a = 0; a < kPair; ++a) {
      const Vec<T> p = load(tile.row(i + a) + j);
#pragma GCC unroll 4
      for (std::size_t c = 0; c < kR; ++c) sum[a][c] += p * q[c];
    }
  }
  for (std::size_t a = 0; a < kPair && i + a < tile.rows(); ++a)
    for (std::size_t c = 0; c < kR; ++c) out[(i + a) * r + c] += sum_of<T>(sum[a][c]);
}

// out [kR,stride] += the tile transposed times kR columns of P [rows,r].
template <std::size_t kR, class T>
FL_WIDE_VECTORS void add_rows(const Tile<T>& tile, const T* P, std::size_t r, T* out, std::size_t stride) {
  T weight[kRows][kR];
  for (std::size_t i = 0; i < kRows; ++i)
    for (std::size_t c = 0; c < kR; ++c) weight[i][c] = i < tile.rows() ? P[i * r + c] : T(0);
  for (std::size_t j = 0; j < tile.width(); j += kVector<T>) {
    Vec<T> sum[kR];
#pragma GCC unroll 4
    for (std::size_t c = 0; c < kR; ++c) sum[c] = load(out + c * stride + j);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
      const Vec<T> p = load(tile.row(i) + j);
#pragma GCC unroll 4
      for (std::size_t c = 0; c < kR; ++c) sum[c] += weight[i][c] * p;
    }
#pragma GCC unroll 4
    for (std::size_t c = 0; c < kR; ++c) store(out + c * stride + j, sum[c]);
  }
}

// out = or += kR columns of P at one row times kR rows of Q^T.
template <std::size_t kR, class T>
FL_WIDE_VECTORS void add_product(bool add, std::size_t count, const T* P, const T* Q, std::size_t stride, T* out) {
  for (std::size_t j = 0; j < count; ++j) {
    T sum = P[0] * Q[j];
    for (std::size_t c = 1; c < kR; ++c) sum += P[c] * Q[c * stride + j];
    out[j] = add ? out[j] + sum : sum;
  }
}

// Entries column .. column+count-1 of a row of P Q^T: the same bits for the sender's memory and for the receiver.
template <class T>
void product_row(const T* P, const Columns<T>& Q, std::size_t r, std::size_t column, std::size_t count, T* out) {
  if (r == 0) std::fill_n(out, count, T(0));
  each_chunk(r, [&]<std::size_t kR>(std::size_t c) { add_product<kR>(c > 0, count, P + c, Q.column(c) + column, Q.stride, out); });
}

}  // namespace

template <class T>
void affine_times(const Exec& exec, const Affine<T>& input, std::size_t k, const Segment& segment, const T* Q, std::size_t r, T* out) {
  Workspace::Frame frame(*exec.workspace);
  Columns<T> columns(segment.cols, r, frame);
  columns.read(Q, segment.cols, r);
  std::fill_n(out, segment.rows * r, T(0));
  Tile<T> tile(input, k, segment, frame);
  each_tile(segment, [&](std::size_t row, std::size_t column) {
    tile.load(row, column);
    each_chunk(r, [&]<std::size_t kR>(std::size_t c) {
      for (std::size_t i = 0; i < tile.rows(); i += 4)
        dot_rows<kR, 4>(tile, i, columns.column(c) + column, columns.stride, out + row * r + c, r);
    });
  });
}

template <class T>
void affine_transposed_times(const Exec& exec, const Affine<T>& input, std::size_t k, const Segment& segment, const T* P, std::size_t r,
                             T* out) {
  Workspace::Frame frame(*exec.workspace);
  Columns<T> columns(segment.cols, r, frame);
  Tile<T> tile(input, k, segment, frame);
  each_tile(segment, [&](std::size_t row, std::size_t column) {
    tile.load(row, column);
    each_chunk(r,
               [&]<std::size_t kR>(std::size_t c) { add_rows<kR>(tile, P + row * r + c, r, columns.column(c) + column, columns.stride); });
  });
  columns.write(out, segment.cols, r);
}

template <class T>
void write_low_rank_state(const Exec& exec, const Affine<T>& input, std::size_t k, const Segment& segment, const T* P, const T* Q,
                          std::size_t r, const StateWrite<T>& state) {
  if (state.rule == StateRule::none) return;
  T* to = state.out.row(k) + segment.begin;
  if (state.rule == StateRule::zero_where_sent) {
    std::fill_n(to, segment.size(), T(0));
    return;
  }
  Workspace::Frame frame(*exec.workspace);
  Columns<T> columns(segment.cols, r, frame);
  columns.read(Q, segment.cols, r);
  T* sent = frame.take<T>(kCols);
  for (std::size_t row = 0; row < segment.rows; ++row)
    for (std::size_t column = 0; column < segment.cols; column += kCols) {
      const std::size_t count = std::min(kCols, segment.cols - column), at = row * segment.cols + column;
      product_row(P + row * r, columns, r, column, count, sent);
      load_tile(input, k, segment.begin + at, count, to + at);
      for (std::size_t j = 0; j < count; ++j) to[at + j] -= sent[j];
    }
}

template <class T>
void low_rank_product(const Exec& exec, const Segment& segment, const T* P, const T* Q, std::size_t r, T* out) {
  Workspace::Frame frame(*exec.workspace);
  Columns<T> columns(segment.cols, r, frame);
  columns.read(Q, segment.cols, r);
  for (std::size_t row = 0; row < segment.rows; ++row) product_row(P + row * r, columns, r, 0, segment.cols, out + row * segment.cols);
}

#define FL_INSTANTIATE(T)                                                                                                         \
  template void affine_times(const Exec&, const Affine<T>&, std::size_t, const Segment&, const T*, std::size_t, T*);              \
  template void affine_transposed_times(const Exec&, const Affine<T>&, std::size_t, const Segment&, const T*, std::size_t, T*);   \
  template void write_low_rank_state(const Exec&, const Affine<T>&, std::size_t, const Segment&, const T*, const T*, std::size_t, \
                                     const StateWrite<T>&);                                                                       \
  template void low_rank_product(const Exec&, const Segment&, const T*, const T*, std::size_t, T*);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl::cpu
