#include "net/wire/frame.hpp"

#include <optional>

#include "fl_core/state/checksum.hpp"

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

// Reads or writes a number in little endian.
std::uint64_t word_in(std::span<const std::byte> bytes) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) word |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
  return word;
}
void write_word(std::uint64_t word, std::span<std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(word >> (8 * i) & 0xffu);
}

std::uint64_t hash_of(std::span<const std::byte> header, std::uint64_t payload_hash) {
  return Hash64().add(header).add_value(payload_hash).value();
}

constexpr std::size_t kChecked = kSizesBytes + 8;  // bytes of a prefix that its last ones are computed from

}  // namespace

FrameSizes read_sizes(std::span<const std::byte, kSizesBytes> bytes, const FrameLimits& limits) {
  const std::uint64_t word = word_in(bytes);
  const FrameSizes sizes{static_cast<std::size_t>(word & 0xffffffu), static_cast<std::size_t>(word >> 24)};
  if (sizes.header > limits.header)
    throw ProtocolError("a header announces " + std::to_string(sizes.header) + " bytes; at most " + std::to_string(limits.header) +
                        " are accepted here");
  if (sizes.payload > limits.payload)
    throw ProtocolError("a frame announces " + std::to_string(sizes.payload) + " bytes; at most " + std::to_string(limits.payload) +
                        " are accepted here");
  return sizes;
}

FrameSizes read_prefix(std::span<const std::byte, kPrefixBytes> prefix, const FrameLimits& limits) {
  if (word_in(prefix.subspan(kChecked)) != (hash64_of(prefix.first(kChecked)) & 0xffffffffu))
    throw DamagedFrame("a frame arrives damaged: its first bytes have another checksum");
  return read_sizes(prefix.first<kSizesBytes>(), limits);
}

void check_frame(std::span<const std::byte, kPrefixBytes> prefix, std::span<const std::byte> header, std::span<const std::byte> payload) {
  if (word_in(prefix.subspan(kSizesBytes, 8)) != hash_of(header, hash64_of(payload)))
    throw DamagedFrame("a frame arrives damaged: its bytes have another checksum");
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

namespace {

// Returns the sizes of a frame, `room` bytes for its checksums, and its header.
Bytes sizes_and_header(const wire::Header& header, std::size_t payload_bytes, std::size_t room) {
  const std::size_t header_bytes = header.ByteSizeLong(), begin = kSizesBytes + room;
  if (header_bytes > kMostHeaderBytes)
    throw ProtocolError("a header of " + std::to_string(header_bytes) + " bytes is longer than a frame can say");
  Bytes head(begin + header_bytes);
  write_word(header_bytes | static_cast<std::uint64_t>(payload_bytes) << 24, std::span(head).first(kSizesBytes));
  header.SerializeToArray(head.data() + begin, static_cast<int>(header_bytes));
  return head;
}

// Writes the head of a frame whose payload is complete.
void write_head(const wire::Header& header, OutgoingFrame& frame) {
  frame.head = sizes_and_header(header, frame.payload_bytes(), kPrefixBytes - kSizesBytes);
  const std::span<std::byte> prefix = std::span(frame.head).first(kPrefixBytes);
  write_word(hash_of(std::span(frame.head).subspan(kPrefixBytes), frame.payload_hash), prefix.subspan(kSizesBytes, 8));
  write_word(hash64_of(prefix.first(kChecked)), prefix.subspan(kChecked));
}

}  // namespace

Bytes stored_head(const wire::Header& header, std::size_t payload_bytes) { return sizes_and_header(header, payload_bytes, 0); }

OutgoingFrame make_frame(const wire::Header& header, const OutgoingFrame& with_payload) {
  OutgoingFrame frame{.head = {}, .payload = with_payload.payload, .payload_hash = with_payload.payload_hash};
  write_head(header, frame);
  return frame;
}

OutgoingFrame make_frame(const wire::Header& header, std::vector<std::shared_ptr<const Bytes>> payload) {
  Hash64 hash;
  for (const auto& piece : payload) hash.add(*piece);
  OutgoingFrame frame{.head = {}, .payload = std::move(payload), .payload_hash = hash.value()};
  write_head(header, frame);
  return frame;
}

}  // namespace fl::net
