#include "compressors/codec/bit_stream.hpp"

namespace fl::codec {

BitCursor BitWriter::reserve(std::uint64_t bits) {
  constexpr std::size_t kSlack = sizeof(std::uint64_t);  // a store writes eight bytes, even if fewer bits are new
  const std::size_t written = static_cast<std::size_t>(cursor_.at - out_.data());
  const std::size_t needed = written + static_cast<std::size_t>((cursor_.fill + bits) / 8) + 1 + kSlack;
  if (needed > out_.size()) {
    out_.resize(needed);
    cursor_.at = out_.data() + written;
  }
  return cursor_;
}

void BitWriter::put_gamma(std::uint64_t value) {
  const unsigned below = static_cast<unsigned>(std::bit_width(value)) - 1;
  BitCursor cursor = reserve(gamma_bits(value));
  cursor.put_unary(below);
  cursor.put_wide(low_bits(value, below), below);
  commit(cursor);
}

void BitWriter::finish() {
  if (cursor_.fill > 0) put(0, 8 - cursor_.fill);
  out_.resize(static_cast<std::size_t>(cursor_.at - out_.data()));
}

std::uint64_t BitReader::get_unary(std::uint64_t limit) {
  constexpr unsigned kKnown = 57;
  for (std::uint64_t zeros = 0; zeros <= limit && !past_end(); zeros += kKnown) {
    const std::uint64_t word = peek();
    if (word != 0) {
      const unsigned more = static_cast<unsigned>(std::countr_zero(word));
      skip(more + 1);
      return zeros + more <= limit ? zeros + more : kNoOne;
    }
    skip(kKnown);
  }
  return kNoOne;
}

std::uint64_t BitReader::get_gamma() {
  constexpr std::uint64_t kLargest = 33;
  const std::uint64_t below = get_unary(kLargest);
  if (below == kNoOne) return 0;
  const unsigned n = static_cast<unsigned>(below);
  return (std::uint64_t{1} << n) | get(n);
}

}  // namespace fl::codec
