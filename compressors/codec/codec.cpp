#include "compressors/codec/codec.hpp"

#include <algorithm>
#include <memory>
#include <string>

#include "compressors/codec/bit_stream.hpp"
#include "compressors/codec/codec_header.hpp"
#include "compressors/codec/finite.hpp"
#include "compressors/codec/level_coder.hpp"
#include "compressors/codec/positions.hpp"
#include "compressors/codec/values.hpp"
#include "fl_core/message/payload_segments.hpp"

namespace fl::codec {

namespace {

[[noreturn]] void throw_contradiction(const std::string& what, std::size_t is, std::size_t expected) {
  throw Error("a compressor's message has " + std::to_string(is) + " " + what + " where its scope asks for " + std::to_string(expected));
}

void expect_count(const char* what, std::size_t is, std::size_t expected) {
  if (is != expected) throw_contradiction(what, is, expected);
}

template <class T>
void check_factors(const Payload<T>& message, const Scope& scope, bool own_shape) {
  expect_count("ranks", message.counts.size(), own_shape ? 0 : scope.segments.size());
  std::size_t numbers = 0;
  for (std::size_t s = 0; s < message.counts.size(); ++s) {
    const Segment& m = scope.segments[s];
    const std::size_t rank = message.counts[s];
    if (rank > m.rows || rank > m.cols) throw_contradiction("as the rank of a matrix", rank, m.rows < m.cols ? m.rows : m.cols);
    numbers += rank * (m.rows + m.cols);
  }
  expect_count("numbers in factors", message.num_sent, numbers);
  if (message.values != kNativeWire<T>) throw Error("a compressor's message has factors in another precision than the run's");
}

// Throws Error unless the sizes of a message agree with its scope. Indices are checked when they are read.
template <class T>
void check_sizes(const Payload<T>& message, const Scope& scope, bool own_shape) {
  const std::size_t segments = own_shape ? 1 : scope.segments.size();
  if (message.positions == Positions::all) {
    expect_count("entries", message.num_sent, own_shape ? message.length : num_compressed(scope));
  } else if (message.positions == Positions::factors) {
    check_factors(message, scope, own_shape);
  } else {
    expect_count("counts", message.counts.size(), segments);
    expect_count("positions", message.index.size(), message.num_sent);
    std::size_t sent = 0;
    for (const std::uint32_t count : message.counts) sent += count;
    expect_count("entries", message.num_sent, sent);
  }
  if (message.values == WireValue::levels) {
    expect_count("bytes of levels", message.level_bytes.size(), message.num_sent * static_cast<std::size_t>(message.level_width));
    const std::size_t n = scales_per_segment(message.level_format);
    if (message.scale.size() != num_sending(message, segments) * n) expect_count("scales", message.scale.size(), segments * n);
  } else {
    expect_count("values", message.value.size(), message.num_sent);
  }
  if (!message.excluded.empty()) expect_count("excluded values", message.excluded.size(), own_shape ? 0 : num_excluded(scope));
}

// Returns the plan for a message's levels, or an empty one if it has none.
template <class T>
[[nodiscard]] LevelPlan plan_of(const Payload<T>& message, const Tally& tally = {}) {
  return message.values == WireValue::levels ? plan_levels(message, tally.levels) : LevelPlan{};
}

// ---- length ----

// Returns the bits of a list's positions and scales. Positions that the receiver derives take none.
template <class T>
std::uint64_t list_bits(const Payload<T>& message, std::span<const Segment> segments, const Tally& tally) {
  std::uint64_t bits = 0;
  const std::uint32_t* index = message.index.data();
  const std::uint64_t per_segment = scale_bits(message);
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const std::size_t count = message.counts[s];
    if (!message.has_known_positions())
      bits += tally.positions.empty() ? plan_positions({index, count}, segments[s]).bits : tally.positions[s];
    bits += count > 0 ? per_segment : 0;
    index += count;
  }
  return bits;
}

template <class T>
std::uint64_t part_bits(const Payload<T>& message, const Scope& scope, const KnownLevels& known, const Tally& tally = {}) {
  const HeaderShape<T> shape(message, scope);
  check_sizes(message, scope, shape.own);
  std::uint64_t bits = 1 + kValuesBits + (shape.asks_plain ? 1 : 0) + (shape.asks_extras ? 1 : 0);
  const LevelPlan levels = plan_of(message, tally);
  if (message.values == WireValue::levels) bits += levels_header_bits(message.level_format, known);
  Segment plain;
  const auto segments = message_segments(scope, shape.own, message.length, plain);
  if (message.positions == Positions::list) {
    bits += list_bits(message, segments, tally);
  } else if (message.positions == Positions::factors) {
    for (const std::uint32_t rank : message.counts) bits += gamma_bits(std::uint64_t{rank} + 1);
  } else if (message.num_sent > 0) {
    bits += segments.size() * scale_bits(message);
  }
  const std::uint64_t raw = message.num_sent * static_cast<std::uint64_t>(bits_of(message.values));
  return bits + raw + levels.bits + message.excluded.size() * std::uint64_t{kNativeBits<T>};
}

template <class T>
std::uint64_t channel_bits(const Channel<T>& channel) {
  const Payload<T>& message = *channel.payload;
  const Scope& scope = *channel.scope;
  if (message.rest == nullptr) return part_bits(message, scope, channel.levels.first, channel.tally);
  return 1 + kValuesBits + part_bits(message, scope, channel.levels.first) + part_bits(*message.rest, scope, channel.levels.rest);
}

}  // namespace

