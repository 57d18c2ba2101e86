#include "fl_core/state/archive.hpp"

#include <algorithm>

namespace fl {

void Archive::fail(const std::string& what) const { throw ArchiveError("in " + section_ + ": " + what); }

void Archive::raw(void* data, std::size_t size) {
  if (!reading_) {
    const auto* from = static_cast<const std::byte*>(data);
    out_.insert(out_.end(), from, from + size);
    return;
  }
  if (size > in_.size() - at_) fail("the bytes end " + std::to_string(size - (in_.size() - at_)) + " too early");
  if (size > 0) std::memcpy(data, in_.data() + at_, size);
  at_ += size;
}

void Archive::section(std::string_view name) {
  if (!reading_) begins_.emplace_back(name, out_.size());
  std::string found(name);
  text(found);
  if (found != name) fail("section '" + std::string(name) + "' is expected, another follows");
  section_ = "'" + found + "'";
}

std::uint64_t Archive::begin_of(std::string_view name) const {
  const auto found = std::find_if(begins_.rbegin(), begins_.rend(), [&](const auto& begin) { return begin.first == name; });
  return found == begins_.rend() ? 0 : found->second;
}

void Archive::finish() const {
  if (reading_ && at_ != in_.size()) fail(std::to_string(in_.size() - at_) + " bytes are left over");
}

void Archive::value(bool& x) {
  std::uint8_t byte = x ? 1 : 0;
  value(byte);
  if (byte > 1) fail("a byte that says yes or no is " + std::to_string(byte));
  x = byte == 1;
}

void Archive::text(std::string& text) {
  std::size_t size = size_of_list(text.size(), 1);
  text.resize(size);
  raw(text.data(), size);
}

void Archive::expect_size(std::size_t size) {
  std::uint64_t stored = size;
  value(stored);
  if (stored != size) fail("there are " + std::to_string(stored) + " elements where this run has " + std::to_string(size));
}

std::size_t Archive::size_of_list(std::size_t size, std::size_t element) {
  std::uint64_t stored = size;
  value(stored);
  if (reading_ && stored > (in_.size() - at_) / element) fail("a list announces more elements than bytes are left");
  return stored;
}

}  // namespace fl
