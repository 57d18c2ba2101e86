#include "fl_core/state/record_memory.hpp"

#include <utility>

namespace fl {

RecordMemory::RecordMemory(std::size_t record_bytes, Device memory, PartsOf parts_of)
    : memory_(memory),
      parts_of_(std::move(parts_of)),
      stream_(memory == Device::cpu ? Device::cpu : Device::cuda),
      staged_(memory == Device::cpu ? 0 : record_bytes, memory == Device::cpu ? Device::cpu : Device::pinned),
      record_(staged_.span()) {}

void RecordMemory::find_parts(std::uint32_t at) {
  parts_.clear();
  parts_of_(at, parts_);
}

RecordParts RecordMemory::open(std::uint32_t at) {
  find_parts(at);
  return is_staged() ? RecordParts(&record_, 1) : RecordParts(parts_);
}

RecordParts RecordMemory::fetch(std::uint32_t at) {
  const RecordParts record = open(at);
  if (!is_staged()) return record;
  std::byte* to = staged_.data();
  for (const std::span<std::byte> part : parts_) {
    copy_bytes(to, Device::pinned, part.data(), memory_, part.size(), stream_.get());
    to += part.size();
  }
  synchronise(Device::cuda, stream_.get());
  return record;
}

void RecordMemory::store(std::uint32_t at) {
  if (!is_staged()) return;
  find_parts(at);
  const std::byte* from = staged_.data();
  for (const std::span<std::byte> part : parts_) {
    copy_bytes(part.data(), memory_, from, Device::pinned, part.size(), stream_.get());
    from += part.size();
  }
  synchronise(Device::cuda, stream_.get());
}

void RecordMemory::read(std::uint32_t at, std::size_t offset, std::span<std::byte> to) {
  find_parts(at);
  std::size_t begin = 0;
  for (const std::span<std::byte> whole : parts_) {
    if (begin == offset) copy_bytes(to.data(), Device::cpu, whole.data(), memory_, to.size(), stream_.get());
    begin += whole.size();
  }
}

}  // namespace fl
