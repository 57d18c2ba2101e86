#include "apps/fedbits/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <ostream>

#include "fl_core/config/printable.hpp"
#include "scenarios/results/broken_contracts.hpp"
#include "study/output/numbers.hpp"

namespace fl {
namespace {

constexpr double kRedraw_s = 0.1;      // minimum time between redraws of a bar
constexpr double kPlainAtLeast_s = 1;  // minimum time between plain lines, at tenths of the rounds
constexpr double kPlainAtMost_s = 5;   // maximum time between plain lines, however slow the rounds are
constexpr std::size_t kBarCells = 20;
constexpr const char* kEraseLine = "\r\x1b[K";

std::string bar(double fraction) {
  const auto full = static_cast<std::size_t>(fraction * static_cast<double>(kBarCells));
  std::string cells(kBarCells, ' ');
  std::fill_n(cells.begin(), full, '=');
  if (full < kBarCells) cells[full] = '>';
  return "[" + cells + "]";
}

}  // namespace

double steady_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

ProgressStyle stderr_style() {
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::strcmp(terminal, "dumb") == 0;
  return ::isatty(STDERR_FILENO) == 1 && !dumb ? ProgressStyle::bar : ProgressStyle::plain;
}

std::size_t stderr_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

Progress::Progress(std::ostream& out, ProgressStyle style, std::size_t width) : Progress(out, style, width, steady_seconds) {}

Progress::Progress(std::ostream& out, ProgressStyle style, std::size_t width, Clock clock)
    : out_(out), style_(style), width_(width), clock_(std::move(clock)) {}

void Progress::begin(const std::string& title, std::uint64_t total_rounds, std::uint64_t done_rounds) {
  finish();
  running_ = true;
  title_ = one_line(title);
  text_.clear();
  total_ = std::max<std::uint64_t>(total_rounds, 1);
  first_ = round_ = done_rounds;
  printed_tenth_ = 10 * done_rounds / total_;
  began_s_ = clock_();
  printed_s_ = began_s_;
}

void Progress::update(std::uint64_t round, const std::string& text) {
  update(round, [&text] { return text; });
}

void Progress::update(std::uint64_t round, const std::function<std::string()>& text) {
  if (!running_ || style_ == ProgressStyle::silent) return;
  round_ = std::min(round, total_);
  const double now = clock_();
  if (!is_due(now)) return;
  text_ = one_line(text());
  draw(now);
}

bool Progress::is_due(double now) const {
  const double since = now - printed_s_;
  if (style_ == ProgressStyle::bar) return !drawn_ || since >= kRedraw_s;
  return since >= kPlainAtMost_s || (since >= kPlainAtLeast_s && 10 * round_ / total_ > printed_tenth_);
}

// Returns "title [====>    ]  25%  250/1000  12.3 rounds/s  1:01 left  f_gap 1.2e-05"; a plain line has no bar.
std::string Progress::describe(double now) const {
  const double fraction = static_cast<double>(round_) / static_cast<double>(total_);
  const double rate = static_cast<double>(round_ - first_) / std::max(now - began_s_, 1e-9);
  const double left_s = rate > 0 ? static_cast<double>(total_ - round_) / rate : std::numeric_limits<double>::quiet_NaN();
  const std::string percent = std::to_string(100 * round_ / total_) + "%";
  std::string line = title_ + (style_ == ProgressStyle::bar ? " " + bar(fraction) : "") + std::string(5 - percent.size(), ' ') + percent;
  line += "  " + std::to_string(round_) + "/" + std::to_string(total_);
  if (rate > 0) line += "  " + short_text(rate) + " rounds/s  " + human_seconds(left_s) + " left";
  return text_.empty() ? line : line + "  " + text_;
}

void Progress::draw(double now) {
  const std::string line = describe(now);
  if (style_ == ProgressStyle::bar) {
    write_sequence(out_, kEraseLine);
    out_ << clip(line, width_ > 1 ? width_ - 1 : 1) << std::flush;
  } else {
    out_ << line << std::endl;
  }
  drawn_ = true;
  printed_s_ = now;
  printed_tenth_ = 10 * round_ / total_;
}

void Progress::erase() {
  if (drawn_ && style_ == ProgressStyle::bar) {
    write_sequence(out_, kEraseLine);
    out_ << std::flush;
  }
  drawn_ = false;
}

void Progress::finish() {
  erase();
  running_ = false;
}

void Progress::note(const std::string& line) {
  const bool redraw = drawn_ && style_ == ProgressStyle::bar;
  erase();
  out_ << line << std::endl;
  if (redraw) draw(clock_());
}

void print(const Table& table, std::ostream& out) {
  std::vector<std::vector<std::string>> lines(1);
  for (const Table::Column& column : table.columns) lines[0].push_back(column.title);
  lines.insert(lines.end(), table.rows.begin(), table.rows.end());

  std::vector<std::size_t> widths(table.columns.size());
  for (const auto& line : lines)
    for (std::size_t c = 0; c < line.size() && c < widths.size(); ++c) widths[c] = std::max(widths[c], display_width(line[c]));
  lines.insert(lines.begin() + 1, std::vector<std::string>{});
  for (const std::size_t width : widths) lines[1].emplace_back(width, '-');

  for (const auto& line : lines) {
    std::string text;
    for (std::size_t c = 0; c < line.size() && c < widths.size(); ++c) {
      const std::string padding(widths[c] - display_width(line[c]), ' ');
      text += (c == 0 ? "" : "  ") + (table.columns[c].align == Align::left ? line[c] + padding : padding + line[c]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out << text << "\n";
  }
}

namespace {

// Returns "  skipped_rounds 3  refused_updates 5", counts that affect the interpretation of results. Counts of zero are not recorded.
std::string losses_text(const std::vector<ResolvedConstant>& constants) {
  std::string text;
  for (const char* name : {"skipped_rounds", "refused_updates", "dropped_roles", "dropped_rows", "dropped_test_rows"})
    for (const ResolvedConstant& constant : constants)
      if (constant.name == name && constant.value > 0)
        text += std::string("  ") + name + " " + std::to_string(static_cast<std::uint64_t>(constant.value));
  return text;
}

}  // namespace

std::string closing_line(const RunRecord& record, Hashes hashes) {
  std::string line = hashes == Hashes::shown ? "run " + record.run + "  " : "";
  for (const AxisLabel& axis : record.axes) line += axis.key + "=" + shown_label(axis.label) + "  ";
  line += "seed=" + std::to_string(record.seed) + "  " + to_string(record.status) + "  rounds " + std::to_string(record.rounds);
  const RunRecord* one = &record;
  const std::string broken = broken_text({&one, 1});
  const std::string message = (broken.empty() ? "" : "  " + broken) + (record.message.empty() ? "" : "  " + one_line(record.message));
  line += losses_text(record.constants);
  if (record.checksum.empty()) return line + message;
  const std::pair<const char*, double> measures[] = {
      {"train_loss", record.train_loss}, {"f_gap", record.f_gap}, {"test_accuracy", record.test_accuracy}};
  for (const auto& [name, value] : measures)
    if (!std::isnan(value)) line += std::string("  ") + name + " " + short_text(value);
  line += "  bits_up " + std::to_string(record.bits_up) + "  bits_down " + std::to_string(record.bits_down);
  return line + (hashes == Hashes::shown ? "  checksum " + record.checksum : "") + message;
}

std::string losses_note(const std::vector<RunRecord>& records) {
  std::vector<ResolvedConstant> sums;
  std::size_t runs = 0;
  for (const RunRecord& record : records) {
    runs += losses_text(record.constants).empty() ? 0 : 1;
    for (const ResolvedConstant& constant : record.constants) {
      const auto found = std::ranges::find(sums, constant.name, &ResolvedConstant::name);
      if (found == sums.end())
        sums.push_back(constant);
      else
        found->value += constant.value;
    }
  }
  return runs == 0 ? "" : "in " + std::to_string(runs) + " of " + std::to_string(records.size()) + " runs:" + losses_text(sums) + "\n";
}

}  // namespace fl
