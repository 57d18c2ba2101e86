#include "timing/number_table.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "fl_core/config/key_error.hpp"
#include "fl_core/config/options.hpp"
#include "fl_core/config/text_lines.hpp"

namespace fl {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (;;) {
    const std::size_t comma = line.find(',');
    cells.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

}  // namespace

NumberTable::NumberTable(const std::string& path, std::vector<TableColumn> columns, const ClientFacts& clients, bool client_is_optional)
    : columns_(std::move(columns)), num_clients_(clients.num_clients) {
  file_ = clients.find_file ? clients.find_file(path) : path;
  const std::string text = read_text_file("path", file_);
  for (TextLines lines(text); lines.next();) {
    if (places_.empty())
      read_header(lines.line(), client_is_optional);
    else if (!trimmed(lines.line()).empty())
      read_row(lines.line(), lines.number());
  }
  if (rows_.empty()) throw key_error("path", "'" + file_ + "' has no line of numbers below the names of its columns");
}

void NumberTable::refuse(std::size_t line, const std::string& message) const {
  throw key_error("path", file_ + ":" + std::to_string(line) + ": " + message);
}

void NumberTable::require_positive(const Row& row, std::size_t column) const {
  const double value = row.cells[column];
  if (value <= 0) refuse(row.line, columns_[column].name + " must be above 0, is " + to_string(Value{value}));
}

void NumberTable::read_header(std::string_view line, bool client_is_optional) {
  std::vector<std::string> known = {"client"};
  for (const TableColumn& column : columns_) known.push_back(column.name);
  std::string all;
  for (const std::string& name : known) all += (all.empty() ? "" : ",") + name;
  for (const std::string_view cell : cells_of(line)) {
    const auto at = std::ranges::find(known, cell);
    if (at == known.end()) {
      const std::string near = nearest_name(std::string(cell), known);
      refuse(1, "the first line must name columns, of \"" + all + "\", and has " + shown_line(cell) +
                    (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
    }
    const std::size_t place = at == known.begin() ? columns_.size() : static_cast<std::size_t>(at - known.begin()) - 1;
    if (std::ranges::find(places_, place) != places_.end()) refuse(1, "the column \"" + *at + "\" is there twice");
    places_.push_back(place);
  }
  const auto has = [this](std::size_t place) { return std::ranges::find(places_, place) != places_.end(); };
  if (!client_is_optional && !has(columns_.size())) refuse(1, "the column \"client\" is missing; the columns are \"" + all + "\"");
  for (std::size_t i = 0; i < columns_.size(); ++i)
    if (columns_[i].is_required && !has(i))
      refuse(1, "the column \"" + columns_[i].name + "\" is missing; the columns are \"" + all + "\"");
}

std::uint32_t NumberTable::read_client(std::string_view cell, std::size_t number) const {
  if (cell == "*") return kAllClients;
  std::uint32_t client = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), client);
  if (error != std::errc{} || end != cell.data() + cell.size())
    refuse(number, "client must be a whole number from 0, or * for all others, is " + shown_line(cell));
  if (client >= num_clients_)
    refuse(number, "client " + std::to_string(client) + ", but clients are 0 to " + std::to_string(num_clients_ - 1));
  return client;
}

void NumberTable::read_row(std::string_view line, std::size_t number) {
  const std::vector<std::string_view> cells = cells_of(line);
  if (cells.size() != places_.size())
    refuse(number, "expected " + std::to_string(places_.size()) + " cells, as in the first line, has " + std::to_string(cells.size()));
  Row row{.line = number, .client = kAllClients, .cells = std::vector<double>(columns_.size(), kMissing)};
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (places_[i] == columns_.size()) {
      row.client = read_client(cells[i], number);
      continue;
    }
    double& value = row.cells[places_[i]];
    const auto [end, error] = std::from_chars(cells[i].data(), cells[i].data() + cells[i].size(), value);
    if (error != std::errc{} || end != cells[i].data() + cells[i].size() || !std::isfinite(value))
      refuse(number, columns_[places_[i]].name + " must be a finite number, is " + shown_line(cells[i]));
  }
  rows_.push_back(std::move(row));
}

std::vector<std::vector<const NumberTable::Row*>> NumberTable::rows_by_client() const {
  std::vector<std::vector<const Row*>> result(num_clients_);
  std::vector<const Row*> others;
  for (const Row& row : rows_) (row.client == kAllClients ? others : result[row.client]).push_back(&row);
  for (std::size_t i = 0; i < num_clients_; ++i) {
    if (result[i].empty() && others.empty())
      throw key_error("path",
                      "'" + file_ + "' has no line for client " + std::to_string(i) + "; add one, or one with client * for all others");
    if (result[i].empty()) result[i] = others;
  }
  return result;
}

}  // namespace fl
