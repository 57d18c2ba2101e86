#include "fl_core/ops/cpu/low_rank.hpp"

#include <algorithm>
#include <cstddef>

#include "fl_core/memory/workspace.hpp"
#include "fl_core/ops/cpu/machine_vector.hpp"
#include "fl_core/ops/cpu/tile.hpp"

namespace fl::cpu {
namespace {

// Rows and columns of a tile of the input, 8 KiB of floats per term; columns of the factors whose sums stay in registers at once.
constexpr std::size_t kRows = 4, kCols = 512, kFactors = 4;

// The input of one client at a matrix, a vector of entries at a time; the same expression as Affine::at().
template <class T, int kTerms>
struct InputMatrix {
  const T* term[kTerms];
  T coefficient[kTerms];

  // Returns the entries from `at` on, and zeros behind them.
  template <class Lanes>
  [[nodiscard]] Vec<T> entries(std::size_t at, Lanes lanes) const {
    Vec<T> p = coefficient[0] * load(term[0] + at, lanes);
    for (int a = 1; a < kTerms; ++a) p += coefficient[a] * load(term[a] + at, lanes);
    return p;
  }
  // Asks for entries that are read later, so that memory and arithmetic overlap.
  void prefetch(std::size_t at) const {
    for (int a = 0; a < kTerms; ++a) __builtin_prefetch(term[a] + at, 0, 2);
  }
};

// Calls use(matrix) with the client's input at the segment.
template <class T, class Use>
void with_matrix(const Affine<T>& input, std::size_t k, const Segment& segment, const Use& use) {
  const auto with = [&]<int kTerms>() {
    InputMatrix<T, kTerms> matrix;
    for (int a = 0; a < kTerms; ++a) {
      matrix.term[a] = input.term[a].row(k) + segment.begin;
      matrix.coefficient[a] = input.coefficient[a];
    }
    use(matrix);
  };
  switch (input.num_terms) {
    case 1: return with.template operator()<1>();
    case 2: return with.template operator()<2>();
    case 3: return with.template operator()<3>();
    default: return with.template operator()<4>();
  }
}

// The order in which rows are visited. A pass that goes backwards finds in the cache what the pass before it read last.
enum class Order { forwards, backwards };

// A tile: rows from `row` on, `count` columns from `column` on. `ahead` is the distance to the entry to prefetch.
struct Tile {
  std::size_t row, column, count, cols;
  std::ptrdiff_t ahead;
  [[nodiscard]] std::size_t at(std::size_t i, std::size_t j) const { return (row + i) * cols + column + j; }
  [[nodiscard]] std::size_t next(std::size_t i, std::size_t j) const { return at(i, j) + static_cast<std::size_t>(ahead); }
};

// Entries of a term in the rows of a tile, up to which the rows that are visited next are prefetched. Longer rows would fill the
// second-level cache, and their entries are prefetched a little further to the right.
constexpr std::size_t kFewEntries = 32768;
constexpr std::ptrdiff_t kToTheRight = 256;

// Calls f.operator()<rows of the tile>(tile) for the tiles of a matrix: kRows rows, or one if fewer are left, from left to right.
template <Order kOrder, class F>
void each_tile(const Segment& segment, const F& f) {
  const auto rows_from = [&]<std::size_t kN>(std::size_t row) {
    const auto rows = static_cast<std::ptrdiff_t>(kN * segment.cols);
    const std::ptrdiff_t ahead = kN * segment.cols > kFewEntries ? kToTheRight : kOrder == Order::forwards ? rows : -rows;
    for (std::size_t column = 0; column < segment.cols; column += kCols)
      f.template operator()<kN>(Tile{row, column, std::min(kCols, segment.cols - column), segment.cols, ahead});
  };
  const std::size_t whole = segment.rows / kRows * kRows;
  if (kOrder == Order::forwards) {
    for (std::size_t row = 0; row < whole; row += kRows) rows_from.template operator()<kRows>(row);
    for (std::size_t row = whole; row < segment.rows; ++row) rows_from.template operator()<1>(row);
  } else {
    for (std::size_t row = segment.rows; row > whole; --row) rows_from.template operator()<1>(row - 1);
    for (std::size_t row = whole; row > 0; row -= kRows) rows_from.template operator()<kRows>(row - kRows);
  }
}

// Calls f.operator()<kR>(first) for the columns of a factor: kFactors at a time, then two, then one.
template <class F>
void each_chunk(std::size_t r, const F& f) {
  std::size_t first = 0;
  for (; first + kFactors <= r; first += kFactors) f.template operator()<kFactors>(first);
  for (; first + 2 <= r; first += 2) f.template operator()<2>(first);
  if (first < r) f.template operator()<1>(first);
}

// A factor [m,r] with its columns as rows [r,stride], stride a whole number of cache lines and the rest zeros.
template <class T>
struct Columns {
  std::size_t stride;
  T* data;
  Columns(std::size_t m, std::size_t r, Workspace::Frame& frame)
      : stride((m + kLine<T> - 1) / kLine<T> * kLine<T>), data(frame.take<T>(stride * std::max<std::size_t>(r, 1))) {
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

// kR columns of a factor at kN rows, which a compiler keeps in registers.
template <std::size_t kR, std::size_t kN, class T>
struct Weights {
  T at[kN][kR];
  Weights(const T* P, std::size_t r) {
    for (std::size_t i = 0; i < kN; ++i)
      for (std::size_t c = 0; c < kR; ++c) at[i][c] = P[i * r + c];
  }
};

// Rows whose sums stay in registers at once, together with kFactors columns of the other factor: 32 registers hold 16 sums, 16 hold 8.
constexpr std::size_t kSumRows = kVectorBytes == kLineBytes ? kRows : kRows / 2;

// out [kN,r] += the tile times kR columns of Q.
template <std::size_t kR, std::size_t kN, class M, class T>
FL_WIDE_VECTORS void add_dot_products(const M& matrix, const Tile& tile, const T* Q, std::size_t stride, T* out, std::size_t r) {
  constexpr std::size_t kAtOnce = std::min(kN, kSumRows);
  for (std::size_t row = 0; row < kN; row += kAtOnce) {
    Vec<T> sums[kAtOnce][kR][kParts];
    for (std::size_t part = 0; part < kParts; ++part) {
      Vec<T> sum[kAtOnce][kR] = {};
      each_vector_of_part<T>(part, tile.count, [&](std::size_t j, auto lanes) {
        Vec<T> q[kR];
#pragma GCC unroll 4
        for (std::size_t c = 0; c < kR; ++c) q[c] = load(Q + c * stride + j);
#pragma GCC unroll 4
        for (std::size_t i = 0; i < kAtOnce; ++i) {
          const Vec<T> p = matrix.entries(tile.at(row + i, j), lanes);
          if (part == 0) matrix.prefetch(tile.next(row + i, j));
#pragma GCC unroll 4
          for (std::size_t c = 0; c < kR; ++c) sum[i][c] += p * q[c];
        }
      });
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kAtOnce; ++i)
#pragma GCC unroll 4
        for (std::size_t c = 0; c < kR; ++c) sums[i][c][part] = sum[i][c];
    }
    for (std::size_t i = 0; i < kAtOnce; ++i)
      for (std::size_t c = 0; c < kR; ++c) out[(row + i) * r + c] += sum_of<T>(sums[i][c]);
  }
}

// out [kR,stride] += kR columns of P^T times the tile. Calls keep(place, entries, their number) for the entries of the tile.
template <std::size_t kR, std::size_t kN, class M, class T, class Keep>
FL_WIDE_VECTORS void add_weighted_rows(const M& matrix, const Tile& tile, const T* P, std::size_t r, T* out, std::size_t stride,
                                       const Keep& keep) {
  const Weights<kR, kN, T> weight(P, r);
  each_vector<T>(tile.count, [&](std::size_t j, auto lanes, auto begins_line) {
    Vec<T> sum[kR];
#pragma GCC unroll 4
    for (std::size_t c = 0; c < kR; ++c) sum[c] = load(out + c * stride + j);
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kN; ++i) {
      const Vec<T> p = matrix.entries(tile.at(i, j), lanes);
      keep(tile.at(i, j), p, lanes);
      if constexpr (begins_line) matrix.prefetch(tile.next(i, j));
#pragma GCC unroll 4
      for (std::size_t c = 0; c < kR; ++c) sum[c] += weight.at[i][c] * p;
    }
#pragma GCC unroll 4
    for (std::size_t c = 0; c < kR; ++c) store(out + c * stride + j, sum[c], AllLanes<T>{});
  });
}

// columns = M^T P. Keeps M in `kept` if that is not null; it may lie over a term of the input.
template <class T>
void add_transposed_product(const Affine<T>& input, std::size_t k, const Segment& segment, const T* P, const Columns<T>& columns,
                            std::size_t r, T* kept) {
  const auto keep = [kept](std::size_t at, const Vec<T>& entries, auto lanes) {
    if (kept != nullptr) store(kept + at, entries, lanes);
  };
  const InputMatrix<T, 1> kept_matrix{{kept}, {T(1)}};
  with_matrix(input, k, segment, [&](const auto& matrix) {
    each_tile<Order::forwards>(segment, [&]<std::size_t kN>(const Tile& tile) {
      each_chunk(r, [&]<std::size_t kR>(std::size_t c) {
        const auto add = [&](const auto& from, const auto& also) {
          add_weighted_rows<kR, kN>(from, tile, P + tile.row * r + c, r, columns.column(c) + tile.column, columns.stride, also);
        };
        if (c > 0 && kept != nullptr)
          add(kept_matrix, [](auto...) {});
        else
          add(matrix, keep);
      });
    });
  });
}

// Calls use(row of the tile, column of the tile, entries of P Q^T, their number, whether a cache line begins there) for the products of the
// kR columns c .. c+kR-1, added to those of earlier columns in `scratch` [kRows,kCols]. kFactors columns are added up first, fewer one by
// one.
template <std::size_t kR, std::size_t kN, bool kIsFirst, class T, class Use>
FL_WIDE_VECTORS void multiply_factors(const Tile& tile, const T* P, std::size_t r, const T* Q, std::size_t stride, const T* scratch,
                                      const Use& use) {
  const Weights<kR, kN, T> weight(P, r);
  each_vector<T>(tile.count, [&](std::size_t j, auto lanes, auto begins_line) {
    Vec<T> q[kR];
#pragma GCC unroll 4
    for (std::size_t c = 0; c < kR; ++c) q[c] = load(Q + c * stride + j);
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kN; ++i) {
      Vec<T> sum = weight.at[i][0] * q[0];
      if constexpr (!kIsFirst && kR < kFactors) sum = load(scratch + i * kCols + j) + sum;
#pragma GCC unroll 4
      for (std::size_t c = 1; c < kR; ++c) sum += weight.at[i][c] * q[c];
      if constexpr (!kIsFirst && kR == kFactors) sum = load(scratch + i * kCols + j) + sum;
      use(i, j, sum, lanes, begins_line);
    }
  });
}

// Calls use as multiply_factors() does, with all columns of the factors: the same bits for the sender's memory and for the
// receiver. `scratch`: [kRows,kCols]
template <std::size_t kN, class T, class Use>
void product_tile(const Tile& tile, const T* P, const Columns<T>& Q, std::size_t r, T* scratch, const Use& use) {
  const auto to_scratch = [scratch](std::size_t i, std::size_t j, const Vec<T>& sum, auto, auto) {
    store(scratch + i * kCols + j, sum, AllLanes<T>{});
  };
  each_chunk(r, [&]<std::size_t kR>(std::size_t c) {
    const auto multiply = [&](const auto& target) {
      const T *left = P + tile.row * r + c, *right = Q.column(c) + tile.column;
      if (c == 0)
        multiply_factors<kR, kN, true>(tile, left, r, right, Q.stride, scratch, target);
      else
        multiply_factors<kR, kN, false>(tile, left, r, right, Q.stride, scratch, target);
    };
    if (c + kR == r)
      multiply(use);
    else
      multiply(to_scratch);
  });
}

// state -= P Q^T. The rows go backwards, because affine_transposed_times() wrote the last ones last.
template <class T>
void subtract_product(const Segment& segment, const T* P, const Columns<T>& Q, std::size_t r, T* scratch, T* state) {
  each_tile<Order::backwards>(segment, [&]<std::size_t kN>(const Tile& tile) {
    product_tile<kN>(tile, P, Q, r, scratch, [&](std::size_t i, std::size_t j, const Vec<T>& sent, auto lanes, auto begins_line) {
      T* const place = state + tile.at(i, j);
      if constexpr (begins_line) __builtin_prefetch(state + tile.next(i, j), 0, 2);  // not for writing, which takes longer
      store(place, load(place, lanes) - sent, lanes);
    });
  });
}

}  // namespace

