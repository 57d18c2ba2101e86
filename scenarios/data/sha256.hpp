// SHA-256 (FIPS 180-4) of a data file's bytes: what published checksums of data sets are given in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "fl_core/config/device.hpp"

namespace fl {

class FL_API Sha256 {
 public:
  Sha256& add(std::span<const std::byte> bytes);
  [[nodiscard]] std::string finish();  // 64 hexadecimal digits; ends the object's life

 private:
  static constexpr std::size_t kBlock = 64;  // bytes
  void mix_block(const std::byte* block);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, kBlock> waiting_{};
  std::size_t num_waiting_ = 0;
  std::uint64_t num_bytes_ = 0;
};

[[nodiscard]] FL_API std::string sha256_of(std::span<const std::byte> bytes);
[[nodiscard]] FL_API std::string sha256_of_file(const std::filesystem::path& file);  // as it lies on the disk; throws DataError

}  // namespace fl
