// The few AVX2 instructions that the sparse operations use, under the names of lanes512.hpp. Comparisons become bits, one for each lane.
// Absent where the machine's vectors are not those of AVX2: FL_CPU_AVX2 says whether they are there.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__AVX2__) && !defined(__AVX512F__)
#define FL_CPU_AVX2 1
#include <immintrin.h>

namespace fl::cpu {

template <class T>
struct Lanes256;

template <>
struct Lanes256<float> {
  using Vector = __m256;
  using Mask = unsigned;
  static constexpr std::size_t kWidth = 8;
  static constexpr Mask kAll = 0xFF;
  static __m256i vector_mask(std::size_t lanes) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(lanes)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static Vector spread(float x) { return _mm256_set1_ps(x); }
  static Vector load(const float* p) { return _mm256_loadu_ps(p); }
  static Vector load_first(std::size_t lanes, const float* p) { return _mm256_maskload_ps(p, vector_mask(lanes)); }
  static void store_first(std::size_t lanes, float* p, Vector x) { _mm256_maskstore_ps(p, vector_mask(lanes), x); }
  static Mask magnitude_at_least(Mask lanes, Vector x, Vector bound) {
    const Vector magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0F), x);
    return static_cast<Mask>(_mm256_movemask_ps(_mm256_cmp_ps(magnitude, bound, _CMP_GE_OQ))) & lanes;
  }
  // ---- keys: |p| as integers ----
  static __m256i keys(Vector x) { return _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7FFFFFFF)); }
  static __m256i spread_key(std::uint32_t key) { return _mm256_set1_epi32(static_cast<int>(key)); }
  static Mask key_at_least(Mask lanes, __m256i a, __m256i b) {
    const __m256i reached = _mm256_cmpeq_epi32(_mm256_max_epu32(a, b), a);
    return static_cast<Mask>(_mm256_movemask_ps(_mm256_castsi256_ps(reached))) & lanes;
  }
};

template <>
struct Lanes256<double> {
  using Vector = __m256d;
  using Mask = unsigned;
  static constexpr std::size_t kWidth = 4;
  static constexpr Mask kAll = 0xF;
  static __m256i vector_mask(std::size_t lanes) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(static_cast<long long>(lanes)), _mm256_setr_epi64x(0, 1, 2, 3));
  }
  static Vector spread(double x) { return _mm256_set1_pd(x); }
  static Vector load(const double* p) { return _mm256_loadu_pd(p); }
  static Vector load_first(std::size_t lanes, const double* p) { return _mm256_maskload_pd(p, vector_mask(lanes)); }
  static void store_first(std::size_t lanes, double* p, Vector x) { _mm256_maskstore_pd(p, vector_mask(lanes), x); }
  static Mask magnitude_at_least(Mask lanes, Vector x, Vector bound) {
    const Vector magnitude = _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
    return static_cast<Mask>(_mm256_movemask_pd(_mm256_cmp_pd(magnitude, bound, _CMP_GE_OQ))) & lanes;
  }
  static __m256i keys(Vector x) { return _mm256_and_si256(_mm256_castpd_si256(x), _mm256_set1_epi64x(0x7FFFFFFFFFFFFFFF)); }
  static __m256i spread_key(std::uint64_t key) { return _mm256_set1_epi64x(static_cast<long long>(key)); }
  // Comparisons are of signed numbers: a key is never negative, and a bound that is exceeds every key.
  static Mask key_at_least(Mask lanes, __m256i a, __m256i b) {
    const __m256i missed = _mm256_or_si256(_mm256_cmpgt_epi64(b, a), b);
    return ~static_cast<Mask>(_mm256_movemask_pd(_mm256_castsi256_pd(missed))) & lanes;
  }
};

}  // namespace fl::cpu
#endif
