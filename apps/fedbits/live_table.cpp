#include "apps/fedbits/live_table.hpp"

#include <algorithm>
#include <ostream>

#include "fl_core/config/printable.hpp"
#include "study/output/numbers.hpp"

namespace fl {

namespace {

constexpr double kTableRedraw_s = 0.1, kTablePlain_s = 5;
constexpr std::size_t kSmallBarCells = 16;

std::string small_bar(double fraction) {
  const auto full = static_cast<std::size_t>(std::min(1.0, fraction) * static_cast<double>(kSmallBarCells));
  return "[" + std::string(full, '=') + std::string(kSmallBarCells - full, ' ') + "]";
}

}  // namespace

LiveTable::LiveTable(std::ostream& out, ProgressStyle style, std::size_t width, std::size_t workers, std::size_t total)
    : LiveTable(out, style, width, workers, total, steady_seconds) {}

LiveTable::LiveTable(std::ostream& out, ProgressStyle style, std::size_t width, std::size_t workers, std::size_t total, Clock clock)
    : out_(out),
      style_(style),
      width_(width),
      total_(total),
      clock_(std::move(clock)),
      rows_(workers),
      began_s_(clock_()),
      drawn_s_(began_s_) {}

void LiveTable::begin(std::size_t worker, const std::string& title, std::uint64_t rounds) {
  rows_[worker] = {.title = one_line(title), .text = {}, .round = 0, .rounds = rounds, .busy = true};
}
void LiveTable::update(std::size_t worker, std::uint64_t round, const std::string& text) {
  rows_[worker].round = round;
  rows_[worker].text = text;
}
void LiveTable::end(std::size_t worker, bool good) {
  rows_[worker].busy = false;
  ++ended_;
  failed_ += good ? 0 : 1;
}

std::string LiveTable::summary(double now) const {
  std::string line = name_ + std::to_string(ended_) + "/" + std::to_string(total_) + " runs";
  if (failed_ > 0) line += ", " + std::to_string(failed_) + " failed";
  double done = static_cast<double>(ended_);
  std::uint64_t rounds = 0;
  for (const Row& row : rows_) {
    if (!row.busy || row.rounds == 0) continue;
    done += std::min(1.0, static_cast<double>(row.round) / static_cast<double>(row.rounds));
    rounds += row.round;
  }
  const double spent = now - began_s_;
  if (ended_ == 0 && rounds > 0) line += "  " + std::to_string(rounds) + (rounds == 1 ? " round" : " rounds");
  if (done <= 0 || spent <= 0) return line;
  if (ended_ > 0) line += "  " + short_text(static_cast<double>(ended_) / spent) + " runs/s";
  return line + "  " + human_seconds(std::max(0.0, static_cast<double>(total_) - done) * spent / done) + " left";
}

std::string LiveTable::line_of(const Row& row) const {
  if (!row.busy) return "  -";
  const double done = row.rounds == 0 ? 0 : static_cast<double>(row.round) / static_cast<double>(row.rounds);
  return "  " + small_bar(done) + " " + std::to_string(row.round) + "/" + std::to_string(row.rounds) + "  " + row.title +
         (row.text.empty() ? "" : "  " + row.text);
}

void LiveTable::draw(double now) {
  erase();
  for (const Row& row : rows_) out_ << clip(line_of(row), width_ - 1) << '\n';
  out_ << clip(summary(now), width_ - 1) << '\n' << std::flush;
  drawn_lines_ = rows_.size() + 1;
  drawn_s_ = now;
}

void LiveTable::erase() {
  if (drawn_lines_ > 0) {
    write_sequence(out_, "\x1b[" + std::to_string(drawn_lines_) + "A\x1b[J");
    out_ << std::flush;
  }
  drawn_lines_ = 0;
}

void LiveTable::tick() {
  const double now = clock_();
  if (style_ == ProgressStyle::bar && now - drawn_s_ >= kTableRedraw_s) draw(now);
  if (style_ == ProgressStyle::plain && now - drawn_s_ >= kTablePlain_s) {
    out_ << summary(now) << std::endl;
    drawn_s_ = now;
  }
}

void LiveTable::note(const std::string& line) {
  const bool redraw = drawn_lines_ > 0;
  erase();
  out_ << line << std::endl;
  if (redraw) draw(clock_());
}

void LiveTable::finish() { erase(); }

}  // namespace fl
