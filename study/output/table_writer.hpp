// Writes tables as CSV (RFC 4180) or as an array of JSON objects. docs/results.md describes the format of cells.
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"

namespace fl {

// Returns a text cell of a CSV file: prefixed with an apostrophe if a spreadsheet would execute it, and quoted if necessary.
[[nodiscard]] FL_API std::string csv_text(const std::string& text);

enum class TableFormat { csv, json };
// Returns the format of a file, from its extension: JSON for .json, else CSV.
[[nodiscard]] FL_API TableFormat format_of(const std::filesystem::path& path);

// Writes rows of named cells. The header is fixed at construction; a row is filled cell by cell and then ended. Text is buffered and passed
// to the stream in large pieces, because tables of rounds have millions of cells.
class FL_API TableWriter {
 public:
  TableWriter(std::ostream& out, TableFormat format, const std::vector<std::string>& header);

  // Returns a text in the output format, for a cell that many rows share. The cell is empty if `text` is empty.
  [[nodiscard]] std::string written(const std::optional<std::string>& text) const;
  void cell_as_written(const std::string& text) { begin_cell() += text; }

  void cell(const std::string& text) { cell_as_written(written(text)); }
  void cell(std::uint64_t value);
  void cell(double value);  // empty or null for NaN
  void empty_cell() { cell_as_written(written(std::nullopt)); }
  void end_row();
  void end_table();  // passes all buffered text to the stream

 private:
  std::string& begin_cell();

  std::ostream& out_;
  TableFormat format_;
  std::vector<std::string> before_;  // text before each cell
  std::string text_;
  std::size_t next_ = 0, rows_ = 0;
};

}  // namespace fl
