#include "clients/nn/packed_product.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "clients/nn/register_tile.hpp"
#include "clients/nn/tiles.hpp"
#include "clients/nn/transpose.hpp"

namespace fl::nn::packed {

namespace {

constexpr std::size_t kTermsOfBlock = 256;  // products of a sum between two visits to memory
constexpr std::size_t kPanelsOfBlock = 11;  // of B, in the second-level cache
constexpr std::size_t kRowsTogether = 64;   // rows of A that are packed at once

template <class T>
constexpr std::size_t kWidth = kTileVectors* kLanes<T>;  // of a panel

// Where the terms of a panel begin.
template <class T>
constexpr std::array<std::uint32_t, kTermsOfBlock> kOffsets = [] {
  std::array<std::uint32_t, kTermsOfBlock> offsets{};
  for (std::size_t l = 0; l < kTermsOfBlock; ++l) offsets[l] = static_cast<std::uint32_t>(l * kWidth<T>);
  return offsets;
}();

constexpr std::size_t kTurnedTerms = 4 * kTermsOfBlock;  // of rows that are turned at once

// Numbers that a block of panels needs, or the turned rows of a product with few rows, which are more where vectors are short.
template <class T>
constexpr std::size_t kRoomOfPanels = std::max(kPanelsOfBlock* kWidth<T>* kTermsOfBlock, kRowsTogether* kTurnedTerms);

// Memory of this thread for a block's factors.
template <class T>
struct Room {
  std::unique_ptr<T[]> rows{new T[2 * kRowsTogether * kTermsOfBlock]}, panels{new T[kRoomOfPanels<T>]};
  static Room& get() {
    thread_local Room room;
    return room;
  }
};

template <class T>
std::size_t panels_of(std::size_t n) {
  return (n + kWidth<T> - 1) / kWidth<T>;
}

// Packs columns [first, first + kWidth) of `terms` rows of op(B), whose entry (l, j) is B[l*bl + j*bj]; zeros after the last column.
template <class T>
void pack_panel(std::size_t terms, std::size_t n, const T* B, std::size_t bl, std::size_t bj, std::size_t first, T* to) {
  const std::size_t width = std::min(kWidth<T>, n - first);
  const T* from = B + first * bj;
  if (bj == 1 && width == kWidth<T>) {
    for (std::size_t l = 0; l < terms; ++l)
#pragma GCC unroll 3
      for (int v = 0; v < kTileVectors; ++v)
        store(to + l * kWidth<T> + static_cast<std::size_t>(v) * kLanes<T>, load(from + l * bl + static_cast<std::size_t>(v) * kLanes<T>));
    return;
  }
  if (bl == 1) {
    for (std::size_t first_lane = 0; first_lane < kWidth<T>; first_lane += kLanes<T>) {
      T* at = to + first_lane;
      const std::size_t columns = std::clamp<std::size_t>(width, first_lane, first_lane + kLanes<T>) - first_lane;
      for_each_column(
          from + first_lane * bj, bj, columns, terms, [&at](Vec<T> v) __attribute__((always_inline)) {
            store(at, v);
            at += kWidth<T>;
          });
    }
    return;
  }
  for (std::size_t l = 0; l < terms; ++l)
    for (std::size_t j = 0; j < kWidth<T>; ++j) to[l * kWidth<T> + j] = j < width ? from[l * bl + j * bj] : T(0);
}

// Packs `count` rows of A' as tiles read them: pieces of [term, row].
template <class T>
void pack_rows(std::size_t count, std::size_t terms, const T* A, std::size_t ai, std::size_t al, T* to) {
  if (ai == 1 && count % kTileRows == 0) {  // terms are apart, often by a power of two: each is read once
    for (std::size_t l = 0; l < terms; ++l)
      for (std::size_t r = 0; r < count; r += kTileRows) std::memcpy(to + r * terms + l * kTileRows, A + l * al + r, kTileRows * sizeof(T));
    return;
  }
  evenly<kTileRows>(count, [&]<int kR>(std::size_t first) {
    T* piece = to + first * terms;
    const T* from = A + first * ai;
    if (ai == 1) {
      for (std::size_t l = 0; l < terms; ++l) std::memcpy(piece + l * kR, from + l * al, kR * sizeof(T));
      return;
    }
    std::size_t l = 0;
    if constexpr (kR == kTileRows)
      for (; al == 1 && l + kLanes<T> <= terms; l += kLanes<T>, piece += kR * kLanes<T>) {
        Vec<T> v[kR];
#pragma GCC unroll 8
        for (int r = 0; r < kR; ++r) v[r] = load(from + static_cast<std::size_t>(r) * ai + l);
        transpose_rows<T, kR>(v);
#pragma GCC unroll 8
        for (int r = 0; r < kR; ++r) store(piece + static_cast<std::size_t>(r) * kLanes<T>, v[r]);
      }
    for (; l < terms; ++l, piece += kR)
#pragma GCC unroll 8
      for (int r = 0; r < kR; ++r) piece[r] = from[static_cast<std::size_t>(r) * ai + l * al];
  });
}

// kR packed rows times one panel; C is where they meet, `width` columns of it.
template <class T, int kR>
void multiply_panel(std::size_t terms, const T* rows, const T* panel, std::size_t width, bool add, T* C, std::size_t ldc) {
  constexpr std::size_t kPlaces[] = {0, kLanes<T>, 2 * kLanes<T>};
  static_assert(kTileVectors == 3);
  const TileTerms<T> terms_of{terms, rows, panel, kOffsets<T>.data()};
  if (width % kLanes<T> == 0) return register_tiles<T, kR>(terms_of, width / kLanes<T>, kPlaces, {C, ldc, add, nullptr}, kPlaces);
  T whole[kR * kWidth<T>] = {};
  register_tiles<T, kR>(terms_of, (width + kLanes<T> - 1) / kLanes<T>, kPlaces, {whole, kWidth<T>, false, nullptr}, kPlaces);
  for (std::size_t r = 0; r < kR; ++r)
    for (std::size_t j = 0; j < width; ++j) C[r * ldc + j] = add ? C[r * ldc + j] + whole[r * kWidth<T> + j] : whole[r * kWidth<T> + j];
}

// Rows of A' [m, terms] times some panels.
template <class T>
void multiply_block(std::size_t m, std::size_t n, std::size_t terms, const T* A, std::size_t ai, std::size_t al, const T* panels, bool add,
                    T* C, std::size_t ldc) {
  T* rows = Room<T>::get().rows.get();
  for (std::size_t i = 0; i < m; i += kRowsTogether) {
    const std::size_t count = std::min(kRowsTogether, m - i);
    pack_rows(count, terms, A + i * ai, ai, al, rows);
    for (std::size_t first = 0; first < n; first += kWidth<T>)
      evenly<kTileRows>(count, [&]<int kR>(std::size_t r) {
        multiply_panel<T, kR>(terms, rows + r * terms, panels + first * terms, std::min(kWidth<T>, n - first), add,
                              C + (i + r) * ldc + first, ldc);
      });
  }
}

// to [n,stride] from [m,n], zeros after the last of m columns; in squares whose rows and columns both stay in the first-level cache.
template <class T>
void transpose(std::size_t m, std::size_t n, const T* from, std::size_t ldf, std::size_t stride, T* to) {
  constexpr std::size_t kSide = 16;
  for (std::size_t j = 0; j < n; j += kSide)
    for (std::size_t i = 0; i < stride; ++i)
      for (std::size_t l = j; l < std::min(n, j + kSide); ++l) to[l * stride + i] = i < m ? from[i * ldf + l] : T(0);
}

// Products with fewer columns than a vector has numbers. If terms of A' are adjacent, vectors run along them.
template <class T>
void multiply_along_terms(std::size_t m, std::size_t n, std::size_t k, const T* A, std::size_t lda, const T* B, std::size_t bl,
                          std::size_t bj, bool add, T* C, std::size_t ldc) {
  T columns[kLanes<T> * kTermsOfBlock];
  for (std::size_t l = 0; l < k; l += kTermsOfBlock) {
    const std::size_t terms = std::min(kTermsOfBlock, k - l);
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t i = 0; i < terms; ++i) columns[j * terms + i] = B[(l + i) * bl + j * bj];
    tiles::multiply_transposed(m, n, terms, A + l, lda, columns, terms, add || l > 0, C, ldc);
  }
}
// Otherwise rows of A' are adjacent, and the transpose of the product has them as columns.
template <class T>
void multiply_turned(std::size_t m, std::size_t n, std::size_t k, const T* A, std::size_t al, const T* B, std::size_t bl, std::size_t bj,
                     bool add, T* C, std::size_t ldc) {
  constexpr std::size_t kPiece = kPanelsOfBlock * kWidth<T>;
  T turned[kLanes<T> * kPiece];
  for (std::size_t i = 0; i < m; i += kPiece) {
    const std::size_t count = std::min(kPiece, m - i);
    multiply(n, count, k, B, bj, bl, Op::plain, A + i, al, false, turned, kPiece);
    for (std::size_t r = 0; r < count; ++r)
      for (std::size_t j = 0; j < n; ++j) {
        T& to = C[(i + r) * ldc + j];
        to = add ? to + turned[j * kPiece + r] : turned[j * kPiece + r];
      }
  }
}

}  // namespace

