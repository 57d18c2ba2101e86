// Random words for a tile: the same numbers as RandomStream::quad, many counters at once.
//
// Philox4x32-10 multiplies 32-bit words into 64 bits. A word is kept in the low half of a 64-bit lane (the high half is rubbish), so
// that one multiply instruction yields both halves of the product and a round is multiply, shift, three-way xor per word pair:
//
//   (c0, c1, c2, c3) <- (hi(M1 c2) ^ c1 ^ k0,  lo(M1 c2),  hi(M0 c0) ^ c3 ^ k1,  lo(M0 c0)),   (k0, k1) += (W0, W1)
//
// Which counter sits in which lane is chosen so that in-lane unpacking alone puts the words in their order in memory.
// AVX-512 and AVX2 have their own lanes; elsewhere plain loops do the same.
// Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fl_core/ops/cpu/tile.hpp"
#include "fl_core/random/random.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace fl::cpu {

inline constexpr std::uint32_t kPhiloxM0 = 0xD2511F53u, kPhiloxM1 = 0xCD9E8D57u, kPhiloxW0 = 0x9E3779B9u, kPhiloxW1 = 0xBB67AE85u;
inline constexpr int kPhiloxRounds = 10;
// Quads that one batch makes, on every instruction set, and the words of a buffer that holds a tile from any position on.
inline constexpr std::size_t kPhiloxBatch = 32;
inline constexpr std::size_t kRandomTile = kTile + 4 * kPhiloxBatch + 4;

namespace detail {

#if defined(__AVX512F__)
// g++ 12 warns inside unmasked intrinsics (their destination is undefined on purpose); with a full mask they are the same instructions.
struct Wide {
  using Lanes = __m512i;
  static constexpr std::size_t kQuads = 8, kGroups = 4;
  static constexpr __mmask8 kAll = 0xFF;
  static Lanes all(std::uint32_t x) { return _mm512_set1_epi64(x); }
  static Lanes quads(std::uint32_t first) { return _mm512_add_epi64(all(first), _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7)); }
  static Lanes multiply(Lanes x, Lanes y) { return _mm512_maskz_mul_epu32(kAll, x, y); }
  // A shuffle, which more units of a processor can do than a shift.
  static Lanes high(Lanes x) { return _mm512_maskz_shuffle_epi32(0xFFFF, x, _MM_PERM_DDBB); }
  static Lanes xor3(Lanes x, Lanes y, Lanes z) { return _mm512_ternarylogic_epi64(x, y, z, 0x96); }
  // Low halves of both, side by side.
  static Lanes pair(Lanes x, Lanes y) {
    const Lanes places = _mm512_setr_epi32(0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
    return _mm512_permutex2var_epi32(x, places, y);
  }
  static void store(Lanes words01, Lanes words23, std::uint32_t* out) {
    _mm512_storeu_si512(out, _mm512_maskz_unpacklo_epi64(kAll, words01, words23));
    _mm512_storeu_si512(out + 16, _mm512_maskz_unpackhi_epi64(kAll, words01, words23));
  }
};
#elif defined(__AVX2__)
struct Wide {
  using Lanes = __m256i;
  static constexpr std::size_t kQuads = 4, kGroups = 2;
  static Lanes all(std::uint32_t x) { return _mm256_set1_epi64x(x); }
  static Lanes quads(std::uint32_t first) { return _mm256_add_epi64(all(first), _mm256_setr_epi64x(0, 2, 1, 3)); }
  static Lanes multiply(Lanes x, Lanes y) { return _mm256_mul_epu32(x, y); }
  static Lanes high(Lanes x) { return _mm256_srli_epi64(x, 32); }
  static Lanes xor3(Lanes x, Lanes y, Lanes z) { return _mm256_xor_si256(_mm256_xor_si256(x, y), z); }
  static Lanes pair(Lanes x, Lanes y) { return _mm256_blend_epi32(x, _mm256_slli_epi64(y, 32), 0xAA); }
  static void store(Lanes words01, Lanes words23, std::uint32_t* out) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_unpacklo_epi64(words01, words23));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 8), _mm256_unpackhi_epi64(words01, words23));
  }
};
#endif

