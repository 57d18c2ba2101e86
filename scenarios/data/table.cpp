#include "scenarios/data/table.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <optional>

#include "fl_core/config/key_error.hpp"
#include "fl_core/config/stopping.hpp"
#include "scenarios/data/whole_number.hpp"

namespace fl {
namespace {

bool stands_for_missing(std::string_view text) {
  static constexpr std::array<std::string_view, 5> kTexts = {"na", "n/a", "nan", "null", "?"};
  constexpr std::size_t kLongest = 4;
  if (text.empty()) return true;
  if (text.size() > kLongest || (text[0] != '?' && std::tolower(static_cast<unsigned char>(text[0])) != 'n')) return false;
  std::array<char, kLongest> lower{};
  std::transform(text.begin(), text.end(), lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(kTexts.begin(), kTexts.end(), std::string_view(lower.data(), text.size())) != kTexts.end();
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 64;
  return "\"" + std::string(text.substr(0, kLongest)) + (text.size() > kLongest ? "...\"" : "\"");
}

// Returns whether the numbers among the names count up by one: from 0 or 1, as programs name columns, or as years.
bool count_up(const std::vector<std::int64_t>& numbers) {
  for (std::size_t i = 1; i < numbers.size(); ++i)
    if (numbers[i] != numbers[i - 1] + 1) return false;
  const bool are_years = numbers.size() > 1 && numbers.front() >= 1000 && numbers.back() <= 3000;
  return numbers.front() == 0 || numbers.front() == 1 || are_years;
}

// A first line with other numbers is a row: read as names, it would be lost without a word.
void refuse_row_as_header(const std::vector<TextCell>& header, const CellReader& reader) {
  std::vector<std::int64_t> whole;
  const TextCell* first = nullptr;
  bool has_fraction = false;
  for (const TextCell& cell : header) {
    if (!number_in(cell.text)) continue;
    if (first == nullptr) first = &cell;
    const auto number = whole_number_in(cell.text);
    has_fraction = has_fraction || !number;
    if (number) whole.push_back(*number);
  }
  if (first != nullptr && (has_fraction || !count_up(whole)))
    reader.fail(*first, "the number " + in_quotes(first->text) +
                            " stands in the first line, which holds the names of the columns; if the line is a row, put a line of names "
                            "before it, such as x1,x2,label, and otherwise give the column a name that is no number");
}

void refuse_other_separator(const std::vector<TextCell>& header, const CellReader& reader) {
  if (header.size() > 1) return;
  for (const auto& [separator, name] : {std::pair(';', "a semicolon"), std::pair('\t', "a tab"), std::pair('|', "a bar")})
    if (header[0].text.find(separator) != std::string_view::npos)
      reader.fail(header[0], std::string("the first line holds no comma but ") + name +
                                 "; cells are separated by commas here, and numbers have a point before their fraction");
}

// The kinds of the cells in one column.
struct Kinds {
  std::size_t numbers = 0, others = 0;
  TextCell first_other;  // its place
  std::string first_text;
};

}  // namespace

TextTable::TextTable(std::string_view text, const std::filesystem::path& file, MissingValues missing)
    : text_(text), file_(file), missing_(missing) {
  CellReader reader(text_, file_);
  std::vector<TextCell> header;
  if (!reader.next(header)) throw DataError(file_.string() + ": has no header line");
  refuse_other_separator(header, reader);
  refuse_row_as_header(header, reader);
  for (std::size_t c = 0; c < header.size(); ++c) {
    const auto [first, is_new] = place_.try_emplace(std::string(header[c].text), c);
    if (!is_new)
      reader.fail(header[c], "the column name " + in_quotes(header[c].text) + " stands already at " +
                                 std::to_string(header[first->second].line) + ":" + std::to_string(header[first->second].column) +
                                 "; columns are found by their names, so give each its own");
    names_.emplace_back(header[c].text);
  }
  is_declared_.resize(names_.size());
}

std::size_t TextTable::find_name(const std::string& name) const {
  const auto found = place_.find(name);
  return found == place_.end() ? names_.size() : found->second;
}

std::size_t TextTable::find(const std::string& name) const {
  if (const std::size_t named = find_name(name); named < names_.size()) return named;
  const auto number = whole_number_in(name);
  const bool is_place = number && *number >= 1 && *number <= static_cast<std::int64_t>(names_.size());
  return is_place ? static_cast<std::size_t>(*number) - 1 : names_.size();
}

std::size_t TextTable::need(const std::string& key, const std::string& name) const {
  const std::size_t at = find(name);
  if (at < names_.size()) return at;
  const std::string near = nearest_name(name, names_);
  throw key_error("data." + key,
                  file_.string() + " has no column \"" + name + "\"" + (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

void TextTable::for_each_row(const std::function<void(const Row&)>& f) const {
  CellReader reader(text_, file_);
  std::vector<TextCell> cells;
  reader.next(cells);
  std::size_t number = 0;
  for (; reader.next(cells); ++number) {
    check_for_stop();
    if (cells.size() != names_.size())
      reader.fail(cells.back(), "the line has " + std::to_string(cells.size()) + " cells, the header " + std::to_string(names_.size()));
    f({number, cells, reader});
  }
  if (number == 0) throw DataError(file_.string() + ": has no line after the header");
}

bool TextTable::is_missing(const Row& row, std::size_t column) const {
  const std::string_view text = row.cells[column].text;
  return is_declared_[column] ? text.empty() : stands_for_missing(text);
}

void TextTable::refuse_missing(const Row& row, std::size_t column, const std::string& way_out) const {
  row.reader.fail(row.cells[column], "the value of column " + in_quotes(names_[column]) + " is missing (" +
                                         in_quotes(row.cells[column].text) + "); " + way_out);
}

bool TextTable::is_dropped(const Row& row, const std::vector<std::size_t>& columns) const {
  const auto missing = std::find_if(columns.begin(), columns.end(), [&](std::size_t column) { return is_missing(row, column); });
  if (missing == columns.end()) return false;
  if (missing_ == MissingValues::error)
    refuse_missing(row, *missing,
                   is_declared_[*missing] || row.cells[*missing].text.empty()
                       ? "data.missing = \"drop\" leaves such rows out, \"mean\" takes the mean of a column of numbers"
                       : "data.missing = \"drop\" leaves such rows out, \"mean\" takes the mean of a column of numbers, and in a column "
                         "that data.categories lists this text is a name");
  return missing_ == MissingValues::drop;
}

std::vector<bool> TextTable::columns_of_numbers() const {
  std::vector<Kinds> kinds(names_.size());
  std::vector<std::size_t> all(names_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  for_each_row([&](const Row& row) {
    static_cast<void>(is_dropped(row, all));
    for (std::size_t c = 0; c < kinds.size(); ++c) {
      if (is_declared_[c] || is_missing(row, c)) continue;
      if (number_in(row.cells[c].text)) {
        ++kinds[c].numbers;
      } else if (kinds[c].others++ == 0) {
        kinds[c].first_other = row.cells[c];
        kinds[c].first_text = in_quotes(row.cells[c].text);
      }
    }
  });
  std::vector<bool> holds_numbers(names_.size());
  for (std::size_t c = 0; c < kinds.size(); ++c) {
    if (kinds[c].others > 0 && kinds[c].numbers >= kinds[c].others)
      CellReader(text_, file_)
          .fail(kinds[c].first_other, kinds[c].first_text + " is not a finite number, as " + std::to_string(kinds[c].numbers) + " of the " +
                                          std::to_string(kinds[c].numbers + kinds[c].others) + " cells of column " + in_quotes(names_[c]) +
                                          " are; if its numbers are names, add the column to data.categories");
    holds_numbers[c] = !is_declared_[c] && kinds[c].others == 0;
  }
  return holds_numbers;
}

double TextTable::number(const Row& row, std::size_t column) const {
  const TextCell& cell = row.cells[column];
  if (const auto number = number_in(cell.text)) return *number;
  row.reader.fail(cell, in_quotes(cell.text) + " is not a finite number, and column " + in_quotes(names_[column]) +
                            " holds numbers; if they are names, add the column to data.categories");
}

}  // namespace fl
