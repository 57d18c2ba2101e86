// Text as numbers of characters.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fl {

// The code points of UTF-8 text. Throws DataError "file:line:column: ..." at the first byte that is not UTF-8.
[[nodiscard]] std::u32string decode_utf8(std::string_view text, const std::filesystem::path& file);

// The characters that occur in a text, in the order of their code points.
class CharacterSet {
 public:
  explicit CharacterSet(std::u32string_view text);
  [[nodiscard]] std::size_t size() const { return characters_.size(); }
  [[nodiscard]] std::vector<std::string> names() const;  // in UTF-8; "\n" for the end of a line
  // Numbers 0 .. size()-1. Throws DataError with the place of the first character that is not in the set.
  [[nodiscard]] std::vector<std::int32_t> numbers_of(std::u32string_view text, const std::filesystem::path& file) const;

 private:
  std::u32string characters_;                // ascending
  std::vector<std::int32_t> number_of_low_;  // of the code points below 256; -1 = not in the set
};

// "file:line:column" of position `at` in `text`; columns count characters.
[[nodiscard]] std::string place_of(std::u32string_view text, std::size_t at, const std::filesystem::path& file);

}  // namespace fl
