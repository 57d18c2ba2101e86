// Checksums that identify splits, scenarios, final models and stored blobs. They are not cryptographic.
//
// Hash64 is xxHash64 (Yann Collet, specification "XXH64", seed 0) over a stream of bytes. The division of the stream into pieces does not
// affect the hash. Numbers are added as little-endian bytes, texts with their length first, so that ("ab","c") and ("a","bc") differ.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "fl_core/config/device.hpp"

namespace fl {

static_assert(std::endian::native == std::endian::little, "checksums and the wire format are little-endian");

class FL_API Hash64 {
 public:
  Hash64& add(std::span<const std::byte> bytes);
  Hash64& add_text(std::string_view text);
  template <class T>
  requires std::is_arithmetic_v<T> Hash64& add_value(T value) { return add(std::as_bytes(std::span<const T, 1>(&value, 1))); }
  template <class T>
  requires std::is_arithmetic_v<T> Hash64& add_values(std::span<const T> values) { return add(std::as_bytes(values)); }

  [[nodiscard]] std::uint64_t value() const;  // of all bytes so far; more may follow

 private:
  static constexpr std::size_t kBlock = 32;                  // bytes mixed at a time
  std::size_t mix_blocks(std::span<const std::byte> bytes);  // mixes whole blocks, and returns their bytes

  std::array<std::uint64_t, 4> lane_ = {0x60EA27EEADC0B5D6ull, 0xC2B2AE3D27D4EB4Full, 0, 0x61C8864E7A143579ull};
  std::array<std::byte, kBlock> waiting_{};
  std::size_t num_waiting_ = 0;
  std::uint64_t num_bytes_ = 0;
};

[[nodiscard]] FL_API std::uint64_t hash64_of(std::span<const std::byte> bytes);
[[nodiscard]] FL_API std::string to_hex(std::uint64_t hash);  // 16 digits

}  // namespace fl
