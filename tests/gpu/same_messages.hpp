// Compares messages of both devices: all fields that are encoded, and what the receiver computes from a code.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fl_core/message/payload.hpp"
#include "tests/gpu/first_difference.hpp"

namespace fl::test {
namespace detail {

// The levels of a message, in their width.
template <class L, class T>
[[nodiscard]] std::span<const L> levels_of(const Payload<T>& message) {
  return {message.template levels<L>(), message.level_bytes.size() / sizeof(L)};
}
template <class T>
[[nodiscard]] testing::AssertionResult same_levels(const Where& where, const std::string& name, const Payload<T>& a, const Payload<T>& b) {
  switch (a.level_width) {
    case LevelWidth::w8: return same_words(where, name, levels_of<std::int8_t>(a), levels_of<std::int8_t>(b));
    case LevelWidth::w16: return same_words(where, name, levels_of<std::int16_t>(a), levels_of<std::int16_t>(b));
    case LevelWidth::w32: return same_words(where, name, levels_of<std::int32_t>(a), levels_of<std::int32_t>(b));
  }
  return testing::AssertionFailure() << "no width of levels";
}
[[nodiscard]] inline testing::AssertionResult same_format(const Where& where, const std::string& of, const LevelFormat& a,
                                                          const LevelFormat& b) {
  if (auto result = same_value(where, "map of the levels" + of, a.map, b.map); !result) return result;
  if (auto result = same_value(where, "smallest level" + of, a.min_level, b.min_level); !result) return result;
  if (auto result = same_value(where, "bits of a level" + of, a.bits, b.bits); !result) return result;
  if (auto result = same_value(where, "smallest exponent" + of, a.min_exponent, b.min_exponent); !result) return result;
  if (auto result = same_value(where, "unit of the levels" + of, a.unit, b.unit); !result) return result;
  if (auto result = same_value(where, "whether scales are sent" + of, a.has_scale, b.has_scale); !result) return result;
  return same_value(where, "entries of the table of levels" + of, a.table_size, b.table_size);
}

}  // namespace detail

// Compares two messages field by field; the line names the first field that differs. `of` names the message, " of message 3".
template <class T>
[[nodiscard]] testing::AssertionResult same_message(const Where& where, const std::string& of, const Payload<T>& a, const Payload<T>& b) {
  if (auto result = same_value(where, "kind of positions" + of, a.positions, b.positions); !result) return result;
  if (auto result = same_value(where, "kind of values" + of, a.values, b.values); !result) return result;
  if (auto result = same_value(where, "whether nothing is sent" + of, a.silent, b.silent); !result) return result;
  if (auto result = same_value(where, "length" + of, a.length, b.length); !result) return result;
  if (auto result = same_value(where, "width of levels" + of, a.level_width, b.level_width); !result) return result;
  if (a.values == WireValue::levels)
    if (auto result = detail::same_format(where, of, a.level_format, b.level_format); !result) return result;
  if (auto result = same_words(where, "counts" + of, a.counts, b.counts); !result) return result;
  if (auto result = same_words(where, "positions" + of, a.index, b.index); !result) return result;
  if (auto result = same_numbers(where, "values" + of, a.value, b.value); !result) return result;
  if (auto result = detail::same_levels(where, "levels" + of, a, b); !result) return result;
  if (auto result = same_numbers(where, "scales" + of, a.scale, b.scale); !result) return result;
  if (auto result = same_numbers(where, "excluded values" + of, a.excluded, b.excluded); !result) return result;
  if (auto result = same_value(where, "number of entries" + of, a.num_sent, b.num_sent); !result) return result;
  if (auto result = same_value(where, "whether a rest is attached" + of, a.rest != nullptr, b.rest != nullptr); !result) return result;
  if (a.rest != nullptr)
    if (auto result = same_message(where, " of the rest" + of, *a.rest, *b.rest); !result) return result;
  const bool a_is_code = &a.on_wire() != &a, b_is_code = &b.on_wire() != &b;
  if (auto result = same_value(where, "whether a code is sent" + of, a_is_code, b_is_code); !result) return result;
  return a_is_code ? same_message(where, " of the code" + of, a.on_wire(), b.on_wire()) : testing::AssertionSuccess();
}

// Compares messages in order; the line names the first one that differs.
template <class T>
[[nodiscard]] testing::AssertionResult same_messages(const Where& where, const std::vector<Payload<T>>& a,
                                                     const std::vector<Payload<T>>& b) {
  if (auto result = same_value(where, "number of messages", a.size(), b.size()); !result) return result;
  for (std::size_t k = 0; k < a.size(); ++k)
    if (auto result = same_message(where, " of message " + std::to_string(k), a[k], b[k]); !result) return result;
  return testing::AssertionSuccess();
}

}  // namespace fl::test
