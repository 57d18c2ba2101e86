// What a sweep shows while it works: a line per worker and one for the whole, redrawn in place on a terminal; plain lines elsewhere.
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
  using Clock = std::function<double()>;  // seconds; must not go back

  LiveTable(std::ostream& out, ProgressStyle style, std::size_t width, std::size_t workers, std::size_t total);
  LiveTable(std::ostream& out, ProgressStyle style, std::size_t width, std::size_t workers, std::size_t total, Clock clock);
  LiveTable(const LiveTable&) = delete;
  LiveTable& operator=(const LiveTable&) = delete;
  ~LiveTable() { finish(); }

  void begin(std::size_t worker, const std::string& title, std::uint64_t rounds);
  void update(std::size_t worker, std::uint64_t round, const std::string& text);
  // The worker's run has ended; `good` says whether it came to a result.
  void end(std::size_t worker, bool good);
  // Draws what has changed, at most ten times a second; a plain line every few seconds.
  void tick();
  // A line above the table.
  void note(const std::string& line);
  void finish();

 private:
  struct Row {
    std::string title, text;
    std::uint64_t round = 0, rounds = 0;
    bool busy = false;
  };
  [[nodiscard]] std::string summary(double now) const;
  [[nodiscard]] std::string line_of(const Row& row) const;
  void draw(double now);
  void erase();

  std::ostream& out_;
  ProgressStyle style_;
  std::size_t width_, total_, ended_ = 0, failed_ = 0;
  Clock clock_;
  std::vector<Row> rows_;
  double began_s_, drawn_s_;
  std::size_t drawn_lines_ = 0;
};

}  // namespace fl
