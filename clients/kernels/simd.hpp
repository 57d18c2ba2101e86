// Vectors of doubles of the instruction set's width, written with the compilers' vector extensions.
//
// Data may be stored as float or double; arithmetic is always double, so a float run rounds only stored values. Vectors wider than the
// machine's are emulated very slowly, hence the width follows the target of the translation unit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace fl::kernels {

#if defined(__AVX512F__)
inline constexpr int kLanes = 8;
#elif defined(__AVX__)
inline constexpr int kLanes = 4;
#else
inline constexpr int kLanes = 2;
#endif

typedef double VecD __attribute__((vector_size(kLanes * sizeof(double))));
typedef float VecF __attribute__((vector_size(kLanes * sizeof(float))));
typedef std::int64_t VecI __attribute__((vector_size(kLanes * sizeof(std::int64_t))));

[[gnu::always_inline]] inline VecD load(const double* p) {
  VecD v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
// Loads floats as doubles. An intrinsic is used because g++ 12 makes four instructions of the conversion. It is masked because the plain
// form starts from an intentionally undefined register, about which g++ warns.
[[gnu::always_inline]] inline VecD load(const float* p) {
#if defined(__AVX512F__)
  return (VecD)_mm512_maskz_cvtps_pd(0xFF, _mm256_loadu_ps(p));
#else
  VecF v;
  std::memcpy(&v, p, sizeof v);
  return __builtin_convertvector(v, VecD);
#endif
}
// Returns x[index[i]] for the kLanes indices from `index` on. It loads one number at a time: the gather instruction of AVX-512 takes 1.4 to
// 2 times as long on Zen 4, and 4 times as long on Intel processors whose microcode mitigates gather data sampling. Pairs are joined,
// because g++ 12 writes a vector of single numbers as a chain of masked broadcasts.
template <class X, class Index>
[[gnu::always_inline]] inline VecD gather(const X* x, const Index* index) {
  typedef double Pair __attribute__((vector_size(2 * sizeof(double))));
  const auto pair = [&](int i) { return Pair{static_cast<double>(x[index[i]]), static_cast<double>(x[index[i + 1]])}; };
#if defined(__AVX__)
  const auto four = [&](int i) { return _mm256_insertf128_pd(_mm256_castpd128_pd256(pair(i)), pair(i + 2), 1); };
#endif
#if defined(__AVX512F__)
  return (VecD)_mm512_maskz_insertf64x4(0xFF, _mm512_castpd256_pd512(four(0)), four(4), 1);
#elif defined(__AVX__)
  return (VecD)four(0);
#else
  return pair(0);
#endif
}
[[gnu::always_inline]] inline void store(double* p, VecD v) { std::memcpy(p, &v, sizeof v); }
[[gnu::always_inline]] inline void store(float* p, VecD v) {
  const VecF f = __builtin_convertvector(v, VecF);
  std::memcpy(p, &f, sizeof f);
}
[[gnu::always_inline]] inline VecD broadcast(double value) { return VecD{} + value; }
// Returns 0, 1, 2, ...
[[gnu::always_inline]] inline VecI lane_numbers() {
  VecI v{};
  for (int i = 0; i < kLanes; ++i) v[i] = i;
  return v;
}
// Returns n rounded up to a multiple of kLanes.
constexpr int padded(int n) { return (n + kLanes - 1) / kLanes * kLanes; }

// Returns the sum of the lanes, adding halves first.
[[gnu::always_inline]] inline double sum(VecD v) {
#if defined(__AVX512F__)
  const auto four = __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
  const auto two = __builtin_shufflevector(four, four, 0, 1) + __builtin_shufflevector(four, four, 2, 3);
  return two[0] + two[1];
#elif defined(__AVX__)
  const auto two = __builtin_shufflevector(v, v, 0, 1) + __builtin_shufflevector(v, v, 2, 3);
  return two[0] + two[1];
#else
  return v[0] + v[1];
#endif
}

}  // namespace fl::kernels