template <class T>
std::size_t panels_size(std::size_t k, std::size_t n) {
  return k * panels_of<T>(n) * kWidth<T>;
}

template <class T>
void pack_panels(Op op_b, std::size_t k, std::size_t n, const T* B, std::size_t ldb, T* panels) {
  const std::size_t bl = op_b == Op::plain ? ldb : 1, bj = op_b == Op::plain ? 1 : ldb;
  for (std::size_t l = 0; l < k; l += kTermsOfBlock) {
    const std::size_t terms = std::min(kTermsOfBlock, k - l);
    for (std::size_t first = 0; first < n; first += kWidth<T>, panels += terms * kWidth<T>)
      pack_panel(terms, n, B + l * bl, bl, bj, first, panels);
  }
}

template <class T>
void multiply_panels(std::size_t m, std::size_t n, std::size_t k, const T* A, std::size_t ai, std::size_t al, const T* panels, bool add,
                     T* C, std::size_t ldc) {
  for (std::size_t l = 0; l < k; l += kTermsOfBlock) {
    const std::size_t terms = std::min(kTermsOfBlock, k - l);
    multiply_block(m, n, terms, A + l * al, ai, al, panels, add || l > 0, C, ldc);
    panels += panels_size<T>(terms, n);
  }
}

template <class T>
void multiply(std::size_t m, std::size_t n, std::size_t k, const T* A, std::size_t ai, std::size_t al, Op op_b, const T* B, std::size_t ldb,
              bool add, T* C, std::size_t ldc) {
  const std::size_t bl = op_b == Op::plain ? ldb : 1, bj = op_b == Op::plain ? 1 : ldb;
  if (n < kLanes<T> && al == 1) return multiply_along_terms(m, n, k, A, ai, B, bl, bj, add, C, ldc);
  if (n < kLanes<T> && ai == 1 && m >= kLanes<T>) return multiply_turned(m, n, k, A, al, B, bl, bj, add, C, ldc);
  T* panels = Room<T>::get().panels.get();
  constexpr std::size_t kColumns = kPanelsOfBlock * kWidth<T>;
  for (std::size_t l = 0; l < k; l += kTermsOfBlock)
    for (std::size_t j = 0; j < n; j += kColumns) {
      const std::size_t terms = std::min(kTermsOfBlock, k - l), columns = std::min(kColumns, n - j);
      pack_panels(op_b, terms, columns, B + l * bl + j * bj, ldb, panels);
      multiply_block(m, columns, terms, A + l * al, ai, al, panels, add || l > 0, C + j, ldc);
    }
}

