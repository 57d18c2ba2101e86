#include "scenarios/file/toml_depth.hpp"

#include <vector>

namespace fl {
namespace {

class Scanner {
 public:
  Scanner(std::string_view text, std::size_t deepest) : text_(text), deepest_(deepest) {}

  std::optional<TextPosition> run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        skip_comment();
        continue;
      }
      if (c == '"' || c == '\'') {
        skip_string(c);
        continue;
      }
      if (!count(c)) return position_;
      step();
    }
    return std::nullopt;
  }

 private:
  // Levels outside of the value or key that is being read.
  [[nodiscard]] std::size_t outside() const { return open_.empty() ? header_ : open_.back(); }

  // Returns false where the character opens one level too many.
  bool count(char c) {
    if (c == '.') {
      ++dots_;
    } else if (c == '[' || c == '{') {
      if (is_line_start_ && c == '[') header_ = 0;
      open_.push_back(outside() + dots_ + 1);
      dots_ = 0;
    } else if (c == ']' || c == '}') {
      if (!open_.empty()) open_.pop_back();
      if (is_header_ && open_.empty()) header_ = dots_ + 2;  // a table of a list of tables lies one deeper than its name says
      if (!is_header_) dots_ = 0;
    } else if (c == ',' || (c == '\n' && !open_.empty())) {
      dots_ = 0;
    }
    if (is_line_start_ && c != ' ' && c != '\t' && c != '\n' && c != '\r') {
      is_header_ = c == '[' && open_.size() == 1;
      is_line_start_ = false;
    }
    if (c == '\n' && open_.empty()) {
      dots_ = 0;
      is_line_start_ = true;
      is_header_ = false;
    }
    return outside() + dots_ + 1 <= deepest_;
  }

  void step() {
    const char c = text_[at_++];
    if (c == '\n') {
      ++position_.line;
      position_.column = 1;
    } else if ((static_cast<unsigned char>(c) & 0xC0u) != 0x80u) {
      ++position_.column;
    }
  }
  void skip_comment() {
    while (at_ < text_.size() && text_[at_] != '\n') step();
  }
  [[nodiscard]] bool stands_here(const char* three) const { return text_.substr(at_, 3) == three; }

  // A string ends at its quote, or at three of them where it began with three. One that never ends is the parser's to refuse.
  void skip_string(char quote) {
    is_line_start_ = false;
    const char three[] = {quote, quote, quote, '\0'};
    const bool is_long = stands_here(three);
    for (int i = 0; i < (is_long ? 3 : 1); ++i) step();
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n' && !is_long) return;
      if (c == '\\' && quote == '"') {
        step();
        if (at_ < text_.size()) step();
        continue;
      }
      if (is_long ? stands_here(three) : c == quote) {
        for (int i = 0; i < (is_long ? 3 : 1) && at_ < text_.size(); ++i) step();
        return;
      }
      step();
    }
  }

  std::string_view text_;
  std::size_t deepest_, at_ = 0, dots_ = 0;
  std::size_t header_ = 0;         // levels of the table whose keys are being read
  std::vector<std::size_t> open_;  // levels at each bracket that is open
  bool is_line_start_ = true, is_header_ = false;
  TextPosition position_;
};

}  // namespace

std::optional<TextPosition> find_too_deep(std::string_view text, std::size_t deepest) { return Scanner(text, deepest).run(); }

}  // namespace fl
