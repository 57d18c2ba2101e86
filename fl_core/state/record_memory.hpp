// Access to client records in any memory: the host reads and writes whole records through this class.
//
// Parts in memory that a GPU shares are copied on a separate stream to and from a pinned record, so that the host touches none of their
// pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "fl_core/memory/buffer.hpp"
#include "fl_core/state/page_file.hpp"

namespace fl {

class RecordMemory {
 public:
  // Appends the parts of record `at`, slot by slot; their sizes add up to `record_bytes`.
  using PartsOf = std::function<void(std::uint32_t at, std::vector<std::span<std::byte>>& parts)>;

  RecordMemory(std::size_t record_bytes, Device memory, PartsOf parts_of);

  // Return memory that the host may read and write for record `at`: the record itself, or the pinned copy, which fetch() fills and store()
  // copies back. It is valid until the next call.
  [[nodiscard]] RecordParts open(std::uint32_t at);
  [[nodiscard]] RecordParts fetch(std::uint32_t at);
  void store(std::uint32_t at);
  // Fills `to` with the part of record `at` that begins at `offset`.
  void read(std::uint32_t at, std::size_t offset, std::span<std::byte> to);

 private:
  void find_parts(std::uint32_t at);
  [[nodiscard]] bool is_staged() const { return memory_ != Device::cpu; }

  Device memory_;  // of the parts
  PartsOf parts_of_;
  std::vector<std::span<std::byte>> parts_;
  DeviceStream stream_;
  Buffer<std::byte> staged_;     // one pinned record, if parts are shared with a GPU
  std::span<std::byte> record_;  // the whole record
};

}  // namespace fl
