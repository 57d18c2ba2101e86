#include "compressors/codec/finite.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "compressors/codec/values.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "fl_core/message/payload_segments.hpp"

namespace fl::codec {

namespace {

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

// Returns x, or infinity for NaN.
template <class T>
[[nodiscard]] T or_infinity(T x) {
  return x < kInfinity<T> ? x : kInfinity<T>;
}

// ---- levels ----

[[nodiscard]] bool is_small_float(LevelMap map) { return map == LevelMap::fp8_e4m3 || map == LevelMap::fp8_e5m2; }

// Returns the largest |level|. For 8-bit floats it is the largest code without its sign: codes have the order of the magnitudes, followed
// by infinity and NaN.
template <class L>
[[nodiscard]] std::int64_t largest_level(const L* level, std::size_t n, LevelMap map) {
  if (is_small_float(map)) {
    std::uint8_t most = 0;
    for (std::size_t i = 0; i < n; ++i) most = std::max(most, static_cast<std::uint8_t>(static_cast<std::uint8_t>(level[i]) & 0x7f));
    return most;
  }
  L least = 0, most = 0;
  for (std::size_t i = 0; i < n; ++i) {
    least = std::min(least, level[i]);
    most = std::max(most, level[i]);
  }
  return std::max(-std::int64_t{least}, std::int64_t{most});
}

template <class T>
[[nodiscard]] std::int64_t largest_level(const Payload<T>& message, std::size_t first, std::size_t count) {
  const LevelMap map = message.level_format.map;
  switch (message.level_width) {
    case LevelWidth::w8: return largest_level(message.template levels<std::int8_t>() + first, count, map);
    case LevelWidth::w16: return largest_level(message.template levels<std::int16_t>() + first, count, map);
    case LevelWidth::w32: break;
  }
  return largest_level(message.template levels<std::int32_t>() + first, count, map);
}

// As largest_level(), from the number of occurrences of each level.
[[nodiscard]] std::int64_t largest_counted(std::span<const std::uint32_t> counted, const LevelFormat& format) {
  std::int64_t most = 0;
  for (std::size_t i = 0; i < counted.size(); ++i) {
    if (counted[i] == 0) continue;
    const std::int64_t level = format.min_level + static_cast<std::int64_t>(i);
    most = std::max(most, is_small_float(format.map) ? level & 0x7f : std::abs(level));
  }
  return most;
}

[[nodiscard]] std::int64_t largest_of_format(const LevelFormat& format) {
  if (is_small_float(format.map)) return 0x7f;
  return std::max(std::abs(std::int64_t{format.min_level}), std::abs(std::int64_t{max_level(format)}));
}

// Returns a bound on the numbers that levels up to `most` represent at a scale of this magnitude. The numbers of a table are its scales.
template <class T>
[[nodiscard]] T number_of(const LevelFormat& format, std::int64_t most, T scale) {
  switch (format.map) {
    case LevelMap::linear: return or_infinity(std::fabs(static_cast<T>(most) * (scale * static_cast<T>(format.unit))));
    case LevelMap::power_of_two: {
      if (most == 0) return 0;
      constexpr std::int64_t kBeyond = 4096;  // no T has such exponents
      const std::int64_t exponent = std::clamp(most - 1 + format.min_exponent, -kBeyond, kBeyond);
      return or_infinity(static_cast<T>(std::ldexp(1.0, static_cast<int>(exponent))) * scale);
    }
    case LevelMap::fp8_e4m3:
    case LevelMap::fp8_e5m2: return or_infinity(fp8_value<T>(format.map, static_cast<std::int32_t>(most)) * scale);
    case LevelMap::sign:
    case LevelMap::two_values:
    case LevelMap::table:
    case LevelMap::dynamic_tree: break;
  }
  return scale;
}

// Calls visit(row of scales, first entry, entries) for every segment that sends anything, until a call returns false.
template <class T, class Visit>
bool for_each_sending(const Payload<T>& message, std::span<const Segment> segments, Visit visit) {
  const bool skips = has_sending_scales_alone(message, segments.size());
  const std::size_t n = scales_per_segment(message.level_format);
  std::size_t row = 0, first = 0;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const std::size_t count = message.positions == Positions::list ? message.counts[s] : segments[s].size();
    if (count > 0 && !visit(message.scale.data() + row * n, first, count)) return false;
    row += count > 0 || !skips ? 1 : 0;
    first += count;
  }
  return true;
}

// Tests level by level in segments whose largest level does not decide.
template <class T>
[[nodiscard]] bool levels_are_finite(const Payload<T>& message, std::span<const Segment> segments) {
  const LevelFormat& format = message.level_format;
  return for_each_sending(message, segments, [&](const T* scale, std::size_t first, std::size_t count) {
    const T largest = format.has_scale ? largest_magnitude(scale, scales_per_segment(format)) : T(1);
    if (!(largest < kInfinity<T>)) return false;
    if (number_of(format, largest_level(message, first, count), largest) < kInfinity<T>) return true;
    for (std::size_t i = first; i < first + count; ++i)
      if (!std::isfinite(level_value(format, message.level(i), scale))) return false;
    return true;
  });
}

// ---- factors ----

template <class T>
[[nodiscard]] bool factors_are_finite(const Payload<T>& message, const Scope& scope) {
  const T* left = message.value.data();
  for (std::size_t s = 0; s < scope.segments.size(); ++s) {
    const Segment& m = scope.segments[s];
    const std::size_t rank = message.counts[s];
    const T* right = left + m.rows * rank;
    for (std::size_t i = 0; rank > 0 && i < m.rows; ++i)
      for (std::size_t j = 0; j < m.cols; ++j)
        if (!std::isfinite(factor_entry(left, right, rank, i, j))) return false;
    left = right + m.cols * rank;
  }
  return largest_magnitude(message.value.data(), message.num_sent) < kInfinity<T>;
}

// ---- a message ----

// Returns an upper bound on the entries of the part. The bound is infinite if each entry must be tested or if one is not finite.
template <class T>
[[nodiscard]] T bound_of(const Payload<T>& message, const Tally& tally) {
  const auto largest = [&](double counted, const Buffer<T>& numbers) {
    return tally.has_magnitudes ? static_cast<T>(counted) : largest_magnitude(numbers.data(), numbers.size());
  };
  const T excluded = largest(tally.largest_excluded, message.excluded);
  if (message.num_sent == 0) return excluded;
  if (message.values != WireValue::levels) {
    const T value = largest(tally.largest_value, message.value);
    if (message.positions != Positions::factors) return std::max(excluded, value);
    std::uint32_t rank = 0;
    for (const std::uint32_t count : message.counts) rank = std::max(rank, count);
    return std::max(excluded, or_infinity(T(2) * static_cast<T>(rank) * value * value));  // doubled, because each of the sums is rounded
  }
  const LevelFormat& format = message.level_format;
  const T scale = format.has_scale ? largest(tally.largest_scale, message.scale) : T(1);
  if (!(scale < kInfinity<T>)) return kInfinity<T>;
  T number = number_of(format, largest_of_format(format), scale);
  if (!(number < kInfinity<T>)) {
    const bool counted = !tally.levels.empty();
    const std::size_t stored = message.level_bytes.size() / static_cast<std::size_t>(message.level_width);
    number = number_of(format, counted ? largest_counted(tally.levels, format) : largest_level(message, 0, stored), scale);
  }
  return std::max(excluded, number);
}

template <class T>
[[nodiscard]] bool part_is_finite(const Payload<T>& message, const Scope& scope) {
  check_message(message, scope);
  if (!(largest_magnitude(message.excluded.data(), message.excluded.size()) < kInfinity<T>)) return false;
  if (message.positions == Positions::factors) return factors_are_finite(message, scope);
  if (message.values != WireValue::levels) return largest_magnitude(message.value.data(), message.num_sent) < kInfinity<T>;
  Segment plain;
  const bool own_shape = has_own_shape(message, scope);
  return levels_are_finite(message, message_segments(scope, own_shape, message.length, plain));
}

}  // namespace

