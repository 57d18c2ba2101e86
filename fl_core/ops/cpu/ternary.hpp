// Values of a sparse message replaced by a sign and one magnitude per segment: the mean of the magnitudes that were kept.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"

namespace fl::cpu {

// Each message holds raw native values at listed positions, and `state` (residual rule) has been written for them, so it is 0 there.
// Afterwards the message holds signs and scales [S], and the state is value - sign * scale at the sent positions.
template <class T>
void ternarise_rows(const Exec&, const Scope& scope, const StateWrite<T>& state, std::span<Payload<T>* const> messages) {
  const LevelFormat format = sign_format();
  for (std::size_t k = 0; k < messages.size(); ++k) {
    Payload<T>& message = *messages[k];
    message.level_bytes.resize_discard(message.num_sent);
    message.scale.resize_discard(scope.segments.size());
    auto* sign = message.template levels<std::int8_t>();
    std::size_t first = 0;
    for (std::size_t s = 0; s < scope.segments.size(); ++s) {
      const std::size_t last = first + message.counts[s];
      double sum = 0;
      for (std::size_t i = first; i < last; ++i) sum += std::fabs(static_cast<double>(message.value[i]));
      const T scale = last > first ? static_cast<T>(sum / static_cast<double>(last - first)) : T(0);
      message.scale[s] = scale;
      for (std::size_t i = first; i < last; ++i) {
        sign[i] = message.value[i] < T(0) ? 0 : 1;
        if (state.rule == StateRule::residual) state.out.row(k)[message.index[i]] = message.value[i] - level_value(format, sign[i], scale);
      }
      first = last;
    }
    message.values = WireValue::levels;
    message.level_format = format;
    message.level_width = LevelWidth::w8;
    message.value.resize_discard(0);
  }
}

}  // namespace fl::cpu
