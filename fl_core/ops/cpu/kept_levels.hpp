// Levels for the entries that a sparse message has kept (strom, dryden, stc): a selection first, then numbers of the segment, then levels.
//
//   select_rows or top_k_rows   raw native values at listed positions, the state written for them
//   reduce_kept                 out[k,s] = sum or max of map(value) over the entries that segment s of client k kept
//   encode_kept                 level_i = q(value_i, numbers of the segment, word, segment), word j of the client's stream for position j,
//                               0 without streams; the state is value - level_value where entries
//                               were sent (residual), and stays as it is otherwise
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"
#include "fl_core/ops/op_types.hpp"
#include "fl_core/random/random.hpp"

namespace fl::cpu {

// out: [K,S], 0 where nothing was kept. Entries are joined one after another in ascending order. map: T -> double, an FL_HD functor.
template <class T, class Map>
void reduce_kept(const Exec&, const Scope& scope, std::span<Payload<T>* const> messages, Map map, Reduce reduce, double* out) {
  for (const Payload<T>* message : messages) {
    const T* value = message->value.data();
    for (std::size_t s = 0; s < scope.segments.size(); ++s) {
      const std::size_t count = message->counts[s];
      double result = reduce == Reduce::sum || count == 0 ? 0.0 : -HUGE_VAL;
      for (std::size_t i = 0; i < count; ++i, ++value) {
        const double mapped = map(*value);
        result = reduce == Reduce::sum ? result + mapped : result < mapped ? mapped : result;  // NaN is never the largest
      }
      *out++ = result;
    }
  }
}

// scale: [K,S,n] as in quantize_rows. stream: [K], or empty for a quantiser without chance. The quantiser is given the segment's scale, or
// all n of them where it takes a `const T*`.
template <class T, class Quantizer>
void encode_kept(const Exec&, const Scope& scope, const LevelFormat& format, LevelWidth width, const T* scale, Quantizer q,
                 std::span<const RandomStream> stream, const StateWrite<T>& state, std::span<Payload<T>* const> messages) {
  const std::size_t S = scope.segments.size(), n = scales_per_segment(format);
  for (std::size_t k = 0; k < messages.size(); ++k) {
    Payload<T>& message = *messages[k];
    message.level_bytes.resize_discard(message.num_sent * static_cast<std::size_t>(width));
    message.scale.resize_discard(S * n);
    std::size_t i = 0;
    for (std::size_t s = 0; s < S; ++s) {
      T* const own = message.scale.data() + s * n;
      for (std::size_t j = 0; j < n; ++j) own[j] = scale[(k * S + s) * n + j];
      for (const std::size_t end = i + message.counts[s]; i < end; ++i) {
        const std::uint32_t word = stream.empty() ? 0U : stream[k].bits(message.index[i]);
        const std::int32_t level = q(message.value[i], numbers_for<Quantizer>(format, static_cast<const T*>(own)), word, s);
        switch (width) {
          case LevelWidth::w8: message.template levels<std::int8_t>()[i] = static_cast<std::int8_t>(level); break;
          case LevelWidth::w16: message.template levels<std::int16_t>()[i] = static_cast<std::int16_t>(level); break;
          case LevelWidth::w32: message.template levels<std::int32_t>()[i] = level; break;
        }
        if (state.rule == StateRule::residual) {
          state.out.row(k)[message.index[i]] = message.value[i] - level_value(format, level, static_cast<const T*>(own));
        }
      }
    }
    message.values = WireValue::levels;
    message.level_format = format;
    message.level_width = width;
    message.value.resize_discard(0);
  }
}

template <class T, class Quantizer>
void encode_kept(const Exec& exec, const Scope& scope, const LevelFormat& format, LevelWidth width, const T* scale, Quantizer q,
                 const StateWrite<T>& state, std::span<Payload<T>* const> messages) {
  encode_kept(exec, scope, format, width, scale, q, std::span<const RandomStream>{}, state, messages);
}

}  // namespace fl::cpu
