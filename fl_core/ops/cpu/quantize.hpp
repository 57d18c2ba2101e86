// Levels for every parameter, fused: affine input, random words, quantiser, level store and new state in one pass over memory.
//
//   level_j = q(p_j, scale, word_j, segment),   c_j = level_value(format, level_j, scale),   state: p - c  or  0
//
// A quantiser is an FL_HD functor  (T p, T scale, std::uint32_t word, std::size_t segment) -> std::int32_t. It uses plain IEEE operations,
// so that a level is the same on every device, and its answer lies within the format's range whatever p is (NaN included). It may name the
// format's map, `using Map = std::integral_constant<LevelMap, ...>`, which saves compiling the others. Without streams the words are 0.
// Likewise `static constexpr LevelWidth kWidth` says that its levels always have that width, and `static constexpr bool kHasChance` that
// there are always streams or never any.
// word_j is word j of the client's stream (j = parameter index), so it depends on neither the scope nor the tiles.
// Where its second argument is a `const T*` the quantiser is given all numbers of the segment: its scales, or its parameters.
//
//   quantize_rows             takes the scales [K,S,n], n = scales_per_segment(format)
//   quantize_segments_fused   makes the scale (n = 1) from a norm of the segment; buckets up to one tile are then read from memory once;
//                             of larger segments p is kept in the state in between
//   encode_levels_rows        takes the scales, and beside them parameters [K,S,m] that are not sent and that the quantiser decides by
//                             (bounds between the entries of a table); reduce_rows, quantile_rows and for_each make both
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <type_traits>

#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"
#include "fl_core/ops/cpu/philox_tile.hpp"
#include "fl_core/ops/cpu/reduce.hpp"
#include "fl_core/ops/cpu/tile.hpp"
#include "fl_core/random/random.hpp"

