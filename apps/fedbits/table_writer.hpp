// Tables as CSV (RFC 4180) or as an array of JSON objects. docs/results.md says how cells are written.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace fl {

// A text cell of a CSV file: with an apostrophe in front where a spreadsheet would run it, and quoted where it must be.
[[nodiscard]] std::string csv_text(const std::string& text);

enum class TableFormat { csv, json };

// Rows of named cells. The header is fixed at construction; a row is begun, filled cell by cell and ended. Text is gathered and handed to
// the stream in large pieces, because tables of rounds have millions of cells.
class TableWriter {
 public:
  TableWriter(std::ostream& out, TableFormat format, const std::vector<std::string>& header);

  // A text as the format has it, for a cell that many rows share. Without a text the cell is empty.
  [[nodiscard]] std::string written(const std::optional<std::string>& text) const;
  void cell_as_written(const std::string& text) { begin_cell() += text; }

  void cell(const std::string& text) { cell_as_written(written(text)); }
  void cell(std::uint64_t value);
  void cell(double value);  // empty, or null, for NaN
  void empty_cell() { cell_as_written(written(std::nullopt)); }
  void end_row();
  void end_table();  // hands everything to the stream

 private:
  std::string& begin_cell();

  std::ostream& out_;
  TableFormat format_;
  std::vector<std::string> before_;  // what stands before each cell
  std::string text_;
  std::size_t next_ = 0, rows_ = 0;
};

}  // namespace fl
