// Vectors of the machine's width in the compilers' own types: wider ones are emulated, which takes many times as long. Loads and stores
// need no alignment.
//
// A sum over lanes belongs to the result, so its lanes are the same on every instruction set: those of 64 bytes, which kParts vectors hold.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include "fl_core/ops/cpu/lanes256.hpp"
#include "fl_core/ops/cpu/lanes512.hpp"

namespace fl::cpu {

inline constexpr std::size_t kLineBytes = 64;
#if defined(__AVX512F__)
inline constexpr std::size_t kVectorBytes = 64;
#elif defined(__AVX__)
inline constexpr std::size_t kVectorBytes = 32;
#else
inline constexpr std::size_t kVectorBytes = 16;
#endif
inline constexpr std::size_t kParts = kLineBytes / kVectorBytes;

template <class T>
inline constexpr std::size_t kVector = kVectorBytes / sizeof(T);
template <class T>
inline constexpr std::size_t kLine = kLineBytes / sizeof(T);
template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vec = typename VectorOf<T>::type;

// The number of entries of a vector that exist: all of them, known to the compiler, or fewer at the end of a row.
template <class T>
using AllLanes = std::integral_constant<std::size_t, kVector<T>>;

template <class T>
[[gnu::always_inline]] inline Vec<T> load(const T* p) {
  Vec<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
[[gnu::always_inline]] inline void store(T* p, const Vec<T>& v) {
  std::memcpy(p, &v, sizeof v);
}

// Returns the first `lanes` entries and zeros, and the way back. Copies of an unknown length cost more than all else in short rows.
template <class T>
[[gnu::always_inline]] inline Vec<T> load(const T* p, std::size_t lanes) {
#if defined(FL_CPU_AVX512)
  return Lanes512<T>::load(first_lanes<T>(lanes), p);
#elif defined(FL_CPU_AVX2)
  return (Vec<T>)Lanes256<T>::load_first(lanes, p);
#else
  T entries[kVector<T>] = {};
  for (std::size_t l = 0; l < lanes; ++l) entries[l] = p[l];
  return load(entries);
#endif
}
template <class T>
[[gnu::always_inline]] inline void store(T* p, const Vec<T>& v, std::size_t lanes) {
#if defined(FL_CPU_AVX512)
  Lanes512<T>::store(first_lanes<T>(lanes), p, v);
#elif defined(FL_CPU_AVX2)
  Lanes256<T>::store_first(lanes, p, (typename Lanes256<T>::Vector)v);
#else
  for (std::size_t l = 0; l < lanes; ++l) p[l] = v[l];
#endif
}
template <class T>
[[gnu::always_inline]] inline Vec<T> load(const T* p, AllLanes<T>) {
  return load(p);
}
template <class T>
[[gnu::always_inline]] inline void store(T* p, const Vec<T>& v, AllLanes<T>) {
  store(p, v);
}

// Calls step(first entry, number of entries, whether a cache line begins there) for the vectors of a run of entries.
template <class T, class Step>
[[gnu::always_inline]] inline void each_vector(std::size_t count, const Step& step) {
  std::size_t j = 0;
  for (; j + kLine<T> <= count; j += kLine<T>) {
    step(j, AllLanes<T>{}, std::true_type{});
#pragma GCC unroll 4
    for (std::size_t part = 1; part < kParts; ++part) step(j + part * kVector<T>, AllLanes<T>{}, std::false_type{});
  }
  for (; j < count; j += kVector<T>) step(j, count - j < kVector<T> ? count - j : kVector<T>, std::true_type{});
}
// The same for the vectors that hold part `part` of every 64 bytes; at the end of the run, entries that do not exist count as zeros.
template <class T, class Step>
[[gnu::always_inline]] inline void each_vector_of_part(std::size_t part, std::size_t count, const Step& step) {
  std::size_t j = part * kVector<T>;
  for (; j + kVector<T> <= count; j += kLine<T>) step(j, AllLanes<T>{});
  if (j < count) step(j, count - j);
}

// Returns the sum of a vector's lanes: halves are added until one lane is left.
template <class T, std::size_t kHalf, std::size_t... kLane>
[[gnu::always_inline]] inline Vec<T> with_half_added(const Vec<T>& v, std::index_sequence<kLane...>) {
  return v + __builtin_shufflevector(v, v, ((kLane + kHalf) % sizeof...(kLane))...);
}
template <class T, std::size_t kHalf = kVector<T> / 2>
[[gnu::always_inline]] inline T sum_of_lanes(const Vec<T>& v) {
  if constexpr (kHalf > 0)
    return sum_of_lanes<T, kHalf / 2>(with_half_added<T, kHalf>(v, std::make_index_sequence<kVector<T>>()));
  else
    return v[0];
}
// The same of 64 bytes of lanes; the parts are overwritten.
template <class T>
[[gnu::always_inline]] inline T sum_of(Vec<T> (&part)[kParts]) {
  for (std::size_t half = kParts / 2; half > 0; half /= 2)
    for (std::size_t p = 0; p < half; ++p) part[p] += part[p + half];
  return sum_of_lanes<T>(part[0]);
}

}  // namespace fl::cpu
