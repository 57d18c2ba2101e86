#include "study/output/table_writer.hpp"

#include <charconv>
#include <cmath>
#include <ostream>
#include <string_view>

#include "study/output/json.hpp"
#include "study/output/numbers.hpp"

namespace fl {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

bool is_number(const std::string& text) {
  double number = 0;
  const char *first = text.data() + (text.starts_with('+') ? 1 : 0), *last = text.data() + text.size();
  const auto [end, error] = std::from_chars(first, last, number);
  return error == std::errc() && end == last && std::isfinite(number) && !text.starts_with("+-");
}

// Returns whether a spreadsheet would execute the text as a formula.
bool is_formula(const std::string& text) {
  if (text.empty() || is_number(text)) return false;
  const auto first = static_cast<unsigned char>(text[0]);
  return first < 0x20 || std::string_view("=+-@'").find(text[0]) != std::string_view::npos;
}

}  // namespace

std::string csv_text(const std::string& raw) {
  const std::string text = is_formula(raw) ? "'" + raw : raw;
  if (text.find_first_of(",\"\r\n\t") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

TableFormat format_of(const std::filesystem::path& path) { return path.extension() == ".json" ? TableFormat::json : TableFormat::csv; }

TableWriter::TableWriter(std::ostream& out, TableFormat format, const std::vector<std::string>& header) : out_(out), format_(format) {
  for (std::size_t i = 0; i < header.size(); ++i) {
    const std::string between = i == 0 ? "" : ",";
    before_.push_back(format == TableFormat::csv ? between : between + json_text(header[i]) + ":");
    if (format == TableFormat::csv) text_ += between + csv_text(header[i]);
  }
  text_ += format == TableFormat::csv ? "\n" : "[";
}

std::string TableWriter::written(const std::optional<std::string>& text) const {
  if (format_ == TableFormat::csv) return text ? csv_text(*text) : "";
  return text ? json_text(*text) : "null";
}

std::string& TableWriter::begin_cell() {
  if (next_ == 0 && format_ == TableFormat::json) text_ += rows_ == 0 ? "\n{" : ",\n{";
  return text_ += before_[next_++];
}

void TableWriter::cell(std::uint64_t value) {
  char digits[24];
  begin_cell().append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void TableWriter::cell(double value) {
  if (format_ == TableFormat::csv || std::isfinite(value))
    append_exact(begin_cell(), value);
  else
    cell_as_written(json_number(value));
}

void TableWriter::end_row() {
  text_ += format_ == TableFormat::csv ? "\n" : "}";
  next_ = 0;
  ++rows_;
  if (text_.size() < kPieceBytes) return;
  out_ << text_;
  text_.clear();
}

void TableWriter::end_table() {
  if (format_ == TableFormat::json) text_ += "\n]\n";
  out_ << text_;
  text_.clear();
}

}  // namespace fl
