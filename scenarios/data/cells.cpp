#include "scenarios/data/cells.hpp"

#include <charconv>
#include <cmath>

#include "fl_core/config/error.hpp"

namespace fl {

CellReader::CellReader(std::string_view text, const std::filesystem::path& file, std::string separator)
    : text_(text), file_(file), separator_(std::move(separator)) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text_.starts_with(kByteOrderMark)) at_ = line_begin_ = kByteOrderMark.size();
}

void CellReader::fail(const TextCell& cell, const std::string& why) const {
  throw DataError(file_.string() + ":" + std::to_string(cell.line) + ":" + std::to_string(cell.column) + ": " + why);
}

void CellReader::skip_blanks() {
  while (at_ < text_.size() && text_[at_] == ' ') ++at_;
}

void CellReader::end_line() {
  if (at_ < text_.size()) at_ += text_[at_] == '\r' ? 2 : 1;
  ++line_;
  line_begin_ = at_;
}

bool CellReader::next(std::vector<TextCell>& cells) {
  cells.clear();
  unquoted_.clear();
  for (skip_blanks(); at_ < text_.size() && at_line_end(); skip_blanks()) end_line();
  if (at_ == text_.size()) return false;
  for (;;) {
    skip_blanks();
    cells.push_back(at_ < text_.size() && text_[at_] == '"' ? quoted_cell() : plain_cell());
    if (at_line_end()) break;
    at_ += separator_.size();
  }
  end_line();
  return true;
}

// Most of a file's characters pass through this loop, so it looks at each once.
TextCell CellReader::plain_cell() {
  const std::size_t first = at_, end = text_.size();
  const char separator = separator_.front();
  for (; at_ < end; ++at_) {
    const char c = text_[at_];
    if (c == separator && (separator_.size() == 1 || text_.compare(at_, separator_.size(), separator_) == 0)) break;
    if (c == '\n' || (c == '\r' && at_line_end())) break;
  }
  std::string_view cell = text_.substr(first, at_ - first);
  while (cell.ends_with(' ')) cell.remove_suffix(1);
  return {cell, line_, first - line_begin_ + 1};
}

TextCell CellReader::quoted_cell() {
  TextCell cell{{}, line_, at_ - line_begin_ + 1};
  const std::size_t first = ++at_;
  bool has_quotes = false;
  for (;; ++at_) {
    if (at_ == text_.size()) fail(cell, "the quote does not end");
    if (text_[at_] == '\n') {
      ++line_;
      line_begin_ = at_ + 1;
    }
    if (text_[at_] != '"') continue;
    if (at_ + 1 == text_.size() || text_[at_ + 1] != '"') break;
    has_quotes = true;
    ++at_;
  }
  cell.text = text_.substr(first, at_ - first);
  ++at_;
  skip_blanks();
  if (!at_line_end() && text_.compare(at_, separator_.size(), separator_) != 0)
    fail({{}, line_, at_ - line_begin_ + 1}, "something follows the end of a quoted cell");
  if (!has_quotes) return cell;
  std::string& plain = unquoted_.emplace_back();
  for (std::size_t i = 0; i < cell.text.size(); ++i) {
    plain += cell.text[i];
    if (cell.text[i] == '"') ++i;
  }
  cell.text = plain;
  return cell;
}

std::optional<double> number_in(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace fl
