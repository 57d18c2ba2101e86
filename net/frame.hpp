// Frames: the layout of a header and a payload in a byte stream.
//
//   8 bytes   little endian: bytes of the header (24 bits), bytes of the payload (40 bits)
//   header    a wire::Header (net/proto/wire.proto)
//   payload   raw bytes; the header states their meaning
// A reader knows the maximum size of a frame in advance (FrameLimits) and rejects a larger one after its first 8 bytes. Memory is allocated
// as bytes arrive, so that an announced size costs nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "wire.pb.h"

namespace fl::net {

namespace wire = ::fedbits::wire;

inline constexpr std::uint32_t kProtocol = 1;
inline constexpr std::size_t kPrefixBytes = 8;
inline constexpr std::size_t kMostHeaderBytes = 1 << 20;  // of what a server sends, which names all clients of a cohort

using Bytes = std::vector<std::byte>;

// Reports a violation of the protocol by a peer. what() names the rule.
class FL_API ProtocolError : public std::runtime_error {
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

// Returns the sizes announced by a frame's first bytes. Throws ProtocolError if one of them exceeds its limit.
[[nodiscard]] FL_API FrameSizes read_prefix(std::span<const std::byte, kPrefixBytes> prefix, const FrameLimits& limits);

// Returns the header. Memory is bounded by a multiple of its bytes, whatever lengths they announce. Throws ProtocolError for bytes that are
// not one valid message, and for an unknown kind.
[[nodiscard]] FL_API wire::Header parse_header(std::span<const std::byte> bytes);

// A received frame.
struct Frame {
  wire::Header header;
  Bytes payload;
  std::size_t header_bytes = 0;  // that arrived
};

// A frame ready to be sent: prefix and header, and the payload in one or more pieces that several frames may share.
struct OutgoingFrame {
  Bytes head;
  std::vector<std::shared_ptr<const Bytes>> payload;

  [[nodiscard]] FL_API std::size_t payload_bytes() const;
};

// Makes a frame. Throws ProtocolError for a header of more than kMostHeaderBytes.
[[nodiscard]] FL_API OutgoingFrame make_frame(const wire::Header& header, std::vector<std::shared_ptr<const Bytes>> payload = {});

}  // namespace fl::net
