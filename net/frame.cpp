#include "net/frame.hpp"

#include <optional>

namespace fl::net {

namespace {

// Reads a number of Protocol Buffers and removes its bytes; nothing if it does not end.
std::optional<std::uint64_t> take_varint(std::span<const std::byte>& bytes) {
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = std::to_integer<std::uint64_t>(bytes.front());
    bytes = bytes.subspan(1);
    number |= (byte & 127) << shift;
    if (byte < 128) return number;
  }
  return std::nullopt;
}

// Returns whether the bytes are one field that holds a message, as every header is: there is nothing else in it to be merged or kept.
bool is_one_message(std::span<const std::byte> bytes) {
  constexpr std::uint64_t kMessage = 2;  // type of a field with a length
  const std::optional<std::uint64_t> key = take_varint(bytes);
  const std::optional<std::uint64_t> size = take_varint(bytes);
  return key && size && (*key & 7) == kMessage && *size == bytes.size();
}

}  // namespace

FrameSizes read_prefix(std::span<const std::byte, kPrefixBytes> prefix, const FrameLimits& limits) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < kPrefixBytes; ++i) word |= static_cast<std::uint64_t>(prefix[i]) << (8 * i);
  const FrameSizes sizes{static_cast<std::size_t>(word & 0xffffffu), static_cast<std::size_t>(word >> 24)};
  if (sizes.header > limits.header)
    throw ProtocolError("a header announces " + std::to_string(sizes.header) + " bytes; at most " + std::to_string(limits.header) +
                        " are accepted here");
  if (sizes.payload > limits.payload)
    throw ProtocolError("a frame announces " + std::to_string(sizes.payload) + " bytes; at most " + std::to_string(limits.payload) +
                        " are accepted here");
  return sizes;
}

wire::Header parse_header(std::span<const std::byte> bytes) {
  wire::Header header;
  // An array, because a reader of a stream does not know its end, and takes memory for the announced length of a text.
  if (!is_one_message(bytes) || !header.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    throw ProtocolError("a header cannot be read");
  if (header.kind_case() == wire::Header::KIND_NOT_SET) throw ProtocolError("a header is of no known kind");
  return header;
}

std::size_t OutgoingFrame::payload_bytes() const {
  std::size_t bytes = 0;
  for (const auto& piece : payload) bytes += piece->size();
  return bytes;
}

Bytes head_of_frame(const wire::Header& header, std::size_t payload_bytes) {
  const std::size_t header_bytes = header.ByteSizeLong();
  if (header_bytes > kMostHeaderBytes)
    throw ProtocolError("a header of " + std::to_string(header_bytes) + " bytes is longer than a frame can say");
  const std::uint64_t word = header_bytes | static_cast<std::uint64_t>(payload_bytes) << 24;
  Bytes head(kPrefixBytes + header_bytes);
  for (std::size_t i = 0; i < kPrefixBytes; ++i) head[i] = static_cast<std::byte>(word >> (8 * i) & 0xffu);
  header.SerializeToArray(head.data() + kPrefixBytes, static_cast<int>(header_bytes));
  return head;
}

OutgoingFrame make_frame(const wire::Header& header, std::vector<std::shared_ptr<const Bytes>> payload) {
  OutgoingFrame frame{.head = {}, .payload = std::move(payload)};
  frame.head = head_of_frame(header, frame.payload_bytes());
  return frame;
}

}  // namespace fl::net
