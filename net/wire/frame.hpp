// Frames: the layout of a header and a payload in a byte stream.
//
//   8 bytes   little endian: bytes of the header (24 bits), bytes of the payload (40 bits)
//   8 bytes   little endian: XXH64 of the header and of the 8 bytes of the payload's XXH64
//   4 bytes   little endian: the lower half of the XXH64 of these 16 bytes, so that a damaged size is known before it is waited for
//   header    a wire::Header (net/wire/wire.proto)
//   payload   raw bytes; the header states their meaning
// A frame whose checksums differ was damaged on its way, which breaks the connection and not the protocol: nothing in it is believed.
// A reader knows the maximum size of a frame in advance (FrameLimits) and rejects a larger one after its first bytes. Memory is allocated
// as bytes arrive, so that an announced size costs nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "fl_core/config/device.hpp"
#include "wire.pb.h"

namespace fl::net {

namespace wire = ::fedbits::wire;

inline constexpr std::uint32_t kProtocol = 2;
inline constexpr std::size_t kSizesBytes = 8, kPrefixBytes = kSizesBytes + 12;
inline constexpr std::size_t kMostHeaderBytes = 1 << 20;  // of what a server sends, which names all clients of a cohort

using Bytes = std::vector<std::byte>;

// Bytes that come from a connection. Unlike those of a vector, new ones are not cleared, because the connection fills them.
class ReceivedBytes {
 public:
  ReceivedBytes() = default;
  explicit ReceivedBytes(std::span<const std::byte> bytes) { append(bytes); }
  ReceivedBytes(ReceivedBytes&& other) noexcept { swap(other); }
  ReceivedBytes(const ReceivedBytes& other) { append(std::span(other.data(), other.size())); }
  ReceivedBytes& operator=(ReceivedBytes other) noexcept {
    swap(other);
    return *this;
  }
  ~ReceivedBytes() = default;

  // Makes room for `size` bytes, and keeps the contents.
  void reserve(std::size_t size) {
    if (size <= capacity_) return;
    auto larger = std::make_unique_for_overwrite<std::byte[]>(size);
    if (size_ > 0) std::memcpy(larger.get(), data_.get(), size_);
    data_ = std::move(larger);
    capacity_ = size;
  }
  // Adds bytes with arbitrary values, and returns them.
  [[nodiscard]] std::span<std::byte> extend(std::size_t count) {
    reserve(size_ + count);
    size_ += count;
    return {data_.get() + size_ - count, count};
  }

  [[nodiscard]] const std::byte* data() const { return data_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] const std::byte* begin() const { return data_.get(); }
  [[nodiscard]] const std::byte* end() const { return data_.get() + size_; }
  friend bool operator==(const ReceivedBytes& a, const ReceivedBytes& b) {
    return a.size_ == b.size_ && (a.empty() || std::memcmp(a.data(), b.data(), a.size_) == 0);
  }

 private:
  void append(std::span<const std::byte> bytes) {
    if (!bytes.empty()) std::memcpy(extend(bytes.size()).data(), bytes.data(), bytes.size());
  }
  void swap(ReceivedBytes& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }
  std::unique_ptr<std::byte[]> data_;
  std::size_t size_ = 0, capacity_ = 0;
};

// Reports a violation of the protocol by a peer. what() names the rule.
class FL_API ProtocolError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Reports that one side speaks TLS and the other one does not.
class FL_API TlsOnOneSide : public ProtocolError {
 public:
  using ProtocolError::ProtocolError;
};

// Reports that a frame has arrived with other bytes than were sent.
class FL_API DamagedFrame : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct FrameSizes {
  std::size_t header = 0, payload = 0;
};

// Maximum sizes of the two parts of a frame, in bytes.
struct FrameLimits {
  FrameLimits(std::uint64_t most_payload, std::size_t most_header = kMostHeaderBytes) : payload(most_payload), header(most_header) {}

  std::uint64_t payload;
  std::size_t header;
};

// Returns the sizes in 8 bytes. Throws ProtocolError if one of them exceeds its limit.
[[nodiscard]] FL_API FrameSizes read_sizes(std::span<const std::byte, kSizesBytes> bytes, const FrameLimits& limits);

// Returns the sizes announced by a frame's first bytes. Throws DamagedFrame if these are not what was sent, and ProtocolError as
// read_sizes().
[[nodiscard]] FL_API FrameSizes read_prefix(std::span<const std::byte, kPrefixBytes> prefix, const FrameLimits& limits);

// Throws DamagedFrame unless header and payload are what was sent.
FL_API void check_frame(std::span<const std::byte, kPrefixBytes> prefix, std::span<const std::byte> header,
                        std::span<const std::byte> payload);

// Returns the header. Memory is bounded by a multiple of its bytes, whatever lengths they announce. Throws ProtocolError for bytes that are
// not one valid message, and for an unknown kind.
[[nodiscard]] FL_API wire::Header parse_header(std::span<const std::byte> bytes);

// A received frame.
struct Frame {
  wire::Header header;
  ReceivedBytes payload;
  std::size_t header_bytes = 0;  // that arrived
};

// A frame ready to be sent: prefix and header, and the payload in one or more pieces that several frames may share.
struct OutgoingFrame {
  Bytes head;
  std::vector<std::shared_ptr<const Bytes>> payload;
  std::uint64_t payload_hash = 0;  // XXH64 of all pieces

  [[nodiscard]] FL_API std::size_t payload_bytes() const;
};

// Returns the sizes of a frame and its header, without checksums: the form in which frames are stored. Throws ProtocolError for a header of
// more than kMostHeaderBytes.
[[nodiscard]] FL_API Bytes stored_head(const wire::Header& header, std::size_t payload_bytes);

// Returns a frame with the payload of another one, which is not read again. Throws ProtocolError as stored_head() does.
[[nodiscard]] FL_API OutgoingFrame make_frame(const wire::Header& header, const OutgoingFrame& with_payload);

// Makes a frame. Throws ProtocolError as stored_head() does.
[[nodiscard]] FL_API OutgoingFrame make_frame(const wire::Header& header, std::vector<std::shared_ptr<const Bytes>> payload = {});

}  // namespace fl::net
