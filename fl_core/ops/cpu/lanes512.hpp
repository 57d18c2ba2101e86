// The few AVX-512 instructions that the sparse operations use, under one name for float and double. Absent where the compiler does not
// target them: FL_CPU_AVX512 says whether they are there.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__)
#define FL_CPU_AVX512 1
#include <immintrin.h>

namespace fl::cpu {

template <class T>
struct Lanes512;

template <>
struct Lanes512<float> {
  using Vector = __m512;
  using Mask = __mmask16;
  static constexpr std::size_t kWidth = 16;
  static constexpr Mask kAll = 0xFFFF;
  static Vector spread(float x) { return _mm512_set1_ps(x); }
  static Vector load(const float* p) { return _mm512_loadu_ps(p); }
  static Vector load_first(std::size_t lanes, const float* p) { return load(static_cast<Mask>((1u << lanes) - 1), p); }
  static Vector load(Mask lanes, const float* p) { return _mm512_maskz_loadu_ps(lanes, p); }
  static void store(float* p, Vector x) { _mm512_storeu_ps(p, x); }
  static void store(Mask lanes, float* p, Vector x) { _mm512_mask_storeu_ps(p, lanes, x); }
  static Vector multiply(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
  static Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  static Mask magnitude_at_least(Mask lanes, Vector x, Vector bound) {
    return _mm512_mask_cmp_ps_mask(lanes, _mm512_abs_ps(x), bound, _CMP_GE_OQ);
  }
  // ---- keys: |p| as integers ----
  static __m512i keys(Vector x) { return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7FFFFFFF)); }
  static __m512i spread_key(std::uint32_t key) { return _mm512_set1_epi32(static_cast<int>(key)); }
  static __m512i iota() { return _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0); }
  static __m512i add_keys(__m512i a, __m512i b) { return _mm512_add_epi32(a, b); }
  static __m512i larger(__m512i a, __m512i b) { return _mm512_maskz_max_epu32(0xFFFF, a, b); }
  static __m512i smaller(__m512i a, __m512i b) { return _mm512_maskz_min_epu32(0xFFFF, a, b); }
  static std::uint32_t first(__m512i x) {
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm512_maskz_extracti32x4_epi32(0xF, x, 0)));
  }
  static __m512i choose(Mask lanes, __m512i otherwise, __m512i there) { return _mm512_mask_mov_epi32(otherwise, lanes, there); }
  static Mask key_above(__m512i a, __m512i b) { return _mm512_cmpgt_epu32_mask(a, b); }
  static Mask key_at_least(Mask lanes, __m512i a, __m512i b) { return _mm512_mask_cmpge_epu32_mask(lanes, a, b); }
  static Mask key_equal(__m512i a, __m512i b) { return _mm512_cmpeq_epi32_mask(a, b); }
};

template <>
struct Lanes512<double> {
  using Vector = __m512d;
  using Mask = __mmask8;
  static constexpr std::size_t kWidth = 8;
  static constexpr Mask kAll = 0xFF;
  static Vector spread(double x) { return _mm512_set1_pd(x); }
  static Vector load(const double* p) { return _mm512_loadu_pd(p); }
  static Vector load_first(std::size_t lanes, const double* p) { return load(static_cast<Mask>((1u << lanes) - 1), p); }
  static Vector load(Mask lanes, const double* p) { return _mm512_maskz_loadu_pd(lanes, p); }
  static void store(double* p, Vector x) { _mm512_storeu_pd(p, x); }
  static void store(Mask lanes, double* p, Vector x) { _mm512_mask_storeu_pd(p, lanes, x); }
  static Vector multiply(Vector a, Vector b) { return _mm512_mul_pd(a, b); }
  static Vector add(Vector a, Vector b) { return _mm512_add_pd(a, b); }
  static Mask magnitude_at_least(Mask lanes, Vector x, Vector bound) {
    return _mm512_mask_cmp_pd_mask(lanes, _mm512_abs_pd(x), bound, _CMP_GE_OQ);
  }
  static __m512i keys(Vector x) { return _mm512_and_si512(_mm512_castpd_si512(x), _mm512_set1_epi64(0x7FFFFFFFFFFFFFFF)); }
  static __m512i spread_key(std::uint64_t key) { return _mm512_set1_epi64(static_cast<long long>(key)); }
  static __m512i iota() { return _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0); }
  static __m512i add_keys(__m512i a, __m512i b) { return _mm512_add_epi64(a, b); }
  static __m512i larger(__m512i a, __m512i b) { return _mm512_maskz_max_epu64(0xFF, a, b); }
  static __m512i smaller(__m512i a, __m512i b) { return _mm512_maskz_min_epu64(0xFF, a, b); }
  static std::uint64_t first(__m512i x) {
    return static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm512_maskz_extracti32x4_epi32(0xF, x, 0)));
  }
  static __m512i choose(Mask lanes, __m512i otherwise, __m512i there) { return _mm512_mask_mov_epi64(otherwise, lanes, there); }
  static Mask key_above(__m512i a, __m512i b) { return _mm512_cmpgt_epu64_mask(a, b); }
  static Mask key_at_least(Mask lanes, __m512i a, __m512i b) { return _mm512_mask_cmpge_epu64_mask(lanes, a, b); }
  static Mask key_equal(__m512i a, __m512i b) { return _mm512_cmpeq_epi64_mask(a, b); }
};

// The first `count` lanes, all of them from kWidth on.
template <class T>
[[nodiscard]] inline typename Lanes512<T>::Mask first_lanes(std::size_t count) {
  return static_cast<typename Lanes512<T>::Mask>(count >= Lanes512<T>::kWidth ? ~0u : (1u << count) - 1);
}

// Every lane = join of all lanes, for a join that is associative and commutative.
template <class T, class Join>
[[nodiscard]] inline __m512i join_lanes(__m512i x, Join join) {
  x = join(x, _mm512_maskz_shuffle_i64x2(0xFF, x, x, 0x4E));
  x = join(x, _mm512_maskz_shuffle_i64x2(0xFF, x, x, 0xB1));
  x = join(x, _mm512_maskz_permutex_epi64(0xFF, x, 0x4E));
  if constexpr (sizeof(T) == sizeof(float)) x = join(x, _mm512_maskz_shuffle_epi32(0xFFFF, x, _MM_PERM_BADC));
  return join(x, sizeof(T) == sizeof(float) ? _mm512_maskz_shuffle_epi32(0xFFFF, x, _MM_PERM_CDAB)
                                            : _mm512_maskz_shuffle_epi32(0xFFFF, x, _MM_PERM_BADC));
}

}  // namespace fl::cpu
#endif
