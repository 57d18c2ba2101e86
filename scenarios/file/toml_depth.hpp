// The nesting depth of tables and lists in a TOML text, found before the text is parsed: parsers and trees are recursive, and no text may
// exhaust the stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fl {

struct TextPosition {
  std::uint32_t line = 1, column = 1;  // columns count characters
};

// Returns the first place where more than `deepest` levels are open: names of a dotted key, tables in braces and lists in brackets count
// one each. Takes one pass over the text. What stands in strings and comments does not count.
[[nodiscard]] std::optional<TextPosition> find_too_deep(std::string_view text, std::size_t deepest);

}  // namespace fl
