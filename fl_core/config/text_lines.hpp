// Lines of small text files that a scenario names: samples, traces, splits.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "fl_core/config/device.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/config/regular_file.hpp"

namespace fl {

// The largest text file that is read. A split of fifty million rows is smaller.
inline constexpr std::uint64_t kLargestText_bytes = std::uint64_t{1} << 30;

// Iterates over the lines of a text, without the line ends ("\n" or "\r\n"). The last line may have no line end.
class TextLines {
 public:
  explicit TextLines(std::string_view text) : rest_(text) {}
  // Moves to the next line. Returns false at the end.
  bool next() {
    if (rest_.empty()) return false;
    const std::size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    ++number_;
    return true;
  }
  [[nodiscard]] std::string_view line() const { return line_; }
  [[nodiscard]] std::size_t number() const { return number_; }  // from 1

 private:
  std::string_view rest_, line_;
  std::size_t number_ = 0;
};

// Returns the beginning of a line in quotation marks, for error texts. Characters that are not printable ASCII become ".".
[[nodiscard]] inline std::string shown_line(std::string_view line) {
  constexpr std::size_t kMost = 60;
  std::string text(line.substr(0, kMost));
  for (char& c : text)
    if (c < ' ' || c > '~') c = '.';
  return '"' + text + (line.size() > kMost ? "...\"" : "\"");
}

// Reads the text file that `key` names. Throws ConfigError with the key, the file and the way out.
[[nodiscard]] inline std::string read_text_file(const std::string& key, const std::string& path, std::uint64_t most = kLargestText_bytes,
                                                const std::string& advice = "") {
  try {
    return read_regular_file(path, {.bytes = most, .advice = advice});
  } catch (const FileError& error) {
    throw key_error(key, "cannot read '" + path + "': it " + error.reason());
  }
}

}  // namespace fl
