#include <algorithm>
#include <memory>
#include <string>

#include "compressors/codec/bit_stream.hpp"
#include "compressors/codec/codec.hpp"
#include "compressors/codec/codec_header.hpp"
#include "compressors/codec/finite.hpp"
#include "compressors/codec/level_coder.hpp"
#include "compressors/codec/positions.hpp"
#include "compressors/codec/values.hpp"
#include "fl_core/message/payload_segments.hpp"

namespace fl::codec {

namespace {

constexpr const char* kHeaderTooShort = "the message ends inside a header";

// Resizes the buffer to `size`, which is at most `most`. The buffer grows in steps that keep old and new memory together below 3/2 of
// `most`.
template <class B>
void grow(Buffer<B>& buffer, std::size_t size, std::size_t most) {
  if (size > buffer.capacity()) {
    const std::size_t half = most / 2;
    Buffer<B> larger(size > half ? most : std::min(2 * size, half), buffer.device());
    copy_bytes(larger.data(), larger.device(), buffer.data(), buffer.device(), buffer.size() * sizeof(B));
    buffer.swap(larger);
  }
  buffer.resize_discard(size);
}

// The contents of a channel's header that are not fields of the payload.
struct Announced {
  bool own_shape = false;
  bool extras = false;
  LevelCoding coding = LevelCoding::fixed_width;
  std::size_t most_entries = 0;               // upper bound on entries by the vector's length and the remaining bytes
  std::size_t most_scales = 0;                // the same bound for rows of scales
  const KnownPositions* positions = nullptr;  // of a list whose positions do not travel
};

// Returns the bits of an entry's value. Coded levels have no fixed number of bits.
template <class T>
[[nodiscard]] std::uint64_t entry_bits(const Payload<T>& message) {
  return message.values == WireValue::levels ? message.level_format.bits : static_cast<std::uint64_t>(bits_of(message.values));
}

// Returns the largest number of entries that the bits can represent.
template <class T>
[[nodiscard]] std::uint64_t entries_in(const Payload<T>& message, LevelCoding coding, std::uint64_t bits) {
  return coding == LevelCoding::coded ? (bits + 1) * kLevelsPerBit : bits / entry_bits(message);
}

// Makes room for `count` more entries.
template <class T>
void grow(Payload<T>& message, std::size_t count, std::size_t most) {
  const std::size_t size = message.num_sent + count;
  if (message.positions == Positions::list) grow(message.index, size, most);
  if (message.values == WireValue::levels) {
    const auto width = static_cast<std::size_t>(message.level_width);
    grow(message.level_bytes, size * width, most * width);
  } else {
    grow(message.value, size, most);
  }
}

// Reads the rank of a matrix and makes room for the `count` numbers that follow.
template <class T>
std::string read_rank(BitReader& reader, Payload<T>& message, const Segment& segment, std::size_t s, std::size_t& count) {
  const std::uint64_t code = reader.get_gamma();
  if (code == 0 || code - 1 > segment.rows || code - 1 > segment.cols) return "a rank that the matrix cannot have";
  count = static_cast<std::size_t>(code - 1) * (segment.rows + segment.cols);
  if (count * std::uint64_t{kNativeBits<T>} > reader.remaining()) return "the message ends inside the factors";
  message.counts[s] = static_cast<std::uint32_t>(code - 1);
  grow(message, count, message.num_sent + static_cast<std::size_t>(reader.remaining() / kNativeBits<T>));
  return "";
}

// Reads the scales of the next segment that sends anything.
template <class T>
std::string read_scales(BitReader& reader, Payload<T>& message, std::size_t most) {
  const std::size_t n = scales_per_segment(message.level_format), row = message.scale.size();
  if (n * std::uint64_t{kNativeBits<T>} > reader.remaining()) return "the message ends inside the scales";
  grow(message.scale, row + n, std::max(most, row + n));
  const std::string wrong = read_raw(reader, message.scale.data() + row, n, kNativeWire<T>);
  return wrong.empty() ? "" : "scale: " + wrong;
}

template <class T>
std::string read_segment(BitReader& reader, Payload<T>& message, const Announced& header, const Segment& segment, std::size_t s) {
  const std::size_t first = message.num_sent;
  std::size_t count = segment.size();
  if (message.positions == Positions::factors) {
    if (std::string wrong = read_rank(reader, message, segment, s, count); !wrong.empty()) return wrong;
  }
  if (message.has_known_positions()) {
    count = header.positions->counts[s];
    if (count > segment.size()) return "a segment is shorter than the list of its known positions";
    if (count > entries_in(message, header.coding, reader.remaining()))
      return "the message ends before its " + std::to_string(count) + " values";
    message.counts[s] = static_cast<std::uint32_t>(count);
    grow(message, count, header.most_entries);
    std::fill_n(message.index.data() + first, count, 0u);  // until reconstruct() draws them
  } else if (message.positions == Positions::list) {
    if (std::string wrong = read_count(reader, segment, count); !wrong.empty()) return wrong;
    if (count > entries_in(message, header.coding, reader.remaining()) || message.num_sent + count > header.most_entries)
      return std::to_string(count) + " positions are announced, but the message ends before";
    message.counts[s] = static_cast<std::uint32_t>(count);
    grow(message, count, header.most_entries);
    if (std::string wrong = read_positions(reader, segment, count, message.index.data() + first); !wrong.empty()) return wrong;
  }
  message.num_sent += count;
  if (message.values != WireValue::levels) return read_raw(reader, message.value.data() + first, count, message.values);
  if (count == 0) return "";
  if (std::string wrong = read_scales(reader, message, header.most_scales); !wrong.empty()) return wrong;
  return header.coding == LevelCoding::coded ? "" : read_levels(reader, message, first, count);
}

// Reads positions, values, flags and the header of levels.
template <class T>
std::string read_channel_header(BitReader& reader, Payload<T>& message, const Scope& scope, const KnownLevels& known, bool is_list,
                                std::uint64_t values, Announced& header) {
  message.positions = is_list ? Positions::list : Positions::all;
  const bool has_factors = values == kFactors && message.positions == Positions::all;
  if (values > static_cast<std::uint64_t>(WireValue::bf16) && !has_factors) return "unknown format of values";
  message.values = has_factors ? kNativeWire<T> : static_cast<WireValue>(values);
  if (has_factors) message.positions = Positions::factors;
  if (has_factors && message.length != scope.P) return "factors of a vector without matrices";
  header.own_shape = message.length != scope.P;
  if (!header.own_shape && has_gaps(scope) && message.positions == Positions::all) header.own_shape = reader.get(1) != 0;
  header.extras = !header.own_shape && !scope.excluded.empty() && reader.get(1) != 0;
  if (message.values == WireValue::levels) {
    if (std::string wrong = read_levels_header(reader, known, message.level_format, header.coding); !wrong.empty()) return wrong;
    message.level_width = narrowest_width(message.level_format);
  }
  return reader.past_end() ? kHeaderTooShort : "";
}

// Makes room for the announced entries, if the remaining bytes can hold them.
template <class T>
std::string make_room(const BitReader& reader, Payload<T>& message, Announced& header, std::size_t segments, std::size_t entries) {
  std::uint64_t bits = message.has_known_positions() ? 0 : segments;  // a count takes at least one bit
  if (message.positions == Positions::all) {
    bits = header.coding == LevelCoding::coded ? entries / kLevelsPerBit : entries * entry_bits(message);
    bits += entries > 0 ? segments * scale_bits(message) : 0;
  }
  if (bits > reader.remaining()) {
    return "the message ends " + std::to_string(bits - reader.remaining()) + " bits before what its header announces";
  }
  header.most_entries = static_cast<std::size_t>(std::min<std::uint64_t>(entries, entries_in(message, header.coding, reader.remaining())));
  if (message.values == WireValue::levels)
    header.most_scales =
        std::min(segments * scales_per_segment(message.level_format), static_cast<std::size_t>(reader.remaining() / kNativeBits<T>));
  if (message.positions == Positions::all) {
    grow(message, entries, entries);
  } else {
    message.counts.resize_discard(segments);
  }
  return "";
}

// Reads the rest of a channel after its first two fields.
template <class T>
std::string read_part(BitReader& reader, Payload<T>& message, const Scope& scope, const KnownLevels& known, bool is_list,
                      std::uint64_t values, const KnownPositions* positions = nullptr) {
  Announced header;
  if (std::string wrong = read_channel_header(reader, message, scope, known, is_list, values, header); !wrong.empty()) return wrong;
  Segment plain;
  const auto segments = message_segments(scope, header.own_shape, message.length, plain);
  const std::size_t entries = header.own_shape ? message.length : num_compressed(scope);
  message.set_known_positions(is_list && positions != nullptr && positions->counts.size() == segments.size());
  header.positions = positions;
  if (std::string wrong = make_room(reader, message, header, segments.size(), entries); !wrong.empty()) return wrong;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    if (const std::string wrong = read_segment(reader, message, header, segments[s], s); !wrong.empty()) {
      return "segment " + std::to_string(s) + ": " + wrong;
    }
  }
  if (header.coding == LevelCoding::coded) {
    if (std::string wrong = read_coded_levels(reader, message); !wrong.empty()) return wrong;
  }
  if (!is_finite(message, scope)) return "an entry stands for a number that is not finite";
  if (!header.extras) return "";
  const std::size_t excluded = num_excluded(scope);
  if (reader.remaining() < excluded * std::uint64_t{kNativeBits<T>}) return "the message ends inside the excluded tensors";
  message.excluded.resize_discard(excluded);
  const std::string wrong = read_raw(reader, message.excluded.data(), excluded, kNativeWire<T>);
  return wrong.empty() ? "" : "excluded tensors: " + wrong;
}

template <class T>
std::string read_channel(BitReader& reader, Payload<T>& message, const Scope& scope, const MessageLevels& levels) {
  bool is_list = reader.get(1) != 0;
  std::uint64_t values = reader.get(kValuesBits);
  if (is_list || values != kSum) return read_part(reader, message, scope, levels.first, is_list, values, levels.positions);
  message.rest = std::make_unique<Payload<T>>();
  message.rest->clear(message.length);
  for (Payload<T>* part : {&message, message.rest.get()}) {
    is_list = reader.get(1) != 0;
    values = reader.get(kValuesBits);
    if (std::string wrong = read_part(reader, *part, scope, part == &message ? levels.first : levels.rest, is_list, values); !wrong.empty())
      return wrong;
  }
  if (!message.rest->excluded.empty()) return "excluded tensors travel twice";
  return is_finite(message, scope) ? "" : "the sum of its two vectors is not finite";
}

template <class T>
std::string read_channels(BitReader& reader, std::span<const Scope* const> scopes, std::span<Payload<T>* const> payloads,
                          std::span<const MessageLevels> levels, std::span<T> beside) {
  const std::uint64_t channels = reader.get_gamma();
  if (channels != payloads.size()) {
    return "the message has " + std::to_string(channels) + " channels where the scenario has " + std::to_string(payloads.size());
  }
  for (std::size_t c = 0; c < payloads.size(); ++c) {
    payloads[c]->silent = channels > 1 && reader.get(1) != 0;
    if (payloads[c]->silent) continue;
    if (const std::string wrong = read_channel(reader, *payloads[c], *scopes[c], levels.empty() ? MessageLevels{} : levels[c]);
        !wrong.empty()) {
      return "channel " + std::to_string(c) + ": " + wrong;
    }
  }
  if (reader.remaining() < beside.size() * std::uint64_t{kNativeBits<T>}) return "the message ends inside the values beside its channels";
  const std::string wrong = read_raw(reader, beside.data(), beside.size(), kNativeWire<T>);
  return wrong.empty() ? "" : "values beside the channels: " + wrong;
}

// Returns an error unless only zeros up to the whole byte remain.
std::string read_end(BitReader& reader) {
  if (reader.past_end()) return kHeaderTooShort;
  const std::uint64_t left = reader.remaining();
  if (left >= 8) return std::to_string(left / 8) + " bytes follow the end of the message";
  return reader.get(static_cast<unsigned>(left)) == 0 ? "" : "the padding of the last byte is not zero";
}

}  // namespace

