// The format of one client's row of a slot in a checkpoint: one byte tells whether the row is nonzero, and its numbers follow only in that
// case.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "fl_core/state/archive.hpp"

namespace fl {

// Returns whether all bits are 0: a row of -0.0 is not zero.
template <class T>
[[nodiscard]] bool is_zero_row(std::span<const T> row) {
  std::uint8_t any = 0;
  for (const std::byte b : std::as_bytes(row)) any |= static_cast<std::uint8_t>(b);
  return any == 0;
}

// Writes or reads the marker byte of a row of slot `name`. Throws ArchiveError for a byte other than 0 and 1.
inline void persist_mark(Archive& archive, const std::string& name, std::uint32_t client, std::uint8_t& is_present) {
  archive.value(is_present);
  if (is_present > 1)
    throw ArchiveError("in '" + name + "': the state of client " + std::to_string(client) + " is marked as neither zero nor there");
}

}  // namespace fl