namespace fl::cpu {
namespace detail {

// The rules of level_value with their constants taken out of the loop; the same expressions, so the same bits.
template <class T>
struct LinearValue {
  T step;
  T operator()(std::int32_t level) const { return static_cast<T>(level) * step; }
};
template <class T>
struct SignValue {
  T scale;
  T operator()(std::int32_t level) const { return level != 0 ? scale : -scale; }
};
// 2^e put together from its bits: e = |level| - 1 + min_exponent, biased and shifted where it is normal, a single bit where it is not.
template <class T>
struct PowerValue {
  using Int = std::conditional_t<sizeof(T) == sizeof(float), std::int32_t, std::int64_t>;
  static constexpr Int kMantissaBits = std::numeric_limits<T>::digits - 1, kBias = std::numeric_limits<T>::max_exponent - 1;
  static constexpr Int kDenormal = Int{1} << (kMantissaBits - 1);
  Int min_exponent;
  T scale;
  T operator()(std::int32_t level) const {
    const Int wide = level, size = wide < 0 ? -wide : wide;
    Int field = size - 1 + min_exponent + kBias;
    field = field < 2 * kBias + 1 ? field : 2 * kBias + 1;
    Int shift = field < 0 ? -field : 0;
    shift = shift < kMantissaBits ? shift : kMantissaBits;
    Int bits = field > 0 ? field << kMantissaBits : kDenormal >> shift;
    bits = size > 0 ? bits : 0;
    return std::bit_cast<T>(bits | (wide < 0 ? std::numeric_limits<Int>::min() : 0)) * scale;
  }
};
// The same for a format without a scale whose powers are the normal numbers from the smallest on and half of it: then neither a shift by a
// variable nor a comparison is needed. Level 1 is half the smallest number, which has the top bit of the mantissa; level l from 2 on has
// the exponent's field l - 1.
template <class T>
struct NormalPowerValue {
  using Int = typename PowerValue<T>::Int;
  [[nodiscard]] static bool holds(const LevelFormat& format) {
    return !format.has_scale && format.min_exponent + std::int64_t{PowerValue<T>::kBias} == 0 &&
           -std::int64_t{format.min_level} <= 2 * std::int64_t{PowerValue<T>::kBias} + 1;
  }
  T operator()(std::int32_t level) const {
    constexpr int kMantissaBits = PowerValue<T>::kMantissaBits;
    const Int wide = level, size = wide < 0 ? -wide : wide;
    const Int normal = (size - 1) << kMantissaBits, half = size << (kMantissaBits - 1);
    return std::bit_cast<T>((normal < half ? half : normal) | (wide & std::numeric_limits<Int>::min()));
  }
};

template <class T>
struct TwoValue {
  T low, high;
  T operator()(std::int32_t level) const { return level != 0 ? high : low; }
};
template <class T>
struct TableValue {
  const T* table;
  std::int32_t min_level;
  T operator()(std::int32_t level) const { return table[level - min_level]; }
};
// The dynamic tree at scale 1, of level + 127.
template <class T>
inline constexpr auto kDynamicTree = [] {
  std::array<T, 255> table{};
  for (std::int32_t level = -127; level <= 127; ++level) table[static_cast<std::size_t>(level + 127)] = static_cast<T>(dynamic_tree(level));
  return table;
}();
template <class T>
struct DynamicTreeValue {
  T scale;
  T operator()(std::int32_t level) const { return kDynamicTree<T>[static_cast<std::size_t>(level + 127)] * scale; }
};
template <class T, class F>
struct Fp8Value {
  T scale;
  T operator()(std::int32_t level) const { return small_float_value<F, T>(static_cast<std::uint8_t>(level)) * scale; }
};

template <class T>
struct LevelTile {
  alignas(64) T p[kTile];
  alignas(64) std::uint32_t words[kRandomTile];
};

// The random words of a quantiser without chance.
struct NoWords {
  std::uint32_t operator[](std::size_t) const { return 0; }
};

// level, message and state of a tile in one loop. Words: pointer or NoWords. `p` may be `state` itself: elements are read and written in
// place. Without random words the loop waits for memory, so that its input is asked for ahead.
template <class L, class T, class Words, class Numbers, class Quantizer, class Value>
FL_WIDE_VECTORS inline void quantize_tile(const T* p, Words word, std::size_t count, Numbers numbers, std::size_t segment, Quantizer q,
                                          Value value, L* __restrict out, T* state) {
  const auto quantize_from = [&](std::size_t first, std::size_t size) {
    FL_IVDEP
    for (std::size_t j = first; j < first + size; ++j) {
      const std::int32_t level = q(p[j], numbers, word[j], segment);
      out[j] = static_cast<L>(level);
      state[j] = p[j] - value(level);
    }
  };
  std::size_t j = 0;
  if constexpr (std::is_same_v<Words, NoWords>) {
    constexpr std::size_t kStrip = 64, kLine = 64 / sizeof(T);
    for (; j + kStrip <= count; j += kStrip) {
      for (std::size_t l = 0; l < kStrip; l += kLine) __builtin_prefetch(p + j + l + kPrefetched, 0, 2);
      quantize_from(j, kStrip);
    }
  }
  quantize_from(j, count - j);
}
// The same without a state.
template <class L, class T, class Words, class Numbers, class Quantizer>
FL_WIDE_VECTORS inline void quantize_tile(const T* p, Words word, std::size_t count, Numbers numbers, std::size_t segment, Quantizer q,
                                          L* __restrict out) {
  FL_IVDEP
  for (std::size_t j = 0; j < count; ++j) out[j] = static_cast<L>(q(p[j], numbers, word[j], segment));
}

// Where the entries of a segment go in the message, and the scales that the receiver will use.
template <class T>
struct SegmentTarget {
  std::size_t segment, offset;
  const T* scale;
};

// Quantises one client's vector piece by piece. Numbers: what the quantiser is given, T or const T*.
template <class T, class Quantizer>
class RowQuantizer {
 public:
  RowQuantizer(const Affine<T>& input, std::size_t k, const StateWrite<T>& state, const RandomStream* stream, Payload<T>& message,
               Quantizer q)
      : input_(input), k_(k), state_(state), stream_(stream), message_(message), q_(q) {}

  // reduce_j map(p_j) over a segment, in the order of reduce_rows. A segment of several tiles has left the cache when it is quantised:
  // where there is a state it keeps p until then, so that the input's terms are read from memory once.
  template <Reduce R, class Map>
  [[nodiscard]] double reduce_segment(const Segment& range, Map map) {
    double result = R == Reduce::sum ? 0.0 : -HUGE_VAL;
    state_holds_input_ = range.size() > kTile && state_.rule != StateRule::none;
    for (std::size_t begin = range.begin; begin < range.end; begin += kTile)
      result = join<R>(result, reduce_piecewise<R>(begin, std::min(kTile, range.end - begin), map));
    return result;
  }

