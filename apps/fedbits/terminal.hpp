// What a person sees while runs go on and when they have ended: progress, tables, the closing line of a run.
//
// Progress goes to a stream of its own (stderr), so that results on stdout can be piped. On a terminal it is one line that is redrawn at
// most ten times a second; elsewhere it is a plain line now and then: at every tenth of the rounds but not within a second of the last
// line, and after five seconds in any case. A run of less than a second leaves its closing line only.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "scenarios/results/run_record.hpp"

namespace fl {

enum class ProgressStyle { silent, plain, bar };

// Seconds since some moment; never goes back.
[[nodiscard]] double steady_seconds();

// How stderr can be written to: a bar on a terminal that understands escape sequences, plain lines otherwise.
[[nodiscard]] ProgressStyle stderr_style();
// Columns of the terminal at stderr; 80 where there is none.
[[nodiscard]] std::size_t stderr_width();

// The rate and the time left of one run after another.
class Progress {
 public:
  using Clock = std::function<double()>;  // seconds; must not go back

  Progress(std::ostream& out, ProgressStyle style, std::size_t width = 80);
  Progress(std::ostream& out, ProgressStyle style, std::size_t width, Clock clock);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { finish(); }

  // Starts a run of `total_rounds`, of which `done_rounds` were done before (a run that is resumed).
  void begin(const std::string& title, std::uint64_t total_rounds, std::uint64_t done_rounds = 0);
  // After `round` rounds; `text` is appended, as "f_gap 1.2e-05".
  void update(std::uint64_t round, const std::string& text = {});
  // Ends the run: a bar disappears, plain lines stay.
  void finish();
  // A line between: the bar makes room for it. Silent progress prints it too.
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

// A table for people: columns as wide as their widest cell, two spaces apart.
struct Table {
  struct Column {
    std::string title;
    Align align = Align::right;
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  // a row may be shorter than the columns; an empty one is a blank line
};
void print(const Table& table, std::ostream& out);

// Whether a line names the run's hash and the checksum of its model.
enum class Hashes { hidden, shown };
// The line with which a run ends: status, rounds, what was skipped, refused or dropped, final measures, exact bits, a broken contract; or
// why it failed.
[[nodiscard]] std::string closing_line(const RunRecord& record, Hashes hashes);
// The line with which several runs end: the sums of what was skipped, refused or dropped. Returns "" when that is nothing.
[[nodiscard]] std::string losses_note(const std::vector<RunRecord>& records);

}  // namespace fl
