// The progress display of a sweep: a line per worker and one for the whole sweep, redrawn in place on a terminal; plain lines elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "apps/fedbits/terminal.hpp"

namespace fl {

class LiveTable {
 public:
  using Clock = std::function<double()>;  // seconds; must not decrease

  LiveTable(std::ostream& out, ProgressStyle style, std::size_t width, std::size_t workers, std::size_t total);
  LiveTable(std::ostream& out, ProgressStyle style, std::size_t width, std::size_t workers, std::size_t total, Clock clock);
  LiveTable(const LiveTable&) = delete;
  LiveTable& operator=(const LiveTable&) = delete;
  ~LiveTable() { finish(); }

  // Names what the runs are for, in front of the line for the whole.
  void name(const std::string& text) { name_ = text + ": "; }
  void begin(std::size_t worker, const std::string& title, std::uint64_t rounds);
  void update(std::size_t worker, std::uint64_t round, const std::string& text);
  // Ends the worker's run; `good` says whether the run has a result.
  void end(std::size_t worker, bool good);
  // Draws changes, at most ten times a second; elsewhere than on a terminal writes a plain line every few seconds.
  void tick();
  // Prints a line above the table.
  void note(const std::string& line);
  void finish();

 private:
  struct Row {
    std::string title, text;
    std::uint64_t round = 0, rounds = 0;
    bool busy = false;
  };
  // Returns "12/400 runs, 1 failed  0.42 runs/s  15:20 left"; the time counts the rounds of the runs that are not over yet.
  [[nodiscard]] std::string summary(double now) const;
  [[nodiscard]] std::string line_of(const Row& row) const;
  void draw(double now);
  void erase();

  std::ostream& out_;
  ProgressStyle style_;
  std::string name_;
  std::size_t width_, total_, ended_ = 0, failed_ = 0;
  Clock clock_;
  std::vector<Row> rows_;
  double began_s_, drawn_s_;
  std::size_t drawn_lines_ = 0;
};

}  // namespace fl
