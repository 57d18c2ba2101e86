#include "clients/nn/tiles.hpp"

#include <algorithm>

#include "clients/nn/register_tile.hpp"

namespace fl::nn::tiles {

namespace {

constexpr std::size_t kFactorBytes = 1 << 20;  // of B, in the second-level cache

// kR rows of C and kV vectors of its columns; of the last vector only the last `fresh` entries are wanted.
template <class T, int kR, int kV>
[[gnu::noinline]] void tile(std::size_t k, const T* A, std::size_t ai, std::size_t al, const T* B, std::size_t ldb, bool add, T* C,
                            std::size_t ldc, std::size_t fresh) {
  Vec<T> sum[kR][kV] = {};
  for (std::size_t l = 0; l < k; ++l, A += al, B += ldb) {
    Vec<T> b[kV];
#pragma GCC unroll 3
    for (int v = 0; v < kV; ++v) b[v] = load(B + static_cast<std::size_t>(v) * kLanes<T>);
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 3
      for (int v = 0; v < kV; ++v) sum[r][v] += A[static_cast<std::size_t>(r) * ai] * b[v];
  }
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r, C += ldc)
#pragma GCC unroll 3
    for (int v = 0; v < kV; ++v) {
      T* to = C + static_cast<std::size_t>(v) * kLanes<T>;
      if (v + 1 < kV || fresh == kLanes<T>) {
        store(to, add ? load(to) + sum[r][v] : sum[r][v]);
        continue;
      }
      const std::size_t old = kLanes<T> - fresh;
      T last[kLanes<T>];
      store(last, sum[r][v]);
      for (std::size_t j = old; j < kLanes<T>; ++j) to[j] = add ? to[j] + last[j] : last[j];
    }
}

// kR rows of A times kV rows of B, vectors along k.
template <class T, int kR, int kV>
[[gnu::noinline]] void tile_of_rows(std::size_t k, const T* A, std::size_t lda, const T* B, std::size_t ldb, bool add, T* C,
                                    std::size_t ldc) {
  Vec<T> sum[kR][kV] = {};
  std::size_t l = 0;
  const auto step = [&](auto&& take) __attribute__((always_inline)) {
    Vec<T> b[kV];
#pragma GCC unroll 3
    for (int v = 0; v < kV; ++v) b[v] = take(B + static_cast<std::size_t>(v) * ldb + l);
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r) {
      const Vec<T> a = take(A + static_cast<std::size_t>(r) * lda + l);
#pragma GCC unroll 3
      for (int v = 0; v < kV; ++v) sum[r][v] += a * b[v];
    }
  };
  for (; l + kLanes<T> <= k; l += kLanes<T>) step([](const T* p) { return load(p); });
  if (l < k) step([&](const T* p) { return load_some(p, k - l); });
  constexpr int kLength = static_cast<int>(kLanes<T>), kSums = kR * kV;
  T sums[(kSums + kLength - 1) / kLength * kLength];
#pragma GCC unroll 8
  for (int first = 0; first < kSums; first += kLength) {
    Vec<T> some[kLength];
#pragma GCC unroll 16
    for (int i = 0; i < kLength; ++i) some[i] = first + i < kSums ? sum[(first + i) / kV][(first + i) % kV] : Vec<T>{};
    store(sums + first, sums_of_lanes<T>(some));
  }
  for (int r = 0; r < kR; ++r, C += ldc)
    for (int v = 0; v < kV; ++v) C[v] = add ? C[v] + sums[r * kV + v] : sums[r * kV + v];
}

}  // namespace

template <class T>
bool has_columns(std::size_t n) {
  return n >= kLanes<T>;
}

template <class T>
void multiply(std::size_t m, std::size_t n, std::size_t k, const T* A, std::size_t ai, std::size_t al, const T* B, std::size_t ldb,
              bool add, T* C, std::size_t ldc) {
  const auto at = [&]<int kR, int kV>(std::size_t row, std::size_t first, std::size_t fresh) {
    tile<T, kR, kV>(k, A + row * ai, ai, al, B + first, ldb, add, C + row * ldc + first, ldc, fresh);
  };
  const auto each_column = [&](const auto& f) {
    evenly<kTileVectors>(n / kLanes<T>, [&]<int kV>(std::size_t v) { f.template operator()<kV>(v * kLanes<T>, kLanes<T>); });
    // The remaining columns are the end of one more vector, whose beginning is done already.
    if (n % kLanes<T> != 0) f.template operator()<1>(n - kLanes<T>, n % kLanes<T>);
  };
  const auto each_row = [&](const auto& f) { evenly<kTileRows>(m, [&]<int kR>(std::size_t row) { f.template operator()<kR>(row); }); };
  // The larger of C and B goes by once, along its rows or in panels; the other stays in cache.
  if (m > k && k * n * sizeof(T) <= kFactorBytes)
    each_row([&]<int kR>(std::size_t row) {
      each_column([&]<int kV>(std::size_t first, std::size_t fresh) { at.template operator()<kR, kV>(row, first, fresh); });
    });
  else
    each_column([&]<int kV>(std::size_t first, std::size_t fresh) {
      each_row([&]<int kR>(std::size_t row) { at.template operator()<kR, kV>(row, first, fresh); });
    });
}

template <class T>
void multiply_transposed(std::size_t m, std::size_t n, std::size_t k, const T* A, std::size_t lda, const T* B, std::size_t ldb, bool add,
                         T* C, std::size_t ldc) {
  evenly<kTileVectors>(n, [&]<int kV>(std::size_t column) {
    evenly<kTileRows>(m, [&]<int kR>(std::size_t row) {
      tile_of_rows<T, kR, kV>(k, A + row * lda, lda, B + column * ldb, ldb, add, C + row * ldc + column, ldc);
    });
  });
}

template bool has_columns<float>(std::size_t);
template bool has_columns<double>(std::size_t);
template void multiply(std::size_t, std::size_t, std::size_t, const float*, std::size_t, std::size_t, const float*, std::size_t, bool,
                       float*, std::size_t);
template void multiply(std::size_t, std::size_t, std::size_t, const double*, std::size_t, std::size_t, const double*, std::size_t, bool,
                       double*, std::size_t);
template void multiply_transposed(std::size_t, std::size_t, std::size_t, const float*, std::size_t, const float*, std::size_t, bool, float*,
                                  std::size_t);
template void multiply_transposed(std::size_t, std::size_t, std::size_t, const double*, std::size_t, const double*, std::size_t, bool,
                                  double*, std::size_t);

}  // namespace fl::nn::tiles