  template <class Numbers>
  void quantize_segment(const Segment& range, Numbers numbers, SegmentTarget<T> target) {
    const std::size_t offset = target.offset, step = step_of(range), count = (range.size() + step - 1) / step;
    for (std::size_t i = 0; i < count; ++i) {
      // A reduction that went through the segment has left its end in the cache. Otherwise memory is read in its order.
      const std::size_t begin = range.begin + (state_holds_input_ ? count - 1 - i : i) * step;
      target.offset = offset + (begin - range.begin);
      quantize(begin, std::min(step, range.end - begin), numbers, target);
    }
  }

 private:
  // Returns the numbers that are quantised at once. What lies in the state already and needs no random words fills no tile, so that longer
  // runs start fewer loops. An input that is read from memory is read in short pieces: memory and arithmetic then overlap.
  [[nodiscard]] std::size_t step_of(const Segment& range) const {
    constexpr std::size_t kPiece = 512;
    if (state_holds_input_) return stream_ == nullptr ? 16 * kTile : kTile;
    return loaded_begin_ == range.begin && loaded_count_ == range.size() ? kTile : kPiece;
  }
  // Returns the input of a tile; the one that was loaded last is not evaluated again (a segment of one tile is reduced, then quantised).
  [[nodiscard]] const T* load(std::size_t begin, std::size_t count) {
    if (state_holds_input_) return state_.out.row(k_) + begin;
    if (begin != loaded_begin_ || count != loaded_count_) remember(view_tile(input_, k_, begin, count, tile_.p), begin, count);
    return loaded_;
  }
  void remember(const T* p, std::size_t begin, std::size_t count) {
    loaded_ = p;
    loaded_begin_ = begin;
    loaded_count_ = count;
  }
  // One tile of the reduction; p goes to the state where that holds the input, else to the tile. Short pieces let memory and arithmetic
  // overlap.
  template <Reduce R, class Map>
  [[nodiscard]] double reduce_piecewise(std::size_t begin, std::size_t count, Map map) {
    LaneReduction<R> lanes;
    if (input_.num_terms == 2) {
      T* p = state_holds_input_ ? state_.out.row(k_) + begin : tile_.p;
      lanes.add_pair(input_.coefficient[0], input_.term[0].row(k_) + begin, input_.coefficient[1], input_.term[1].row(k_) + begin, count,
                     map, p);
      if (!state_holds_input_) remember(p, begin, count);
      return lanes.result();
    }
    if (!state_holds_input_) return reduce_tile<R>(load(begin, count), count, map);
    constexpr std::size_t kPiece = 512;
    T* p = state_.out.row(k_) + begin;
    for (std::size_t done = 0; done < count; done += kPiece) {
      const std::size_t piece = std::min(kPiece, count - done);
      load_tile(input_, k_, begin + done, piece, p + done);
      lanes.add(p + done, piece, map);
    }
    return lanes.result();
  }
  template <class Numbers>
  void quantize(std::size_t begin, std::size_t count, Numbers numbers, const SegmentTarget<T>& target) {
    switch (message_.level_width) {
      case LevelWidth::w8: return quantize_as<LevelWidth::w8, std::int8_t>(begin, count, numbers, target);
      case LevelWidth::w16: return quantize_as<LevelWidth::w16, std::int16_t>(begin, count, numbers, target);
      case LevelWidth::w32: return quantize_as<LevelWidth::w32, std::int32_t>(begin, count, numbers, target);
    }
  }
  // One tile; its levels go to `target.offset` of the message.
  template <LevelWidth kWidth, class L, class Numbers>
  void quantize_as(std::size_t begin, std::size_t count, Numbers numbers, const SegmentTarget<T>& target) {
    if constexpr (may_have_width(kWidth)) {
      const T* p = load(begin, count);
      if constexpr (may_have_chance(true))
        if (stream_ != nullptr) return quantize_with<L>(p, random_words(p, begin, count), begin, count, numbers, target);
      if constexpr (may_have_chance(false)) return quantize_with<L>(p, NoWords{}, begin, count, numbers, target);
    }
    throw std::logic_error("a quantiser's levels have another width, or other random words, than it says");
  }
  static constexpr bool may_have_width(LevelWidth width) {
    if constexpr (requires { Quantizer::kWidth; }) return Quantizer::kWidth == width;
    return true;
  }
  static constexpr bool may_have_chance(bool chance) {
    if constexpr (requires { Quantizer::kHasChance; }) return Quantizer::kHasChance == chance;
    return true;
  }
  // Returns the random words of a tile. It takes as long to make them as p takes from memory, if that has left the cache.
  [[nodiscard]] const std::uint32_t* random_words(const T* p, std::size_t begin, std::size_t count) {
    if (!state_holds_input_) return random_tile(*stream_, begin, count, tile_.words);
    return random_tile(*stream_, begin, count, tile_.words, [p, count](std::size_t first, std::size_t words) {
      for (std::size_t j = first; j < std::min(first + words, count); j += 64 / sizeof(T)) __builtin_prefetch(p + j);
    });
  }
  template <class L, class Words, class Numbers>
  void quantize_with(const T* p, Words word, std::size_t begin, std::size_t count, Numbers numbers, const SegmentTarget<T>& target) {
    L* out = message_.template levels<L>() + target.offset;
    if (state_.rule == StateRule::residual) {
      T* state = state_.out.row(k_) + begin;
      with_value(target.scale, [&](auto value) { quantize_tile(p, word, count, numbers, target.segment, q_, value, out, state); });
      return;
    }
    quantize_tile(p, word, count, numbers, target.segment, q_, out);
    if (state_.rule == StateRule::zero_where_sent) std::fill_n(state_.out.row(k_) + begin, count, T(0));
  }
  // use(the rule of level_value that the format names); the only one compiled where the quantiser names it too.
  template <class Use>
  void with_value(const T* scales, Use use) const {
    if constexpr (requires { typename Quantizer::Map; }) {
      if constexpr (Quantizer::Map::value == LevelMap::power_of_two) {
        const LevelFormat& format = message_.level_format;
        if (NormalPowerValue<T>::holds(format)) return use(NormalPowerValue<T>{});
      }
      use(value_of<Quantizer::Map::value>(scales));
    } else {
      switch (message_.level_format.map) {
        case LevelMap::linear: return use(value_of<LevelMap::linear>(scales));
        case LevelMap::sign: return use(value_of<LevelMap::sign>(scales));
        case LevelMap::power_of_two: return use(value_of<LevelMap::power_of_two>(scales));
        case LevelMap::two_values: return use(value_of<LevelMap::two_values>(scales));
        case LevelMap::table: return use(value_of<LevelMap::table>(scales));
        case LevelMap::dynamic_tree: return use(value_of<LevelMap::dynamic_tree>(scales));
        case LevelMap::fp8_e4m3: return use(value_of<LevelMap::fp8_e4m3>(scales));
        case LevelMap::fp8_e5m2: return use(value_of<LevelMap::fp8_e5m2>(scales));
      }
    }
  }
  template <LevelMap kMap>
  [[nodiscard]] auto value_of(const T* scales) const {
    const LevelFormat& format = message_.level_format;
    const T scale = format.has_scale ? scales[0] : T(1);
    if constexpr (kMap == LevelMap::linear) return LinearValue<T>{scale * static_cast<T>(format.unit)};
    if constexpr (kMap == LevelMap::sign) return SignValue<T>{scale};
    if constexpr (kMap == LevelMap::power_of_two) return PowerValue<T>{format.min_exponent, scale};
    if constexpr (kMap == LevelMap::two_values) return TwoValue<T>{scales[0], scales[1]};
    if constexpr (kMap == LevelMap::table) return TableValue<T>{scales, format.min_level};
    if constexpr (kMap == LevelMap::dynamic_tree) return DynamicTreeValue<T>{scale};
    if constexpr (kMap == LevelMap::fp8_e4m3) return Fp8Value<T, Fp8E4m3>{scale};
    if constexpr (kMap == LevelMap::fp8_e5m2) return Fp8Value<T, Fp8E5m2>{scale};
  }

