// One description of an object's memory for both directions: `persist(Archive&)` writes a checkpoint and reads it back.
//
// Everything is little-endian and unaligned. Sections carry names, so that a mismatch says where it lies. Reading checks every length
// before it allocates, and every size that the program knows better.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "fl_core/config/error.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/state/checksum.hpp"

namespace fl {

// Bytes that are not what this program would have written.
class FL_API ArchiveError : public Error {
 public:
  using Error::Error;
};

class FL_API Archive {
 public:
  Archive() = default;                                                                // writes
  explicit Archive(std::span<const std::byte> bytes) : reading_(true), in_(bytes) {}  // reads; the bytes outlive it
  [[nodiscard]] bool is_reading() const { return reading_; }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return out_; }

  // What follows belongs to `name`.
  void section(std::string_view name);
  // The byte at which a section that was written begins; 0 = there is none of that name. The last of several.
  [[nodiscard]] std::uint64_t begin_of(std::string_view name) const;
  // Nothing may be left.
  void finish() const;

  template <class T>
  void value(T& x) {
    static_assert(std::is_trivially_copyable_v<T>);
    raw(&x, sizeof(T));
  }
  // A byte other than 0 and 1 is an error.
  void value(bool& x);
  void text(std::string& text);
  // An array whose size the program knows: another size in the file is an error.
  template <class T>
  void array(std::span<T> x) {
    static_assert(std::is_trivially_copyable_v<T>);
    expect_size(x.size());
    raw(x.data(), x.size_bytes());
  }
  // An array of any size.
  template <class T>
  void list(std::vector<T>& x) {
    static_assert(std::is_trivially_copyable_v<T>);
    x.resize(size_of_list(x.size(), sizeof(T)));
    raw(x.data(), x.size() * sizeof(T));
  }
  // A list of objects: each(object). When reading, it grows by what was received, not by what was announced.
  template <class T, class Each>
  void list_of(std::vector<T>& x, const Each& each) {
    const std::size_t size = size_of_list(x.size(), 1);
    if (reading_) x.clear();
    for (std::size_t i = 0; i < size; ++i) each(reading_ ? x.emplace_back() : x[i]);
  }

 private:
  void raw(void* data, std::size_t size);
  void expect_size(std::size_t size);
  std::size_t size_of_list(std::size_t size, std::size_t element);
  [[noreturn]] void fail(const std::string& what) const;

  bool reading_ = false;
  std::string section_ = "its beginning";
  std::vector<std::pair<std::string, std::uint64_t>> begins_;  // of sections that were written
  std::vector<std::byte> out_;
  std::span<const std::byte> in_;
  std::size_t at_ = 0;
};

}  // namespace fl
