// Which elements of a tile are meant: 64 elements are one bit mask, bit i for element i. Made by vector compares, turned into ascending
// positions without a branch per element. AVX-512 or AVX2 where the compiler targets them, else portable loops with the same results.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "fl_core/ops/cpu/lanes256.hpp"
#include "fl_core/ops/cpu/lanes512.hpp"
#include "fl_core/ops/cpu/tile.hpp"

namespace fl::cpu {

inline constexpr std::size_t kMaskWords = kTile / 64;
// Elements that append_positions may write beyond the ones it returns.
inline constexpr std::size_t kPositionSlack = 16;

// |p| as an integer: ordered like the magnitude, denormals included; NaN is above infinity, so that every order is total.
template <class T>
struct KeyOf;
template <>
struct KeyOf<float> {
  using type = std::uint32_t;
};
template <>
struct KeyOf<double> {
  using type = std::uint64_t;
};
template <class T>
using Key = typename KeyOf<T>::type;

template <class T>
[[nodiscard]] inline Key<T> magnitude_key(T p) {
  return std::bit_cast<Key<T>>(p) & (~Key<T>{0} >> 1);
}
template <class T>
inline constexpr int kKeyBits = static_cast<int>(sizeof(T)) * 8 - 1;

// Bit i = flag[i] (0 or 1). flag: [64]
[[nodiscard]] inline std::uint64_t pack_flags(const unsigned char* flag) {
#if defined(FL_CPU_AVX512)
  const __m512i bytes = _mm512_loadu_si512(flag);
  return _mm512_test_epi8_mask(bytes, bytes);
#elif defined(FL_CPU_AVX2)
  const auto half = [flag](std::size_t first) {  // bit 0 of every byte goes to bit 7
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(flag + first));
    return static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_slli_epi16(bytes, 7)));
  };
  return half(0) | static_cast<std::uint64_t>(half(32)) << 32;
#else
  // Eight bytes of 0 or 1 times this constant have their bits side by side in the top byte.
  std::uint64_t word = 0;
  for (std::size_t b = 0; b < 8; ++b) {
    std::uint64_t eight;
    std::memcpy(&eight, flag + 8 * b, 8);
    word |= ((eight * 0x0102040810204080ull) >> 56) << (8 * b);
  }
  return word;
#endif
}

// Bit i = test(p[i]) for up to 64 elements; bits from `count` on are 0.
template <class T, class Test>
[[nodiscard]] inline std::uint64_t mask_if(const T* p, std::size_t count, Test test) {
  alignas(64) unsigned char flag[64];
  if (count >= 64) {
    for (std::size_t i = 0; i < 64; ++i) flag[i] = test(p[i]);
  } else {
    std::memset(flag, 0, sizeof flag);
    for (std::size_t i = 0; i < count; ++i) flag[i] = test(p[i]);
  }
  return pack_flags(flag);
}

#if defined(FL_CPU_AVX512)
#define FL_CPU_MASKS 1
template <class T>
using MaskLanes = Lanes512<T>;
#elif defined(FL_CPU_AVX2)
#define FL_CPU_MASKS 1
template <class T>
using MaskLanes = Lanes256<T>;
#endif

#if defined(FL_CPU_MASKS)
// Bit i = compare(lanes that exist, their values), a vector at a time.
template <class T, class Compare>
[[nodiscard]] inline std::uint64_t mask_by_vector(const T* p, std::size_t count, Compare compare) {
  using L = MaskLanes<T>;
  std::uint64_t word = 0;
  if (count >= 64) {
    for (std::size_t j = 0; j < 64; j += L::kWidth) word |= static_cast<std::uint64_t>(compare(L::kAll, L::load(p + j))) << j;
  } else {
    for (std::size_t j = 0; j < count; j += L::kWidth) {
      const std::size_t left = std::min(count - j, L::kWidth);
      const auto lanes = static_cast<typename L::Mask>((1u << left) - 1);
      word |= static_cast<std::uint64_t>(compare(lanes, L::load_first(left, p + j))) << j;
    }
  }
  return word;
}
#endif

// Bit i = |p[i]| >= bound, as numbers: false for NaN.
template <class T>
[[nodiscard]] inline std::uint64_t mask_at_least(const T* p, std::size_t count, T bound) {
#if defined(FL_CPU_MASKS)
  using L = MaskLanes<T>;
  const auto limit = L::spread(bound);
  return mask_by_vector(p, count, [limit](auto lanes, auto x) { return L::magnitude_at_least(lanes, x, limit); });
#else
  return mask_if(p, count, [bound](T x) { return (x < 0 ? -x : x) >= bound; });
#endif
}

// Bit i = key of p[i] >= bound, so NaN counts as the largest.
template <class T>
[[nodiscard]] inline std::uint64_t mask_key_at_least(const T* p, std::size_t count, Key<T> bound) {
#if defined(FL_CPU_MASKS)
  using L = MaskLanes<T>;
  const auto limit = L::spread_key(bound);
  return mask_by_vector(p, count, [limit](auto lanes, auto x) { return L::key_at_least(lanes, L::keys(x), limit); });
#else
  return mask_if(p, count, [bound](T x) { return magnitude_key(x) >= bound; });
#endif
}

// Writes base+i for every set bit i, ascending; returns how many. May write kPositionSlack elements more than that.
inline std::size_t append_positions(std::uint64_t word, std::uint32_t base, std::uint32_t* out) {
#if defined(FL_CPU_AVX512) && defined(__AVX512VBMI2__)
  alignas(64) static constexpr unsigned char kIota[64] = {
      0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
      32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
  // Zero-masked forms with a full mask: the unmasked ones make g++ 12 warn of uninitialised values inside its own header.
  constexpr __mmask16 kAll = 0xFFFF;
  const __m512i packed = _mm512_maskz_compress_epi8(word, _mm512_load_si512(kIota));
  const __m512i offset = _mm512_set1_epi32(static_cast<int>(base));
  const auto count = static_cast<std::size_t>(std::popcount(word));
  const __m128i first = _mm512_maskz_extracti32x4_epi32(0xF, packed, 0);
  _mm512_storeu_si512(out, _mm512_add_epi32(offset, _mm512_maskz_cvtepu8_epi32(kAll, first)));
  if (count > 16) {
    alignas(64) unsigned char bytes[64];
    _mm512_store_si512(bytes, packed);
    for (std::size_t i = 16; i < count; i += 16) {
      const __m128i quarter = _mm_load_si128(reinterpret_cast<const __m128i*>(bytes + i));
      _mm512_storeu_si512(out + i, _mm512_add_epi32(offset, _mm512_maskz_cvtepu8_epi32(kAll, quarter)));
    }
  }
  return count;
#else
  std::size_t count = 0;
  for (; word != 0; word &= word - 1) out[count++] = base + static_cast<std::uint32_t>(std::countr_zero(word));
  return count;
#endif
}

}  // namespace fl::cpu