  const Affine<T>& input_;
  std::size_t k_;
  const StateWrite<T>& state_;
  const RandomStream* stream_;
  Payload<T>& message_;
  Quantizer q_;
  const T* loaded_ = nullptr;
  std::size_t loaded_begin_ = 0, loaded_count_ = 0;
  bool state_holds_input_ = false;
  LevelTile<T> tile_;
};

// Declares what follows in the message and makes room for it.
template <class T>
void prepare_levels(const Scope& scope, const LevelFormat& format, LevelWidth width, Payload<T>& message) {
  std::size_t count = 0;
  for (const Segment& segment : scope.segments) count += segment.size();
  message.positions = Positions::all;
  message.values = WireValue::levels;
  message.level_format = format;
  message.level_width = width;
  message.num_sent = count;
  message.level_bytes.resize_discard(count * static_cast<std::size_t>(width));
  message.scale.resize_discard(scope.segments.size() * scales_per_segment(format));
}

// Calls visit(row quantiser, k) for every client.
template <class T, class Quantizer, class Visit>
void for_each_row(const Affine<T>& input, const Scope& scope, const LevelFormat& format, LevelWidth width, Quantizer q,
                  std::span<const RandomStream> stream, const StateWrite<T>& state, std::span<Payload<T>* const> out, Visit visit) {
  for (std::size_t k = 0; k < input.clients(); ++k) {
    prepare_levels(scope, format, width, *out[k]);
    RowQuantizer<T, Quantizer> row(input, k, state, stream.empty() ? nullptr : &stream[k], *out[k], q);
    visit(row, k);
  }
}

}  // namespace detail

namespace detail {

// For every segment: its scales into the message, then its levels; numbers(piece, scales) is what the quantiser is given, piece = k*S + s.
template <class T, class Quantizer, class NumbersOf>
void quantize_given(const Affine<T>& input, const Scope& scope, const LevelFormat& format, LevelWidth width, const T* scale, Quantizer q,
                    std::span<const RandomStream> stream, const StateWrite<T>& state, std::span<Payload<T>* const> out,
                    NumbersOf numbers_of) {
  const std::size_t S = scope.segments.size(), n = scales_per_segment(format);
  for_each_row(input, scope, format, width, q, stream, state, out, [&](auto& row, std::size_t k) {
    std::size_t offset = 0;
    for (std::size_t s = 0; s < S; ++s) {
      T* const own = out[k]->scale.data() + s * n;
      if (n > 0) std::copy_n(scale + (k * S + s) * n, n, own);
      row.quantize_segment(scope.segments[s], numbers_of(k * S + s, own), {s, offset, own});
      offset += scope.segments[s].size();
    }
  });
}

}  // namespace detail

// scale: [K,S,n], or null where the format has none (the scale is then 1). stream: [K], or empty for a quantiser without chance.
template <class T, class Quantizer>
void quantize_rows(const Exec&, const Affine<T>& input, const Scope& scope, const LevelFormat& format, LevelWidth width, const T* scale,
                   Quantizer q, std::span<const RandomStream> stream, const StateWrite<T>& state, std::span<Payload<T>* const> out) {
  detail::quantize_given(input, scope, format, width, scale, q, stream, state, out,
                         [&](std::size_t, const T* own) { return numbers_for<Quantizer>(format, own); });
}

// As quantize_rows, with parameters [K,S,m] that stay here: the quantiser is given those of its segment, `const T*`, not the scales.
template <class T, class Quantizer>
void encode_levels_rows(const Exec&, const Affine<T>& input, const Scope& scope, const LevelFormat& format, LevelWidth width,
                        const T* scale, const T* parameters, std::size_t m, Quantizer q, std::span<const RandomStream> stream,
                        const StateWrite<T>& state, std::span<Payload<T>* const> out) {
  detail::quantize_given(input, scope, format, width, scale, q, stream, state, out,
                         [&](std::size_t piece, const T*) { return parameters + piece * m; });
}

// scale[k,s] = scale_of(reduce_j map(p_kj), size of the segment), then as quantize_rows. scale_of: FL_HD (double, std::size_t) -> T.
// The reduction has the order of reduce_rows. For formats with one scale per segment.
template <class T, class Map, class ScaleOf, class Quantizer>
void quantize_segments_fused(const Exec&, const Affine<T>& input, const Scope& scope, const LevelFormat& format, LevelWidth width, Map map,
                             Reduce reduce, ScaleOf scale_of, Quantizer q, std::span<const RandomStream> stream, const StateWrite<T>& state,
                             std::span<Payload<T>* const> out) {
  detail::for_each_row(input, scope, format, width, q, stream, state, out, [&](auto& row, std::size_t k) {
    std::size_t offset = 0;
    for (std::size_t s = 0; s < scope.segments.size(); ++s) {
      const Segment& range = scope.segments[s];
      T* const scale = out[k]->scale.data() + s;
      *scale = scale_of(reduce == Reduce::sum ? row.template reduce_segment<Reduce::sum>(range, map)
                                              : row.template reduce_segment<Reduce::max>(range, map),
                        range.size());
      row.quantize_segment(range, numbers_for<Quantizer>(format, static_cast<const T*>(scale)), {s, offset, scale});
      offset += range.size();
    }
  });
}

}  // namespace fl::cpu
