// Sums of products that stay in registers: some rows of packed numbers times some vectors that lie anywhere in a block of memory.
//
// Each sum is one chain in the order of its terms, so bits depend neither on the length of vectors nor on how sums are shared among tiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "clients/nn/vectors.hpp"

namespace fl::nn {

// Calls f<count>() for a count of 1 to kMost that is known only when it runs.
template <int kMost, class F, int... kCounts>
void call_with_count(std::size_t count, const F& f, std::integer_sequence<int, kCounts...>) {
  ((count == std::size_t{kCounts + 1} ? f.template operator()<kCounts + 1>() : void()), ...);
}
// Calls f<count>(first) for pieces of `total`, as few of at most kMost as there can be, of nearly equal sizes.
template <int kMost, class F>
void evenly(std::size_t total, const F& f) {
  const std::size_t pieces = (total + kMost - 1) / kMost;
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    const std::size_t first = total * piece / pieces, count = total * (piece + 1) / pieces - first;
    call_with_count<kMost>(
        count, [&]<int kCount>() { f.template operator()<kCount>(first); }, std::make_integer_sequence<int, kMost>());
  }
}

// The terms of a tile's sums: term l multiplies packed numbers [l,rows] by the vectors at x + offset[l] + at[v].
template <class T>
struct TileTerms {
  std::size_t count;
  const T* packed;
  const T* x;
  const std::uint32_t* offset;
};

// Where the sums go: row r and vector v at out + r*row + to[v]. Added to what is there if `add`, else to start[r] unless null.
template <class T>
struct TileOutput {
  T* out;
  std::size_t row;
  bool add;
  const T* start;
};

template <class T, int kR, int kV>
[[gnu::noinline]] void register_tile(const TileTerms<T>& terms, const std::size_t* at, const TileOutput<T>& output, const std::size_t* to) {
  Vec<T> sum[kR][kV] = {};
  const T* x[kV];
  for (int v = 0; v < kV; ++v) x[v] = terms.x + at[v];
  const T* a = terms.packed;
  const std::uint32_t *offset = terms.offset, *end = offset + terms.count;
  for (; offset != end; ++offset, a += kR) {
    const std::size_t shift = *offset;
    Vec<T> b[kV];
#pragma GCC unroll 3
    for (int v = 0; v < kV; ++v) b[v] = load(x[v] + shift);
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 3
      for (int v = 0; v < kV; ++v) sum[r][v] += a[r] * b[v];
  }
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r) {
    T* row = output.out + static_cast<std::size_t>(r) * output.row;
    const T start = output.start == nullptr ? T(0) : output.start[r];
#pragma GCC unroll 3
    for (int v = 0; v < kV; ++v) store(row + to[v], sum[r][v] + (output.add ? load(row + to[v]) : Vec<T>{} + start));
  }
}

// All tiles of kR rows and `vectors` vectors.
template <class T, int kR>
void register_tiles(const TileTerms<T>& terms, std::size_t vectors, const std::size_t* at, const TileOutput<T>& output,
                    const std::size_t* to) {
  std::size_t v = 0;
  for (; v + kTileVectors <= vectors; v += kTileVectors) register_tile<T, kR, kTileVectors>(terms, at + v, output, to + v);
  if (vectors - v == 2) register_tile<T, kR, 2>(terms, at + v, output, to + v);
  if (vectors - v == 1) register_tile<T, kR, 1>(terms, at + v, output, to + v);
}

}  // namespace fl::nn
