// Unpacks a gzip stream (RFC 1952, several members one behind the other) piece by piece: memory grows with what has been unpacked, and
// unpacking stops at the size that the caller can use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "fl_core/config/device.hpp"

namespace fl {

// Packed bytes that are read where they are wanted.
struct PackedBytes {
  std::uint64_t size = 0;
  std::function<void(std::uint64_t begin, std::span<std::byte> out)> read;
};

class FL_API Gunzip {
 public:
  // `name` is what errors call the stream.
  Gunzip(PackedBytes packed, std::string name);
  ~Gunzip();
  Gunzip(Gunzip&&) noexcept;
  Gunzip& operator=(Gunzip&&) = delete;

  // Appends unpacked bytes until `out` holds `enough` of them or the stream is over. Throws DataError with the place in the packed bytes:
  // the stream ends early, is damaged (its checksum counts), or other bytes follow it.
  void fill(std::string& out, std::size_t enough);
  [[nodiscard]] bool is_over() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

[[nodiscard]] FL_API bool is_gzip(std::span<const std::byte> begin);  // by its first two bytes

}  // namespace fl
