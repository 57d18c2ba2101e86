// Raw values in payloads: floating-point numbers as they lie in memory, little endian, which both ends share (Hello.build).
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "net/frame.hpp"

namespace fl::net {

template <class T>
void append(Bytes& bytes, std::span<const T> values) {
  const std::span<const std::byte> raw = std::as_bytes(values);
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

template <class T>
[[nodiscard]] std::shared_ptr<const Bytes> raw_bytes(std::span<const T> values) {
  const std::span<const std::byte> raw = std::as_bytes(values);
  return std::make_shared<const Bytes>(raw.begin(), raw.end());
}

// Reads values one array after another.
class RawReader {
 public:
  explicit RawReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  // Fills `values`. Throws ProtocolError where there are fewer.
  template <class T>
  void read(std::span<T> values) {
    if (rest_.size() < values.size_bytes())
      throw ProtocolError("a payload ends " + std::to_string(values.size_bytes() - rest_.size()) + " bytes too early");
    if (!values.empty()) std::memcpy(values.data(), rest_.data(), values.size_bytes());
    rest_ = rest_.subspan(values.size_bytes());
  }
  [[nodiscard]] std::size_t left() const { return rest_.size(); }
  // Throws ProtocolError where bytes are left.
  void finish() const {
    if (!rest_.empty()) throw ProtocolError("a payload has " + std::to_string(rest_.size()) + " bytes too many");
  }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace fl::net
