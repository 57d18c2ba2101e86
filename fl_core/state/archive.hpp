// Serialisation that uses one function for both directions: `persist(Archive&)` writes a checkpoint and reads it back.
//
// All data is little-endian and unaligned. Sections have names, so that the error for a mismatch names the section. Reading checks each
// length before it allocates, and compares each size that the program knows.
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

namespace fl {

// Reports bytes that this program cannot have written.
class FL_API ArchiveError : public Error {
 public:
  using Error::Error;
};

class FL_API Archive {
 public:
  Archive() = default;                                                                // writes
  explicit Archive(std::span<const std::byte> bytes) : reading_(true), in_(bytes) {}  // reads; the bytes must outlive the archive
  [[nodiscard]] bool is_reading() const { return reading_; }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return out_; }

  // Begins the section `name`.
  void section(std::string_view name);
  // Returns the offset at which the last section of this name begins in the written bytes; 0 = no such section.
  [[nodiscard]] std::uint64_t begin_of(std::string_view name) const;
  // Throws if bytes are left.
  void finish() const;

  template <class T>
  void value(T& x) {
    static_assert(std::is_trivially_copyable_v<T>);
    raw(&x, sizeof(T));
  }
  // Throws for a byte other than 0 and 1.
  void value(bool& x);
  void text(std::string& text);
  // Writes or reads an array whose size the program knows. Throws if the file has another size.
  template <class T>
  void array(std::span<T> x) {
    static_assert(std::is_trivially_copyable_v<T>);
    expect_size(x.size());
    raw(x.data(), x.size_bytes());
  }
  // Writes or reads an array of any size.
  template <class T>
  void list(std::vector<T>& x) {
    static_assert(std::is_trivially_copyable_v<T>);
    x.resize(size_of_list(x.size(), sizeof(T)));
    raw(x.data(), x.size() * sizeof(T));
  }
  // Writes or reads a list of objects by each(object). When reading, the list grows with the bytes received, not with the announced size.
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
  std::vector<std::pair<std::string, std::uint64_t>> begins_;  // of written sections
  std::vector<std::byte> out_;
  std::span<const std::byte> in_;
  std::size_t at_ = 0;
};

}  // namespace fl
