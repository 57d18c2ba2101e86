// Random scopes and payloads: every combination of positions, values, width and scope that the codec and the receivers' operations must
// support.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "compressors/codec/values.hpp"
#include "fl_core/message/half.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"
#include "fl_core/message/payload_segments.hpp"

namespace fl::test {

// A scope over `size` parameters without going through a model: pieces of about `piece` elements (0: one piece), and, if asked, tensors
// in the middle and at the end that are excluded.
inline Scope any_scope(std::size_t size, std::size_t piece, bool exclude) {
  Scope scope;
  scope.kind = piece == 0 ? ScopeKind::model : ScopeKind::bucket;
  scope.P = size;
  const std::size_t hole_begin = exclude ? size / 3 : size, hole_end = exclude ? size / 3 + size / 10 : size;
  const std::size_t tail = exclude && size > 4 ? size - 2 : size;
  const auto add = [](std::vector<Segment>& list, std::size_t begin, std::size_t end) {
    if (begin < end) list.push_back(Segment{.begin = begin, .end = end, .rows = end - begin, .cols = 1});
  };
  const auto cut = [&](std::size_t begin, std::size_t end) {
    for (std::size_t at = begin; at < end;) {
      const std::size_t next = piece == 0 ? end : std::min(end, at + piece);
      add(scope.segments, at, next);
      at = next;
    }
  };
  cut(0, std::min(hole_begin, tail));
  add(scope.excluded, hole_begin, hole_end);
  cut(hole_end, tail);
  add(scope.excluded, tail, size);
  return scope;
}

// The formats of the known quantisers, and odd ones.
inline std::vector<LevelFormat> level_formats() {
  const auto linear = [](std::int32_t min, int bits, double unit, bool scale) {
    return LevelFormat{
        .map = LevelMap::linear, .min_level = min, .bits = static_cast<std::uint8_t>(bits), .unit = unit, .has_scale = scale};
  };
  return {LevelFormat{.map = LevelMap::sign, .min_level = 0, .bits = 1},
          linear(-1, 2, 1, true),
          linear(-4, 4, 0.25, true),
          linear(-127, 8, 1.0 / 127, true),
          linear(-128, 8, 0.3, false),
          linear(0, 7, 1, true),
          linear(-40000, 17, 1.0 / 3, true),
          linear(3, 11, -2.5, false),
          linear(INT32_MIN, 32, 1e-6, false),
          LevelFormat{.map = LevelMap::power_of_two, .min_level = -255, .bits = 9, .min_exponent = -126, .has_scale = false},
          LevelFormat{.map = LevelMap::power_of_two, .min_level = -7, .bits = 4, .min_exponent = -3, .has_scale = true},
          two_value_format(),
          table_format(1),
          table_format(5, -2),
          table_format(256, -128),
          table_format(1000),
          dynamic_tree_format(),
          dynamic_tree_format(false),
          fp8_format(LevelMap::fp8_e4m3),
          fp8_format(LevelMap::fp8_e5m2, false)};
}

// Returns the receiver's knowledge of levels in this format: all of it if the format has a unit that is not sent.
inline MessageLevels known_of(const LevelFormat& format) {
  const bool describes_itself = format.map != LevelMap::linear || format.unit == 1 || format.unit == -1.0 / format.min_level;
  return describes_itself ? MessageLevels{} : all_known(format);
}

template <class T>
T random_value(std::mt19937_64& random, WireValue format) {
  const double x = std::normal_distribution<double>(0, 1)(random) * std::exp2(std::uniform_int_distribution<int>(-18, 8)(random));
  if (format == WireValue::fp16) return round_to_half(static_cast<T>(x));
  if (format == WireValue::bf16) return round_to_bfloat16(static_cast<T>(x));
  if (format == WireValue::fp32) return static_cast<T>(static_cast<float>(x));
  return static_cast<T>(x);
}

// Returns whether a level is finite at the scales that are drawn here.
template <class T>
bool is_number(const LevelFormat& format, std::int32_t level) {
  if (format.map == LevelMap::table || format.map == LevelMap::two_values) return true;
  return std::isfinite(level_value(format, level, format.has_scale ? T(4096) : T(1)));
}

template <class T>
void fill_levels(Payload<T>& message, std::size_t segments, std::mt19937_64& random) {
  const LevelFormat& format = message.level_format;
  message.level_width = codec::narrowest_width(format);
  message.level_bytes.resize_discard(message.num_sent * static_cast<std::size_t>(message.level_width));
  std::uniform_int_distribution<std::int32_t> level(format.min_level, codec::max_level(format));
  for (std::size_t i = 0; i < message.num_sent; ++i) {
    std::int32_t l = level(random);
    if (!is_number<T>(format, l)) l = 0;
    switch (message.level_width) {
      case LevelWidth::w8: message.template levels<std::int8_t>()[i] = static_cast<std::int8_t>(l); break;
      case LevelWidth::w16: message.template levels<std::int16_t>()[i] = static_cast<std::int16_t>(l); break;
      case LevelWidth::w32: message.template levels<std::int32_t>()[i] = l; break;
    }
  }
  const std::size_t per_segment = scales_per_segment(format);
  message.scale.resize_discard(segments * per_segment);
  for (std::size_t i = 0; i < segments * per_segment; ++i) {
    const bool sends = message.positions == Positions::all ? message.num_sent > 0 : message.counts[i / per_segment] > 0;
    message.scale[i] = sends ? random_value<T>(random, kNativeWire<T>) : T(0);
  }
}

// `share` of the parameters are kept where positions = list.
template <class T>
void fill_payload(Payload<T>& message, const Scope& scope, std::size_t length, Positions positions, WireValue values,
                  const LevelFormat& format, double share, std::mt19937_64& random) {
  message.clear(length);
  message.positions = positions;
  message.values = values;
  message.level_format = values == WireValue::levels ? format : LevelFormat{};
  message.level_width = LevelWidth::w8;
  const bool own_shape = length != scope.P;
  Segment plain;
  const auto segments = message_segments(scope, own_shape, length, plain);
  if (positions == Positions::all) {
    message.num_sent = own_shape ? length : num_compressed(scope);
  } else {
    message.counts.resize_discard(segments.size());
    std::vector<std::uint32_t> index;
    for (std::size_t s = 0; s < segments.size(); ++s) {
      const std::size_t before = index.size();
      for (std::size_t j = segments[s].begin; j < segments[s].end; ++j) {
        if (std::bernoulli_distribution(share)(random)) index.push_back(static_cast<std::uint32_t>(j));
      }
      message.counts[s] = static_cast<std::uint32_t>(index.size() - before);
    }
    message.num_sent = index.size();
    message.index.resize_discard(index.size());
    for (std::size_t i = 0; i < index.size(); ++i) message.index[i] = index[i];
  }
  if (values == WireValue::levels) {
    fill_levels(message, segments.size(), random);
  } else {
    message.value.resize_discard(message.num_sent);
    for (T& v : message.value) v = random_value<T>(random, values);
  }
  if (own_shape) return;
  message.excluded.resize_discard(num_excluded(scope));
  for (T& v : message.excluded) v = random_value<T>(random, kNativeWire<T>);
}

// Calls visit(message, scope) for every kind of message over vectors of `length`.
template <class T, class Visit>
void for_each_kind(std::size_t length, std::uint64_t seed, Visit visit) {
  std::mt19937_64 random(seed);
  Payload<T> message;
  const auto try_kind = [&](const Scope& scope, std::size_t message_length, WireValue values, const LevelFormat& format) {
    fill_payload(message, scope, message_length, Positions::all, values, format, 1, random);
    visit(message, scope);
    for (const double share : {0.0, 0.004, 0.2, 0.7, 1.0}) {
      fill_payload(message, scope, message_length, Positions::list, values, format, share, random);
      visit(message, scope);
    }
  };
  const auto try_values = [&](const Scope& scope, std::size_t message_length) {
    for (const WireValue values : {WireValue::fp64, WireValue::fp32, WireValue::fp16, WireValue::bf16}) {
      if (values == WireValue::fp64 && sizeof(T) < sizeof(double)) continue;
      try_kind(scope, message_length, values, LevelFormat{});
    }
    for (const LevelFormat& format : level_formats()) try_kind(scope, message_length, WireValue::levels, format);
  };
  for (const bool exclude : {false, true}) {
    for (const std::size_t piece : {std::size_t{0}, std::size_t{7}, length / 3 + 1}) try_values(any_scope(length, piece, exclude), length);
  }
  try_values(any_scope(2 * length + 11, 5, true), length);
}

}  // namespace fl::test
