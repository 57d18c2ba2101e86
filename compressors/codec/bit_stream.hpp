// Fields of bits in a stream of bytes.
//
//   bit i of the stream is bit i % 8 of byte i / 8; a field of n bits starts with its lowest bit
// so that one 8-byte store (load) at byte i / 8 writes (reads) any field of up to 56 (57) bits, whatever its alignment.
//
//   gamma(v), v >= 1    N = floor(log2 v) zeros, a one, the N bits of v below its leading one          2N + 1 bits
//   signed(v)           gamma(2v + 1) for v >= 0, gamma(-2v) for v < 0
// P. Elias, Universal codeword sets and representations of the integers, IEEE Trans. Information Theory 21 (1975).
//
// BitWriter owns the growth of the output; loops take its BitCursor by value, which lives in registers and does not check for room.
// BitReader reads bytes that are not trusted: past the end it sees zeros and says so in past_end().
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "fl_core/config/device.hpp"

namespace fl::codec {

static_assert(std::endian::native == std::endian::little, "the bit streams store whole little-endian words");

// The most bits that one store carries.
inline constexpr unsigned kPutBits = 56;

[[nodiscard]] constexpr std::uint64_t low_bits(std::uint64_t value, unsigned n) {
  return n >= 64 ? value : value & ((std::uint64_t{1} << n) - 1);
}

[[nodiscard]] constexpr std::uint64_t gamma_bits(std::uint64_t value) { return 2 * static_cast<std::uint64_t>(std::bit_width(value)) - 1; }

// What signed(v) is the gamma code of.
[[nodiscard]] constexpr std::uint64_t folded(std::int64_t v) { return static_cast<std::uint64_t>(v >= 0 ? 2 * v + 1 : -2 * v); }
[[nodiscard]] constexpr std::int64_t unfolded(std::uint64_t code) {
  const auto half = static_cast<std::int64_t>(code >> 1);
  return (code & 1) != 0 ? half : -half;
}

// Where a writer stands. The bytes from `at` on have room for what is put, and eight more.
struct BitCursor {
  std::byte* at = nullptr;
  std::uint64_t pending = 0;  // the `fill` bits of *at that are known
  unsigned fill = 0;          // 0 .. 7

  // value < 2^n, n <= kPutBits
  void put(std::uint64_t value, unsigned n) {
    pending |= value << fill;
    std::memcpy(at, &pending, sizeof(pending));
    const unsigned total = fill + n;
    at += total >> 3;
    pending >>= total & ~7U;
    fill = total & 7U;
  }
  // n <= 64
  void put_wide(std::uint64_t value, unsigned n) {
    if (n <= kPutBits) return put(value, n);
    put(low_bits(value, 32), 32);
    put(value >> 32, n - 32);
  }
  // `zeros` zeros and a one
  void put_unary(std::uint64_t zeros) {
    for (; zeros >= kPutBits; zeros -= kPutBits) put(0, kPutBits);
    put(std::uint64_t{1} << zeros, static_cast<unsigned>(zeros) + 1);
  }
};

class FL_API BitWriter {
 public:
  // Replaces the content of `out`, whose memory is kept.
  explicit BitWriter(std::vector<std::byte>& out) : out_(out) { cursor_.at = out_.data(); }

  // A cursor with room for `bits` more bits; to be handed back by commit().
  [[nodiscard]] BitCursor reserve(std::uint64_t bits);
  void commit(const BitCursor& cursor) { cursor_ = cursor; }

  // n <= 64
  void put(std::uint64_t value, unsigned n) {
    BitCursor cursor = reserve(n);
    cursor.put_wide(value, n);
    commit(cursor);
  }
  // value >= 1
  void put_gamma(std::uint64_t value);

  [[nodiscard]] std::uint64_t position() const { return 8 * static_cast<std::uint64_t>(cursor_.at - out_.data()) + cursor_.fill; }
  // Pads with zeros to a whole byte and cuts `out` to what was written.
  void finish();

 private:
  std::vector<std::byte>& out_;
  BitCursor cursor_;
};

class FL_API BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) : data_(bytes.data()), num_bytes_(bytes.size()) {}

  // The next 57 bits or more, from the lowest; zeros past the end.
  [[nodiscard]] std::uint64_t peek() const { return peek_at(position_); }
  [[nodiscard]] std::uint64_t peek_at(std::uint64_t position) const {
    const std::uint64_t byte = position >> 3;
    std::uint64_t word = 0;
    if (byte + sizeof(word) <= num_bytes_) [[likely]] {
      std::memcpy(&word, data_ + byte, sizeof(word));
    } else if (byte < num_bytes_) {
      std::memcpy(&word, data_ + byte, num_bytes_ - byte);
    }
    return word >> (position & 7);
  }
  void skip(std::uint64_t bits) { position_ += bits; }
  // n <= 64
  std::uint64_t get(unsigned n) {
    if (n > 32) {
      const std::uint64_t low = get(32);
      return low | get(n - 32) << 32;
    }
    const std::uint64_t value = low_bits(peek(), n);
    skip(n);
    return value;
  }
  // Zeros before the next one, which is consumed; kNoOne if there are more than `limit` or the stream ends.
  static constexpr std::uint64_t kNoOne = ~std::uint64_t{0};
  std::uint64_t get_unary(std::uint64_t limit);
  // A gamma code up to 2^33, or 0 if there is none.
  std::uint64_t get_gamma();

  [[nodiscard]] std::uint64_t position() const { return position_; }
  [[nodiscard]] std::uint64_t num_bits() const { return 8 * static_cast<std::uint64_t>(num_bytes_); }
  [[nodiscard]] std::uint64_t remaining() const { return past_end() ? 0 : num_bits() - position_; }
  [[nodiscard]] bool past_end() const { return position_ > num_bits(); }
  // The byte at which the stream stands, where it stands at one.
  [[nodiscard]] const std::byte* bytes() const { return data_ + (position_ >> 3); }

 private:
  const std::byte* data_;
  std::size_t num_bytes_;
  std::uint64_t position_ = 0;
};

}  // namespace fl::codec