template <class T>
bool fills_vectors(std::size_t m) {
  const std::size_t whole = (m + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
  return whole <= kRowsTogether && 4 * m >= 3 * whole;
}

template <class T>
void multiply_few_rows(std::size_t m, std::size_t n, std::size_t k, const T* A, std::size_t lda, const T* B, std::size_t ldb, bool add,
                       T* C, std::size_t ldc) {
  constexpr std::size_t kTerms = kTurnedTerms, kRows = 2 * kTermsOfBlock;  // of the turned A, and of the turned C
  const std::size_t whole = (m + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
  T *turned = Room<T>::get().panels.get(), *sums = Room<T>::get().rows.get();
  for (std::size_t j = 0; j < n; j += kRows) {
    const std::size_t rows = std::min(kRows, n - j);
    for (std::size_t l = 0; l < k; l += kTerms) {
      const std::size_t terms = std::min(kTerms, k - l);
      transpose(m, terms, A + l, lda, whole, turned);
      tiles::multiply(rows, whole, terms, B + j * ldb + l, ldb, std::size_t{1}, turned, whole, l > 0, sums, whole);
    }
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t r = 0; r < rows; ++r) C[i * ldc + j + r] = add ? C[i * ldc + j + r] + sums[r * whole + i] : sums[r * whole + i];
  }
}

template bool fills_vectors<float>(std::size_t);
template bool fills_vectors<double>(std::size_t);
template void multiply_few_rows(std::size_t, std::size_t, std::size_t, const float*, std::size_t, const float*, std::size_t, bool, float*,
                                std::size_t);
template void multiply_few_rows(std::size_t, std::size_t, std::size_t, const double*, std::size_t, const double*, std::size_t, bool,
                                double*, std::size_t);
template std::size_t panels_size<float>(std::size_t, std::size_t);
template std::size_t panels_size<double>(std::size_t, std::size_t);
template void pack_panels(Op, std::size_t, std::size_t, const float*, std::size_t, float*);
template void pack_panels(Op, std::size_t, std::size_t, const double*, std::size_t, double*);
template void multiply_panels(std::size_t, std::size_t, std::size_t, const float*, std::size_t, std::size_t, const float*, bool, float*,
                              std::size_t);
template void multiply_panels(std::size_t, std::size_t, std::size_t, const double*, std::size_t, std::size_t, const double*, bool, double*,
                              std::size_t);
template void multiply(std::size_t, std::size_t, std::size_t, const float*, std::size_t, std::size_t, Op, const float*, std::size_t, bool,
                       float*, std::size_t);
template void multiply(std::size_t, std::size_t, std::size_t, const double*, std::size_t, std::size_t, Op, const double*, std::size_t, bool,
                       double*, std::size_t);

}  // namespace fl::nn::packed