template <class T>
void check_message(const Payload<T>& message, const Scope& scope) {
  check_sizes(message, scope, has_own_shape(message, scope));
}

template <class T>
bool is_silent(std::span<const Channel<T>> channels) {
  for (const Channel<T>& channel : channels) {
    if (!channel.payload->silent) return false;
  }
  return true;
}

template <class T>
std::uint64_t encoded_bits(std::span<const Channel<T>> channels, std::span<std::uint64_t> of_channel, std::size_t num_beside) {
  std::uint64_t bits = kVersionBits + 1;
  if (!is_silent(channels)) {
    bits += gamma_bits(channels.size());
    bits += channels.size() > 1 ? channels.size() : 0;
    for (std::size_t c = 0; c < channels.size(); ++c) {
      const std::uint64_t own = channels[c].payload->silent ? 0 : channel_bits(channels[c]);
      if (!of_channel.empty()) of_channel[c] = own;
      bits += own;
    }
    bits += num_beside * std::uint64_t{kNativeBits<T>};
  }
  return (bits + 7) / 8 * 8;
}

// ---- writing ----

namespace {

// Writes one segment. row: row of the segment's scales
template <class T>
void write_segment(BitWriter& writer, const Payload<T>& message, LevelCoding coding, const Segment& segment, std::size_t row,
                   std::size_t first, std::size_t count) {
  if (message.positions == Positions::list && !message.has_known_positions()) {
    const std::span<const std::uint32_t> index{message.index.data() + first, count};
    write_positions(writer, plan_positions(index, segment), index, segment);
  }
  if (count == 0) return;
  if (message.values == WireValue::levels) {
    const std::size_t n = scales_per_segment(message.level_format);
    write_raw(writer, message.scale.data() + row * n, n, kNativeWire<T>);
    if (coding == LevelCoding::fixed_width) write_levels(writer, message, first, count);
  } else {
    write_raw(writer, message.value.data() + first, count, message.values);
  }
}

template <class T>
void write_part(BitWriter& writer, const Payload<T>& message, const Scope& scope, const KnownLevels& known) {
  const HeaderShape<T> shape(message, scope);
  check_sizes(message, scope, shape.own);
  writer.put(message.positions == Positions::list ? 1 : 0, 1);
  const bool has_factors = message.positions == Positions::factors;
  writer.put(has_factors ? kFactors : static_cast<std::uint64_t>(message.values), kValuesBits);
  if (shape.asks_plain) writer.put(shape.own ? 1 : 0, 1);
  if (shape.asks_extras) writer.put(message.excluded.empty() ? 0 : 1, 1);
  const LevelPlan levels = plan_of(message);
  const LevelCoding coding = levels.coded ? LevelCoding::coded : LevelCoding::fixed_width;
  if (message.values == WireValue::levels) write_levels_header(writer, message.level_format, known, coding);

  Segment plain;
  const auto segments = message_segments(scope, shape.own, message.length, plain);
  const bool skips = has_sending_scales_alone(message, segments.size());
  std::size_t first = 0, row = 0;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const std::size_t rank = has_factors ? message.counts[s] : 0;
    const std::size_t count = has_factors                            ? rank * (segments[s].rows + segments[s].cols)
                              : message.positions == Positions::list ? message.counts[s]
                                                                     : segments[s].size();
    if (has_factors) writer.put_gamma(rank + 1);
    write_segment(writer, message, coding, segments[s], row, first, count);
    row += count > 0 || !skips ? 1 : 0;
    first += count;
  }
  if (levels.coded) write_coded_levels(writer, levels, message);
  write_raw(writer, message.excluded.data(), message.excluded.size(), kNativeWire<T>);
}

template <class T>
void write_channel(BitWriter& writer, const Channel<T>& channel) {
  const Payload<T>& message = *channel.payload;
  if (message.rest != nullptr) {
    writer.put(0, 1);
    writer.put(kSum, kValuesBits);
  }
  write_part(writer, message, *channel.scope, channel.levels.first);
  if (message.rest != nullptr) write_part(writer, *message.rest, *channel.scope, channel.levels.rest);
}

}  // namespace

template <class T>
void encode(std::span<const Channel<T>> channels, std::vector<std::byte>& out, std::span<const T> beside) {
  BitWriter writer(out);
  writer.put(kVersion, kVersionBits);
  const bool silent = is_silent(channels);
  writer.put(silent ? 1 : 0, 1);
  if (!silent) {
    writer.put_gamma(channels.size());
    for (const Channel<T>& channel : channels) {
      if (channels.size() > 1) writer.put(channel.payload->silent ? 1 : 0, 1);
      if (!channel.payload->silent) write_channel(writer, channel);
    }
    write_raw(writer, beside.data(), beside.size(), kNativeWire<T>);
  }
  writer.finish();
}

template void check_message<float>(const Payload<float>&, const Scope&);
template void check_message<double>(const Payload<double>&, const Scope&);
template bool is_silent<float>(std::span<const Channel<float>>);
template std::uint64_t encoded_bits<float>(std::span<const Channel<float>>, std::span<std::uint64_t>, std::size_t);
template void encode<float>(std::span<const Channel<float>>, std::vector<std::byte>&, std::span<const float>);
template bool is_silent<double>(std::span<const Channel<double>>);
template std::uint64_t encoded_bits<double>(std::span<const Channel<double>>, std::span<std::uint64_t>, std::size_t);
template void encode<double>(std::span<const Channel<double>>, std::vector<std::byte>&, std::span<const double>);

}  // namespace fl::codec