template <class T>
Result<std::uint64_t> decode(std::span<const std::byte> bytes, std::span<const Scope* const> scopes, std::span<const std::size_t> lengths,
                             std::span<Payload<T>* const> payloads, std::span<const MessageLevels> levels, std::span<T> beside) {
  if (scopes.size() != payloads.size() || lengths.size() != payloads.size() || (!levels.empty() && levels.size() != payloads.size())) {
    throw Error("decode() needs a scope, a length and the known levels of each of " + std::to_string(payloads.size()) + " channels");
  }
  for (std::size_t c = 0; c < payloads.size(); ++c) payloads[c]->clear(lengths[c]);
  if (bytes.empty()) return DecodeError{.reason = "the message is empty", .bit = 0};
  BitReader reader(bytes);
  if (const std::uint64_t version = reader.get(kVersionBits); version != kVersion) {
    return DecodeError{.reason = "wire format " + std::to_string(version) + " where " + std::to_string(kVersion) + " is understood",
                       .bit = 0};
  }
  const bool silent = reader.get(1) != 0;
  for (Payload<T>* payload : payloads) payload->silent = silent;
  std::string wrong = silent ? "" : read_channels(reader, scopes, payloads, levels, beside);
  if (wrong.empty()) wrong = read_end(reader);
  if (!wrong.empty()) return DecodeError{.reason = std::move(wrong), .bit = static_cast<std::size_t>(reader.position())};
  return reader.position();
}

template Result<std::uint64_t> decode<float>(std::span<const std::byte>, std::span<const Scope* const>, std::span<const std::size_t>,
                                             std::span<Payload<float>* const>, std::span<const MessageLevels>, std::span<float>);
template Result<std::uint64_t> decode<double>(std::span<const std::byte>, std::span<const Scope* const>, std::span<const std::size_t>,
                                              std::span<Payload<double>* const>, std::span<const MessageLevels>, std::span<double>);

}  // namespace fl::codec
