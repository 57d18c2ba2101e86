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
inline constexpr std::size_t kPhiloxRounds = 10;
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
  static Lanes exclusive_or(Lanes x, Lanes y) { return _mm512_xor_si512(x, y); }
  static Lanes xor3(Lanes x, Lanes y, Lanes z) { return _mm512_ternarylogic_epi64(x, y, z, 0x96); }
  // The last round's two words side by side: the low halves of high(product) ^ x ^ key and of the product.
  static Lanes pair(Lanes product, Lanes x, Lanes key) {
    const Lanes swapped = _mm512_maskz_shuffle_epi32(0xFFFF, product, _MM_PERM_CDAB);
    return _mm512_mask_ternarylogic_epi32(swapped, 0x5555, x, key, 0x96);
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
  static Lanes high(Lanes x) { return _mm256_shuffle_epi32(x, _MM_SHUFFLE(3, 3, 1, 1)); }
  static Lanes exclusive_or(Lanes x, Lanes y) { return _mm256_xor_si256(x, y); }
  // x is the product of this round, which is known last.
  static Lanes xor3(Lanes x, Lanes y, Lanes z) { return _mm256_xor_si256(x, _mm256_xor_si256(y, z)); }
  // The high half of a key is 0.
  static Lanes pair(Lanes product, Lanes x, Lanes key) {
    const Lanes swapped = _mm256_shuffle_epi32(product, _MM_SHUFFLE(2, 3, 0, 1));
    return xor3(swapped, _mm256_blend_epi32(x, _mm256_setzero_si256(), 0xAA), key);
  }
  static void store(Lanes words01, Lanes words23, std::uint32_t* out) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_unpacklo_epi64(words01, words23));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 8), _mm256_unpackhi_epi64(words01, words23));
  }
};
#endif

#if defined(__AVX2__)
// The keys of a stream's rounds. All its counters start with the same c1, c2 and c3. Half of the first two rounds is therefore the same in
// every lane, and of the third one word; the terms that they add are kept in the place of keys.
template <class V>
class PhiloxKeys {
 public:
  explicit PhiloxKeys(const RandomStream& stream) {
    std::uint32_t k0[kPhiloxRounds], k1[kPhiloxRounds];
    for (std::uint32_t round = 0; round < kPhiloxRounds; ++round) {
      k0[round] = stream.key0 + round * kPhiloxW0;
      k1[round] = stream.key1 + round * kPhiloxW1;
    }
    const std::uint64_t p2 = static_cast<std::uint64_t>(stream.round) * kPhiloxM1;
    const std::uint64_t p0 = static_cast<std::uint64_t>(high(p2) ^ stream.client ^ k0[0]) * kPhiloxM0;
    k1[0] ^= stream.step_layer;
    k0[1] ^= low(p2);
    k1[1] ^= high(p0);
    k1[2] ^= low(p0);
    for (std::size_t round = 0; round < kPhiloxRounds; ++round) {
      key0_[round] = V::all(k0[round]);
      key1_[round] = V::all(k1[round]);
    }
  }
  // Writes the words of the quads first .. first + kGroups*kQuads - 1, in order. The groups are independent chains that hide each other's
  // latency.
  void words(std::uint32_t first, std::uint32_t* out) const {
    constexpr std::size_t G = V::kGroups;
    typename V::Lanes c0[G], c1[G], c2[G], c3[G];
    const auto m0 = V::all(kPhiloxM0), m1 = V::all(kPhiloxM1);
    for (std::size_t g = 0; g < G; ++g) {
      c3[g] = V::multiply(V::quads(first + static_cast<std::uint32_t>(g * V::kQuads)), m0);
      c1[g] = V::multiply(V::exclusive_or(V::high(c3[g]), key1_[0]), m1);
      const auto p0 = V::multiply(V::exclusive_or(V::high(c1[g]), key0_[1]), m0);
      const auto p2 = V::multiply(V::exclusive_or(c3[g], key1_[1]), m1);
      c0[g] = V::xor3(V::high(p2), c1[g], key0_[2]);
      c1[g] = p2;
      c2[g] = V::exclusive_or(V::high(p0), key1_[2]);
      c3[g] = p0;
    }
#pragma GCC unroll 8
    for (std::size_t round = 3; round + 1 < kPhiloxRounds; ++round) {
      for (std::size_t g = 0; g < G; ++g) {
        const auto p0 = V::multiply(c0[g], m0), p2 = V::multiply(c2[g], m1);
        c0[g] = V::xor3(V::high(p2), c1[g], key0_[round]);
        c1[g] = p2;
        c2[g] = V::xor3(V::high(p0), c3[g], key1_[round]);
        c3[g] = p0;
      }
    }
    constexpr std::size_t kLast = kPhiloxRounds - 1;
    for (std::size_t g = 0; g < G; ++g) {
      const auto p0 = V::multiply(c0[g], m0), p2 = V::multiply(c2[g], m1);
      V::store(V::pair(p2, c1[g], key0_[kLast]), V::pair(p0, c3[g], key1_[kLast]), out + 4 * V::kQuads * g);
    }
  }

 private:
  static std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }
  static std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
  typename V::Lanes key0_[kPhiloxRounds], key1_[kPhiloxRounds];
};
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
  for (std::size_t round = 0; round < kPhiloxRounds; ++round) {
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

// Batches of words of one stream: those of the quads first .. first + kPhiloxBatch - 1, in order. out: [4*kPhiloxBatch]
class PhiloxBatches {
 public:
#if defined(__AVX2__)
  explicit PhiloxBatches(const RandomStream& stream) : keys_(stream) {}
  void make(std::uint32_t first, std::uint32_t* out) const {
    constexpr std::uint32_t kStep = Wide::kQuads * Wide::kGroups;
    for (std::uint32_t q = 0; q < kPhiloxBatch; q += kStep) keys_.words(first + q, out + 4 * q);
  }

 private:
  PhiloxKeys<Wide> keys_;
#else
  explicit PhiloxBatches(const RandomStream& stream) : stream_(stream) {}
  void make(std::uint32_t first, std::uint32_t* out) const { philox_batch_plain(stream_, first, out); }

 private:
  RandomStream stream_;
#endif
};

}  // namespace detail

// Words of the indices begin .. begin+count-1. `buffer`: [kRandomTile] for count <= kTile; the answer points into it, at word `begin`.
// Before each batch calls ahead(first of its words, their number), for memory that arrives while words are made.
template <class Ahead>
[[nodiscard]] inline const std::uint32_t* random_tile(const RandomStream& stream, std::size_t begin, std::size_t count,
                                                      std::uint32_t* buffer, const Ahead& ahead) {
  constexpr std::size_t kWords = 4 * kPhiloxBatch;
  const std::size_t skipped = begin % 4;
  std::uint32_t quad = static_cast<std::uint32_t>(begin / 4);
  const detail::PhiloxBatches batches(stream);
  for (std::size_t done = 0; done < count + skipped; done += kWords, quad += kPhiloxBatch) {
    ahead(done, kWords);
    batches.make(quad, buffer + done);
  }
  return buffer + skipped;
}
[[nodiscard]] inline const std::uint32_t* random_tile(const RandomStream& stream, std::size_t begin, std::size_t count,
                                                      std::uint32_t* buffer) {
  return random_tile(stream, begin, count, buffer, [](std::size_t, std::size_t) {});
}

}  // namespace fl::cpu
