// Reads and writes bit fields in a byte stream.
//
//   bit i of the stream is bit i % 8 of byte i / 8; a field of n bits starts with its lowest bit
// so one 8-byte store (load) at byte i / 8 writes (reads) any field of up to 56 (57) bits, whatever its alignment.
//
//   gamma(v), v >= 1    N = floor(log2 v) zeros, a one, the N bits of v below its leading one          2N + 1 bits
//   signed(v)           gamma(2v + 1) for v >= 0, gamma(-2v) for v < 0
// P. Elias, Universal codeword sets and representations of the integers, IEEE Trans. Information Theory 21 (1975).
//
// BitWriter grows the output. Loops take its BitCursor by value, so that it stays in registers; the cursor does not check for room.
// BitReader reads untrusted bytes: past the end it returns zeros and past_end() is true.
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

// The maximum number of bits written by one store.
inline constexpr unsigned kPutBits = 56;

[[nodiscard]] constexpr std::uint64_t low_bits(std::uint64_t value, unsigned n) {
  return n >= 64 ? value : value & ((std::uint64_t{1} << n) - 1);
}

[[nodiscard]] constexpr std::uint64_t gamma_bits(std::uint64_t value) { return 2 * static_cast<std::uint64_t>(std::bit_width(value)) - 1; }

// Returns the number whose gamma code is signed(v).
[[nodiscard]] constexpr std::uint64_t folded(std::int64_t v) { return static_cast<std::uint64_t>(v >= 0 ? 2 * v + 1 : -2 * v); }
[[nodiscard]] constexpr std::int64_t unfolded(std::uint64_t code) {
  const auto half = static_cast<std::int64_t>(code >> 1);
  return (code & 1) != 0 ? half : -half;
}

// The write position. Callers must reserve room at `at` for the written bits plus eight bytes.
struct BitCursor {
  std::byte* at = nullptr;
  std::uint64_t pending = 0;  // the `fill` low bits of *at, already written
  unsigned fill = 0;          // 0 .. 7

  // Writes n bits. Requires value < 2^n and n <= kPutBits.
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
  // Writes `zeros` zeros and a one.
  void put_unary(std::uint64_t zeros) {
    for (; zeros >= kPutBits; zeros -= kPutBits) put(0, kPutBits);
    put(std::uint64_t{1} << zeros, static_cast<unsigned>(zeros) + 1);
  }
};

class FL_API BitWriter {
 public:
  // Overwrites `out` and keeps its memory.
  explicit BitWriter(std::vector<std::byte>& out) : out_(out) { cursor_.at = out_.data(); }

  // Returns a cursor with room for `bits` more bits. The caller hands it back by commit().
  [[nodiscard]] BitCursor reserve(std::uint64_t bits);
  void commit(const BitCursor& cursor) { cursor_ = cursor; }

  // n <= 64
  void put(std::uint64_t value, unsigned n) {
    BitCursor cursor = reserve(n);
    cursor.put_wide(value, n);
    commit(cursor);
  }
  // Writes the gamma code of value >= 1.
  void put_gamma(std::uint64_t value);

  [[nodiscard]] std::uint64_t position() const { return 8 * static_cast<std::uint64_t>(cursor_.at - out_.data()) + cursor_.fill; }
  // Pads with zeros to a whole byte and truncates `out` to the written bytes.
  void finish();

 private:
  std::vector<std::byte>& out_;
  BitCursor cursor_;
};

class FL_API BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) : data_(bytes.data()), num_bytes_(bytes.size()) {}

  // Returns at least the next 57 bits, lowest bit first, with zeros past the end.
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
  // Returns the number of zeros before the next one bit, which is consumed, or kNoOne if there are more than `limit` or the stream ends.
  static constexpr std::uint64_t kNoOne = ~std::uint64_t{0};
  std::uint64_t get_unary(std::uint64_t limit);
  // Reads a gamma code up to 2^33. Returns 0 if there is none.
  std::uint64_t get_gamma();

  [[nodiscard]] std::uint64_t position() const { return position_; }
  [[nodiscard]] std::uint64_t num_bits() const { return 8 * static_cast<std::uint64_t>(num_bytes_); }
  [[nodiscard]] std::uint64_t remaining() const { return past_end() ? 0 : num_bits() - position_; }
  [[nodiscard]] bool past_end() const { return position_ > num_bits(); }
  // Returns the byte at the read position, which must be byte-aligned.
  [[nodiscard]] const std::byte* bytes() const { return data_ + (position_ >> 3); }

 private:
  const std::byte* data_;
  std::size_t num_bytes_;
  std::uint64_t position_ = 0;
};

}  // namespace fl::codec
