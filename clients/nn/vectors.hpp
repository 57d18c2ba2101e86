// Vectors of the machine's width in the compiler's own types. Loads and stores need no alignment.
#pragma once

#include <cstddef>
#include <cstring>
#include <utility>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace fl::nn {

#if defined(__AVX512F__)
inline constexpr std::size_t kVectorBytes = 64;
inline constexpr int kTileRows = 8;  // with 3 vectors, 24 sums in 32 registers
#elif defined(__AVX__)
inline constexpr std::size_t kVectorBytes = 32;
inline constexpr int kTileRows = 4;
#else
inline constexpr std::size_t kVectorBytes = 16;
inline constexpr int kTileRows = 4;
#endif
inline constexpr int kTileVectors = 3;

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vec = typename VectorOf<T>::type;
template <class T>
inline constexpr std::size_t kLanes = kVectorBytes / sizeof(T);

template <class T>
[[gnu::always_inline]] inline Vec<T> load(const T* p) {
  Vec<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
// Returns the first `count` entries, followed by zeros.
template <class T>
[[gnu::always_inline]] inline Vec<T> load_some(const T* p, std::size_t count) {
#if defined(__AVX512F__)
  const auto mask = static_cast<unsigned>((1u << count) - 1);
  if constexpr (sizeof(T) == 4)
    return (Vec<T>)_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), p);
  else
    return (Vec<T>)_mm512_maskz_loadu_pd(static_cast<__mmask8>(mask), p);
#endif
  Vec<T> v = {};
  std::memcpy(&v, p, count * sizeof(T));
  return v;
}
template <class T>
[[gnu::always_inline]] inline void store(T* p, Vec<T> v) {
  std::memcpy(p, &v, sizeof v);
}
// Stores the first `count` entries.
template <class T>
[[gnu::always_inline]] inline void store_some(T* p, Vec<T> v, std::size_t count) {
#if defined(__AVX512F__)
  const auto mask = static_cast<unsigned>((1u << count) - 1);
  if constexpr (sizeof(T) == 4)
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>(mask), (__m512)v);
  else
    _mm512_mask_storeu_pd(p, static_cast<__mmask8>(mask), (__m512d)v);
#else
  std::memcpy(p, &v, count * sizeof(T));
#endif
}
// Returns the vector whose entry l is entry l + shift.
template <std::size_t kShift, class V, std::size_t... kLane>
[[gnu::always_inline]] inline V shifted(V v, std::index_sequence<kLane...>) {
  return __builtin_shufflevector(v, v, ((kLane + kShift) % sizeof...(kLane))...);
}
// Returns the sum of a vector's entries in a tree: halves are added until one entry is left.
template <class T, std::size_t kHalf = kLanes<T> / 2>
[[gnu::always_inline]] inline T sum_of_lanes(Vec<T> v) {
  if constexpr (kHalf > 0)
    return sum_of_lanes<T, kHalf / 2>(v + shifted<kHalf>(v, std::make_index_sequence<kLanes<T>>()));
  else
    return v[0];
}

// Returns pieces of kHalf entries: those of the first vector's pieces of 2 kHalf entries and then the second's, each with its halves added.
template <std::size_t kHalf, class V, std::size_t... kLane>
[[gnu::always_inline]] inline V folded(V a, V b, std::index_sequence<kLane...>) {
  constexpr std::size_t kLength = sizeof...(kLane);
  constexpr auto at = [](std::size_t lane) {
    const std::size_t within = lane % (kLength / 2);
    return lane / (kLength / 2) * kLength + within / kHalf * 2 * kHalf + within % kHalf;
  };
  return __builtin_shufflevector(a, b, at(kLane)...) + __builtin_shufflevector(a, b, (at(kLane) + kHalf)...);
}
// Computes the sums of kLanes<T> vectors' entries, each as sum_of_lanes() does; v is overwritten.
template <class T>
[[gnu::always_inline]] inline Vec<T> sums_of_lanes(Vec<T>* v) {
  const auto fold = [v]<std::size_t kHalf>(const auto& self, std::integral_constant<std::size_t, kHalf>) __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kHalf; ++i) v[i] = folded<kHalf>(v[2 * i], v[2 * i + 1], std::make_index_sequence<kLanes<T>>());
    if constexpr (kHalf > 1) self(self, std::integral_constant<std::size_t, kHalf / 2>());
  };
  fold(fold, std::integral_constant<std::size_t, kLanes<T> / 2>());
  return v[0];
}

}  // namespace fl::nn
