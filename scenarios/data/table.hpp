// A table of text with a header, as CSV holds it: which columns hold numbers and which names, and which cells are missing.
//
// A column holds numbers where every cell that is not missing is one, and names where none is, or fewer cells are numbers than are not.
// Columns that are listed in data.categories hold names whatever their cells look like.
// A cell is missing where it is blank or, in capitals or not, one of NA, N/A, NaN, null and ?; in a listed column, where it is blank.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scenarios/data/cells.hpp"
#include "scenarios/data/format_options.hpp"

namespace fl {

class TextTable {
 public:
  // `text` must outlive the table; errors call it `file`. Throws DataError: no header, a name that stands twice in it, or numbers in it
  // that do not count up, which are a row.
  TextTable(std::string_view text, const std::filesystem::path& file, MissingValues missing);

  [[nodiscard]] const std::filesystem::path& file() const { return file_; }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  // Returns the place of a column, by name or by number from 1; names().size() for a column that is not there.
  [[nodiscard]] std::size_t find(const std::string& name) const;
  [[nodiscard]] std::size_t find_name(const std::string& name) const;  // by name alone
  // The place by name or number; throws ConfigError that names `key` and the nearest column.
  [[nodiscard]] std::size_t need(const std::string& key, const std::string& name) const;

  // A line with as many cells as the header.
  struct Row {
    std::size_t number = 0;  // from 0
    const std::vector<TextCell>& cells;
    const CellReader& reader;
  };
  // Goes through all lines once. Throws DataError for a line with another number of cells, and for a table without lines.
  void for_each_row(const std::function<void(const Row&)>& f) const;

  // Columns whose every text is a name.
  void declare_names(std::size_t column) { is_declared_[column] = true; }
  void undeclare(std::size_t column) { is_declared_[column] = false; }
  [[nodiscard]] bool is_declared(std::size_t column) const { return is_declared_[column]; }
  [[nodiscard]] bool is_missing(const Row& row, std::size_t column) const;
  // Returns true if a row with missing values in some of `columns` is left out. Throws DataError with the first place where
  // data.missing = "error".
  [[nodiscard]] bool is_dropped(const Row& row, const std::vector<std::size_t>& columns) const;
  [[noreturn]] void refuse_missing(const Row& row, std::size_t column, const std::string& way_out) const;
  [[nodiscard]] MissingValues missing() const { return missing_; }

  // Returns for each column whether it holds numbers. Throws DataError with the place of the first cell that is none in a column of
  // numbers.
  [[nodiscard]] std::vector<bool> columns_of_numbers() const;
  // The number of a cell. Throws DataError with its place.
  [[nodiscard]] double number(const Row& row, std::size_t column) const;

 private:
  std::string_view text_;
  std::filesystem::path file_;
  MissingValues missing_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> place_;  // by name
  std::vector<bool> is_declared_;
};

}  // namespace fl