template <class T>
void affine_times(const Exec& exec, const Affine<T>& input, std::size_t k, const Segment& segment, const T* Q, std::size_t r, T* out) {
  Workspace::Frame frame(*exec.workspace);
  Columns<T> columns(segment.cols, r, frame);
  columns.read(Q, segment.cols, r);
  std::fill_n(out, segment.rows * r, T(0));
  with_matrix(input, k, segment, [&](const auto& matrix) {
    each_tile<Order::backwards>(segment, [&]<std::size_t kN>(const Tile& tile) {
      each_chunk(r, [&]<std::size_t kR>(std::size_t c) {
        add_dot_products<kR, kN>(matrix, tile, columns.column(c) + tile.column, columns.stride, out + tile.row * r + c, r);
      });
    });
  });
}

template <class T>
void affine_transposed_times(const Exec& exec, const Affine<T>& input, std::size_t k, const Segment& segment, const T* P, std::size_t r,
                             const StateWrite<T>& state, T* out) {
  Workspace::Frame frame(*exec.workspace);
  Columns<T> columns(segment.cols, r, frame);
  T* const to = state.rule == StateRule::none ? nullptr : state.out.row(k) + segment.begin;
  T* const kept = state.rule == StateRule::residual ? to : nullptr;
  add_transposed_product(input, k, segment, P, columns, r, kept);
  columns.write(out, segment.cols, r);
  if (state.rule == StateRule::residual) subtract_product(segment, P, columns, r, frame.take<T>(kRows * kCols), to);
  if (state.rule == StateRule::zero_where_sent) std::fill_n(to, segment.size(), T(0));
}

template <class T>
void low_rank_product(const Exec& exec, const Segment& segment, const T* P, const T* Q, std::size_t r, T* out) {
  Workspace::Frame frame(*exec.workspace);
  Columns<T> columns(segment.cols, r, frame);
  columns.read(Q, segment.cols, r);
  T* const scratch = frame.take<T>(kRows * kCols);
  each_tile<Order::forwards>(segment, [&]<std::size_t kN>(const Tile& tile) {
    product_tile<kN>(tile, P, columns, r, scratch, [&](std::size_t i, std::size_t j, const Vec<T>& entries, auto lanes, auto) {
      store(out + tile.at(i, j), entries, lanes);
    });
  });
}

#define FL_INSTANTIATE(T)                                                                                                  \
  template void affine_times(const Exec&, const Affine<T>&, std::size_t, const Segment&, const T*, std::size_t, T*);       \
  template void affine_transposed_times(const Exec&, const Affine<T>&, std::size_t, const Segment&, const T*, std::size_t, \
                                        const StateWrite<T>&, T*);                                                         \
  template void low_rank_product(const Exec&, const Segment&, const T*, const T*, std::size_t, T*);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl::cpu
