// An entropy code for levels: a static model of the whole message, and the range variant of asymmetric numeral systems (rANS).
//
//   coded   = model  gamma(W)  W words:32  extra bits
//   model   = (r - 8):4  gamma(p)  { gamma(token - previous token) }  { signed(w - previous w)  (w - 1 low bits of f):w-1 }
//             p tokens occur, ascending, the one before the first being -1. Each has a frequency f >= 1, w bits long; they add up to
//             M = 2^r, 8 <= r <= 16, and the last one is not sent. The width before the first is r.
//   words   the state x (two words, the low one first), then the words that the decoder shifts in, then zeros
//
// A format of up to 4096 levels has one token for each level: level - min_level. In a larger format a level is first folded: v = 2 level or
// -2 level - 1 if min_level < 0, else v = level - min_level. v < 256 is its own token. Otherwise, with e = floor(log2 v), the token 256 +
// 32 (e - 8) + (v >> (e - 5)) % 32 contains the five bits after the leading one, and the remaining e - 5 bits follow as extra bits, level
// by level.
//
// The decoder's step, where C is the sum of the frequencies of all smaller tokens:
//   token = the one with C <= x % M < C + f;   x <- f floor(x / M) + x % M - C;   if x < 2^31: x <- 2^32 x + next word
// The decoder starts from 2^31 <= x < 2^63 and ends at x = 2^31, because the encoder runs backwards from there.
//
// The length follows from the counts c alone. An encoder's step multiplies x by at most (M/f)(1 + 2^(r-31)), and each word divides x by
// 2^32, so
//   W = max(floor(sum c (log2(M/f) + 2^(r-31) log2 e) / 32) + 2, ceil(n / 2^17))
// is sufficient. W is rounded up in units of 2^-24 bit per level, and all W words are sent. The second term bounds the memory that a
// message can make its receiver allocate: at most 4096 levels per bit. r is chosen for the shortest result. Frequencies are counts scaled
// and rounded to the nearest, at least 1.
// Messages of 10,000 levels and more in formats of up to eight bits come within 2% of their empirical entropy (9 bits and more: 100,000
// levels). J. Duda, Asymmetric numeral systems: entropy coding combining speed of Huffman coding with compression rate of arithmetic
// coding, arXiv 1311.2540 (2013). The extra bits are separated as in Exp-Golomb codes (Teuhola, Information Processing Letters 7 (1978)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compressors/codec/bit_stream.hpp"
#include "compressors/codec/values.hpp"
#include "fl_core/message/payload.hpp"

namespace fl::codec {

// A coded message holds at most this many levels per bit.
inline constexpr std::uint64_t kLevelsPerBit = 4096;

struct LevelModel {
  unsigned precision = 0;                // r
  std::vector<std::uint16_t> token;      // [p] ascending
  std::vector<std::uint32_t> frequency;  // [p]
};

// In formats with more levels, one token represents several levels.
inline constexpr std::uint64_t kMostDirect = 4096;
[[nodiscard]] constexpr std::uint64_t num_levels(const LevelFormat& format) {
  return static_cast<std::uint64_t>(std::int64_t{max_level(format)} - format.min_level) + 1;
}

// Counts how often each level occurs, from min_level on, in a format of up to kMostCounted levels. `count` is overwritten. Throws Error for
// a level outside the format.
inline constexpr std::uint64_t kMostCounted = 65536;
template <class T>
void count_levels(const Payload<T>& payload, std::vector<std::uint64_t>& count);

// The encoding of a message's levels.
struct LevelPlan {
  bool coded = false;
  std::uint64_t bits = 0;  // bits of the levels: at fixed width, or of everything described above
  std::uint64_t words = 0;
  LevelModel model;
};

// Returns the shorter encoding of fixed width and code. Throws Error for a level outside the format. counted: the number of occurrences of
// each level, for formats of up to kMostDirect levels; if empty, levels are counted here.
template <class T>
[[nodiscard]] FL_API LevelPlan plan_levels(const Payload<T>& payload, std::span<const std::uint32_t> counted = {});

// Writes all levels of the message by a plan with `coded` set.
template <class T>
void write_coded_levels(BitWriter& writer, const LevelPlan& plan, const Payload<T>& payload);
// Reads the levels into the payload, which has room for its num_sent levels. Returns "" or the reason for refusing the bytes.
template <class T>
[[nodiscard]] std::string read_coded_levels(BitReader& reader, Payload<T>& payload);

}  // namespace fl::codec