#if defined(__AVX2__)
// Words of the quads first .. first + kGroups*kQuads - 1, in order. The groups are independent chains that hide each other's latency.
template <class V>
inline void philox_wide(const RandomStream& stream, std::uint32_t first, std::uint32_t* out) {
  constexpr std::size_t G = V::kGroups;
  typename V::Lanes c0[G], c1[G], c2[G], c3[G];
  for (std::size_t g = 0; g < G; ++g) {
    c0[g] = V::quads(first + static_cast<std::uint32_t>(g * V::kQuads));
    c1[g] = V::all(stream.client);
    c2[g] = V::all(stream.round);
    c3[g] = V::all(stream.step_layer);
  }
  const auto m0 = V::all(kPhiloxM0), m1 = V::all(kPhiloxM1);
  std::uint32_t key0 = stream.key0, key1 = stream.key1;
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const auto k0 = V::all(key0), k1 = V::all(key1);
    for (std::size_t g = 0; g < G; ++g) {
      const auto p0 = V::multiply(c0[g], m0), p2 = V::multiply(c2[g], m1);
      c0[g] = V::xor3(V::high(p2), c1[g], k0);
      c1[g] = p2;
      c2[g] = V::xor3(V::high(p0), c3[g], k1);
      c3[g] = p0;
    }
    key0 += kPhiloxW0;
    key1 += kPhiloxW1;
  }
  for (std::size_t g = 0; g < G; ++g) V::store(V::pair(c0[g], c1[g]), V::pair(c2[g], c3[g]), out + 4 * V::kQuads * g);
}
#endif

// The same in plain loops: structure of arrays, so that any compiler can vectorise it.
inline void philox_batch_plain(const RandomStream& stream, std::uint32_t first, std::uint32_t* out) {
  std::uint32_t c0[kPhiloxBatch], c1[kPhiloxBatch], c2[kPhiloxBatch], c3[kPhiloxBatch];
  for (std::size_t q = 0; q < kPhiloxBatch; ++q) {
    c0[q] = first + static_cast<std::uint32_t>(q);
    c1[q] = stream.client;
    c2[q] = stream.round;
    c3[q] = stream.step_layer;
  }
  std::uint32_t k0 = stream.key0, k1 = stream.key1;
  for (int round = 0; round < kPhiloxRounds; ++round) {
    for (std::size_t q = 0; q < kPhiloxBatch; ++q) {
      const std::uint64_t p0 = static_cast<std::uint64_t>(c0[q]) * kPhiloxM0, p2 = static_cast<std::uint64_t>(c2[q]) * kPhiloxM1;
      c0[q] = static_cast<std::uint32_t>(p2 >> 32) ^ c1[q] ^ k0;
      c1[q] = static_cast<std::uint32_t>(p2);
      c2[q] = static_cast<std::uint32_t>(p0 >> 32) ^ c3[q] ^ k1;
      c3[q] = static_cast<std::uint32_t>(p0);
    }
    k0 += kPhiloxW0;
    k1 += kPhiloxW1;
  }
  for (std::size_t q = 0; q < kPhiloxBatch; ++q) {
    out[4 * q] = c0[q];
    out[4 * q + 1] = c1[q];
    out[4 * q + 2] = c2[q];
    out[4 * q + 3] = c3[q];
  }
}

// Words of the quads first .. first + kPhiloxBatch - 1, in order. out: [4*kPhiloxBatch]
inline void philox_batch(const RandomStream& stream, std::uint32_t first, std::uint32_t* out) {
#if defined(__AVX2__)
  constexpr std::uint32_t kStep = Wide::kQuads * Wide::kGroups;
  for (std::uint32_t q = 0; q < kPhiloxBatch; q += kStep) philox_wide<Wide>(stream, first + q, out + 4 * q);
#else
  philox_batch_plain(stream, first, out);
#endif
}

}  // namespace detail

// Words of the indices begin .. begin+count-1. `buffer`: [kRandomTile] for count <= kTile; the answer points into it, at word `begin`.
[[nodiscard]] inline const std::uint32_t* random_tile(const RandomStream& stream, std::size_t begin, std::size_t count,
                                                      std::uint32_t* buffer) {
  const std::size_t skipped = begin % 4;
  std::uint32_t quad = static_cast<std::uint32_t>(begin / 4);
  for (std::size_t done = 0; done < count + skipped; done += 4 * kPhiloxBatch, quad += kPhiloxBatch) {
    detail::philox_batch(stream, quad, buffer + done);
  }
  return buffer + skipped;
}

}  // namespace fl::cpu
