// Values of a sparse message replaced by integer levels with one scale per segment: quantisers of what a sparsifier kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "compressors/compressor.hpp"
#include "fl_core/verbs.hpp"

namespace fl::FL_DEVICE_NS {

FL_HD inline void store_level(std::byte* levels, LevelWidth width, std::size_t i, std::int32_t level) {
  switch (width) {
    case LevelWidth::w8: reinterpret_cast<std::int8_t*>(levels)[i] = static_cast<std::int8_t>(level); return;
    case LevelWidth::w16: reinterpret_cast<std::int16_t*>(levels)[i] = static_cast<std::int16_t>(level); return;
    case LevelWidth::w32: reinterpret_cast<std::int32_t*>(levels)[i] = level; return;
  }
}

// Scale, levels and state of one segment's entries, in ascending order.
template <class T, class ScaleOf, class LevelOf>
struct QuantizeEntries {
  const std::uint32_t *counts, *index;
  const T* value;
  LevelFormat format;
  LevelWidth width;
  std::byte* levels;
  T *scale, *state;  // null where there is none
  ScaleOf scale_of;
  LevelOf level_of;
  FL_HD void operator()(std::size_t s) const {
    std::size_t first = 0;
    for (std::size_t before = 0; before < s; ++before) first += counts[before];
    const std::size_t last = first + counts[s];
    const T own = format.has_scale ? scale_of(value + first, last - first) : T(1);
    if (format.has_scale) scale[s] = own;
    for (std::size_t i = first; i < last; ++i) {
      const std::int32_t level = level_of(value[i], own, index[i]);
      store_level(levels, width, i, level);
      if (state != nullptr) state[index[i]] = value[i] - level_value(format, level, own);
    }
  }
};

// Each message holds raw native values at listed positions and the state has been written as if they were sent so. Afterwards it holds
//   level_i = level_of(value_i, scale, position_i),   scale = scale_of(values of the segment, how many)     (no scale: scale is 1)
// and the residual state is value - level_value. level_of.for_client(k) is the rule for the k-th message of the block.
template <class T, class ScaleOf, class LevelOf>
void quantize_entries(const Exec& exec, const Scope& scope, const LevelFormat& format, LevelWidth width, ScaleOf scale_of, LevelOf level_of,
                      const StateWrite<T>& state, std::span<Payload<T>* const> messages) {
  for (std::size_t k = 0; k < messages.size(); ++k) {
    Payload<T>& message = *messages[k];
    message.level_bytes.resize_discard(message.num_sent * static_cast<std::size_t>(width));
    message.scale.resize_discard(format.has_scale ? scope.segments.size() : 0);
    for_each(exec, scope.segments.size(),
             QuantizeEntries<T, ScaleOf, LevelOf>{
                 message.counts.data(), message.index.data(), message.value.data(), format, width, message.level_bytes.data(),
                 message.scale.data(), state.rule == StateRule::residual ? state.out.row(k) : nullptr, scale_of, level_of.for_client(k)});
    message.values = WireValue::levels;
    message.level_format = format;
    message.level_width = width;
    message.value.resize_discard(0);
  }
}

}  // namespace fl::FL_DEVICE_NS