template <class T>
T largest_magnitude(const T* v, std::size_t n) {
  using Bits = std::conditional_t<sizeof(T) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
  constexpr Bits kMagnitude = static_cast<Bits>(~Bits(0)) >> 1;
  Bits most = 0;  // the bits of magnitudes have the same order, with NaN above infinity
  for (std::size_t i = 0; i < n; ++i) {
    Bits bits = 0;
    std::memcpy(&bits, v + i, sizeof(bits));
    most = std::max(most, static_cast<Bits>(bits & kMagnitude));
  }
  T largest = 0;
  std::memcpy(&largest, &most, sizeof(most));
  return or_infinity(largest);
}

template <class T>
std::optional<std::size_t> first_not_finite(const T* v, std::size_t n) {
  if (largest_magnitude(v, n) < kInfinity<T>) return std::nullopt;
  const auto first = static_cast<std::size_t>(std::find_if(v, v + n, [](T x) { return !std::isfinite(x); }) - v);
  return first < n ? std::optional(first) : std::nullopt;
}

template <class T>
bool is_finite(const Payload<T>& message, const Scope& scope, const Tally& tally) {
  if (message.silent) return true;
  if (message.rest == nullptr) return bound_of(message, tally) < kInfinity<T> || part_is_finite(message, scope);
  if (bound_of(message, Tally{}) + bound_of(*message.rest, Tally{}) < kInfinity<T>) return true;
  if (!part_is_finite(message, scope) || !part_is_finite(*message.rest, scope)) return false;
  std::vector<T> sum(message.length);
  write_dense(message, scope, sum.data());
  return largest_magnitude(sum.data(), sum.size()) < kInfinity<T>;
}

template <class T>
bool needs_content(const Payload<T>& message, const Tally& tally) {
  if (message.silent) return false;
  const bool has_numbers = !message.value.empty() || !message.scale.empty() || !message.excluded.empty();
  const bool counts_levels = message.values != WireValue::levels || message.num_sent == 0 || !tally.levels.empty();
  const bool counts_positions =
      message.positions != Positions::list || message.has_known_positions() || message.num_sent == 0 || !tally.positions.empty();
  if (message.rest != nullptr || (has_numbers && !tally.has_magnitudes) || !counts_levels || !counts_positions) return true;
  return !(bound_of(message, tally) < kInfinity<T>);
}

template bool needs_content<float>(const Payload<float>&, const Tally&);
template bool needs_content<double>(const Payload<double>&, const Tally&);
template float largest_magnitude<float>(const float*, std::size_t);
template double largest_magnitude<double>(const double*, std::size_t);
template std::optional<std::size_t> first_not_finite<float>(const float*, std::size_t);
template std::optional<std::size_t> first_not_finite<double>(const double*, std::size_t);
template bool is_finite<float>(const Payload<float>&, const Scope&, const Tally&);
template bool is_finite<double>(const Payload<double>&, const Scope&, const Tally&);

}  // namespace fl::codec
