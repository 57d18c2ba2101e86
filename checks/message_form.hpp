// Checks that a message is well-formed, before any code that relies on it reads the message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "checks/findings.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"

namespace fl::checks {

inline void demand(bool holds, const char* fault) {
  if (!holds) throw Broken(fault);
}

// Throws Broken unless positions ascend, each lies in its segment, and their number equals the counts.
template <class T>
void demand_list(const Payload<T>& message, const Scope& scope) {
  demand(message.counts.size() == scope.segments.size(), "a sparse message needs a count for each segment");
  demand(message.index.size() == message.num_sent, "num_sent is not the number of positions");
  std::size_t i = 0;
  for (std::size_t s = 0; s < scope.segments.size(); ++s)
    for (std::uint32_t n = 0; n < message.counts[s]; ++n, ++i) {
      demand(i < message.num_sent, "the counts add up to more than num_sent");
      const std::uint32_t j = message.index[i];
      demand(j >= scope.segments[s].begin && j < scope.segments[s].end, "a position lies outside its segment");
      demand(n == 0 || j > message.index[i - 1], "positions do not ascend");
    }
  demand(i == message.num_sent, "the counts add up to less than num_sent");
}

// Throws Broken unless each rank is possible for its matrix and the numbers match the ranks.
template <class T>
void demand_factors(const Payload<T>& message, const Scope& scope) {
  demand(message.counts.size() == scope.segments.size(), "a message of factors needs a rank for each segment");
  demand(message.values == kNativeWire<T>, "factors travel in the run's precision");
  std::size_t numbers = 0;
  for (std::size_t s = 0; s < scope.segments.size(); ++s) {
    const Segment& m = scope.segments[s];
    demand(message.counts[s] <= m.rows && message.counts[s] <= m.cols, "a rank is more than its matrix has");
    numbers += message.counts[s] * (m.rows + m.cols);
  }
  demand(message.num_sent == numbers, "the ranks do not add up to num_sent");
}

// Throws Broken unless there is one level per entry, each within the bits of the format.
template <class T>
void demand_levels(const Payload<T>& message, const Scope& scope) {
  const LevelFormat& format = message.level_format;
  demand(message.level_bytes.size() == message.num_sent * static_cast<std::size_t>(message.level_width), "there are not num_sent levels");
  demand(message.scale.size() == scales_per_segment(format) * scope.segments.size(), "there are not as many scales as the format asks for");
  for (std::size_t i = 0; i < message.num_sent; ++i) {
    const std::int64_t code = std::int64_t{message.level(i)} - format.min_level;
    if (code < 0 || code >= (std::int64_t{1} << format.bits) || (format.map == LevelMap::table && code >= format.table_size))
      throw Broken("level " + std::to_string(message.level(i)) + " does not fit its format");
  }
}

// Throws Broken with the fault of a message that is not well-formed.
template <class T>
void demand_well_formed(const Payload<T>& message, const Scope& scope, bool is_rest = false) {
  std::size_t compressed = 0, excluded = 0;
  for (const Segment& segment : scope.segments) compressed += segment.size();
  for (const Segment& segment : scope.excluded) excluded += segment.size();
  if (message.positions == Positions::list)
    demand_list(message, scope);
  else if (message.positions == Positions::factors)
    demand_factors(message, scope);
  else
    demand(message.num_sent == compressed, "a dense message must send every compressed entry");
  demand(message.excluded.size() == (is_rest ? 0 : excluded), "excluded tensors are not beside the message");
  if (message.values == WireValue::levels)
    demand_levels(message, scope);
  else
    demand(message.value.size() == message.num_sent, "there are not num_sent values");
  if (message.rest == nullptr) return;
  demand(!is_rest, "the second part of a message has a part of its own behind it");
  demand_well_formed(*message.rest, scope, true);
}

}  // namespace fl::checks
