// Terminal output during and after runs: progress, tables, the closing line of a run.
//
// Progress goes to a separate stream (stderr), so that results on stdout can be piped. On a terminal it is one line that is redrawn at most
// ten times a second. Elsewhere it consists of plain lines: one at every tenth of the rounds but not within a second of the last line, and
// one after five seconds in any case. A run of less than a second prints only its closing line.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "scenarios/results/run_record.hpp"

namespace fl {

enum class ProgressStyle { silent, plain, bar };

// Returns the seconds since an arbitrary moment; never decreases.
[[nodiscard]] double steady_seconds();

// Returns the progress style for stderr: a bar on a terminal that understands escape sequences, plain lines otherwise.
[[nodiscard]] ProgressStyle stderr_style();
// Returns the number of columns of the terminal at stderr; 80 without a terminal.
[[nodiscard]] std::size_t stderr_width();

// Displays the rate and the remaining time of runs, one run after another.
class Progress {
 public:
  using Clock = std::function<double()>;  // seconds; must not decrease

  Progress(std::ostream& out, ProgressStyle style, std::size_t width = 80);
  Progress(std::ostream& out, ProgressStyle style, std::size_t width, Clock clock);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { finish(); }

  // Starts a run of `total_rounds` rounds; the first `done_rounds` of them are already done (a resumed run).
  void begin(const std::string& title, std::uint64_t total_rounds, std::uint64_t done_rounds = 0);
  // Updates the display after `round` rounds; `text`, such as "f_gap 1.2e-05", is appended.
  void update(std::uint64_t round, const std::string& text = {});
  // Does the same with a text that is made only when the line is drawn again.
  void update(std::uint64_t round, const std::function<std::string()>& text);
  // Ends the run: a bar disappears, plain lines stay.
  void finish();
  // Prints a line above the bar. Silent progress prints it too.
  void note(const std::string& line);

 private:
  [[nodiscard]] std::string describe(double now) const;
  [[nodiscard]] bool is_due(double now) const;
  void draw(double now);
  void erase();

  std::ostream& out_;
  ProgressStyle style_;
  std::size_t width_;
  Clock clock_;
  bool running_ = false, drawn_ = false;
  std::string title_, text_;
  std::uint64_t total_ = 0, first_ = 0, round_ = 0, printed_tenth_ = 0;
  double began_s_ = 0, printed_s_ = 0;
};

enum class Align { left, right };

// A table for people: columns are as wide as their widest cell, two spaces apart.
struct Table {
  struct Column {
    std::string title;
    Align align = Align::right;
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  // a row may be shorter than the columns; an empty one is a blank line
};
void print(const Table& table, std::ostream& out);

// Selects whether a line contains the run's hash and the checksum of its model.
enum class Hashes { hidden, shown };
// Returns the closing line of a run: status, rounds, counts of skipped, refused or dropped items, final measures, exact bits, a broken
// contract; or the reason of a failure.
[[nodiscard]] std::string closing_line(const RunRecord& record, Hashes hashes);
// Returns the closing line of several runs: the sums of skipped, refused or dropped items. Returns "" if there are none.
[[nodiscard]] std::string losses_note(const std::vector<RunRecord>& records);

}  // namespace fl
