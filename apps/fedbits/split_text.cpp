#include "apps/fedbits/split_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <string_view>
#include <vector>

#include "fl_core/state/checksum.hpp"
#include "study/output/numbers.hpp"
#include "study/results/export.hpp"

namespace fl {
namespace {

constexpr std::size_t kClassColumns = 40, kBarColumns = 10;

std::string padded(const std::string& text, std::size_t width) {
  const std::size_t columns = display_width(text);
  return columns < width ? std::string(width - columns, ' ') + text : text;
}

std::string two_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

// Returns a client's bar. The largest client's bar is full, and every client has a visible bar.
std::string client_bar(std::size_t rows, std::size_t most) {
  static const std::vector<std::string> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const std::size_t eighths = std::max<std::size_t>(1, rows * kBarColumns * 8 / std::max<std::size_t>(1, most));
  std::string text;
  for (std::size_t i = 0; i < eighths / 8; ++i) text += "█";
  text += kEighths[eighths % 8];
  return text + std::string(kBarColumns - std::min(kBarColumns, display_width(text)), ' ');
}

const char* shade(double share) { return share <= 0 ? "·" : share <= 0.1 ? "░" : share <= 0.3 ? "▒" : share <= 0.6 ? "▓" : "█"; }

// Assigns classes to cells of `width` columns; each cell covers `per_cell` neighbouring classes.
struct ClassCells {
  explicit ClassCells(std::size_t num_classes)
      : per_cell(std::max<std::size_t>(1, (num_classes + kClassColumns - 1) / kClassColumns)),
        count((num_classes + per_cell - 1) / per_cell),
        width(count == 0 ? 0 : std::min<std::size_t>(3, kClassColumns / count)) {}
  std::size_t per_cell, count, width;
};

std::string class_line(const ClientSkew& client, const ClassCells& cells) {
  std::string text;
  for (std::size_t cell = 0; cell < cells.count; ++cell) {
    const std::size_t first = cell * cells.per_cell, last = std::min(client.of_class.size(), first + cells.per_cell);
    std::size_t rows = 0;
    for (std::size_t c = first; c < last; ++c) rows += client.of_class[c];
    const char* mark = shade(static_cast<double>(rows) / static_cast<double>(client.num_rows));
    for (std::size_t i = 0; i < std::max<std::size_t>(1, cells.width - 1); ++i) text += mark;
    if (cells.width > 1) text += ' ';
  }
  return text;
}

std::size_t median_rows(const SplitStatistics& split) {
  std::vector<std::size_t> rows;
  for (const ClientSkew& client : split.clients) rows.push_back(client.num_rows);
  std::ranges::nth_element(rows, rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 2));
  return rows[rows.size() / 2];
}

// Returns the mean over clients of sum_c q_c^2, with q_c the share of class c in the client's rows: 1 if each has one class.
double mean_squares(const SplitStatistics& split) {
  double sum = 0;
  for (const ClientSkew& client : split.clients)
    for (const std::uint32_t rows : client.of_class) sum += std::pow(static_cast<double>(rows) / static_cast<double>(client.num_rows), 2);
  return sum / static_cast<double>(split.clients.size());
}

std::string three_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", value);
  return text;
}

void draw_head(const SplitStatistics& split, const SplitSkew& skew, std::ostream& out) {
  if (!split.label.empty()) out << one_line(split.label) << '\n';
  out << "split " << to_hex(split.hash) << ", data seed " << split.seed << ": " << split.clients.size() << " clients, " << skew.min_rows
      << " to " << skew.max_rows << " rows (median " << median_rows(split) << ")\n";
  if (!split.note.empty()) out << split.note << '\n';
  if (split.classes.empty()) return;
  out << "mean EMD " << two_digits(skew.mean_emd) << ", mean label entropy " << two_digits(skew.mean_entropy) << " of "
      << two_digits(std::log2(static_cast<double>(split.classes.size()))) << " bits, mean sum q^2 " << three_digits(mean_squares(split))
      << "\nshare of a class in a client's rows: · none, ░ up to 10%, ▒ 30%, ▓ 60%, █ more\n";
}

}  // namespace

void draw(const SplitStatistics& split, std::ostream& out) {
  const SplitSkew skew = summary_of(split.clients);
  const ClassCells cells(split.classes.size());
  draw_head(split, skew, out);
  out << "client     rows" << std::string(kBarColumns + 1, ' ') << (split.classes.empty() ? "" : "   EMD  bits  ");
  if (cells.count > 0) out << "classes" << (cells.per_cell > 1 ? ", " + std::to_string(cells.per_cell) + " in a column" : "");
  out << '\n';
  for (std::size_t i = 0; i < std::min(split.clients.size(), kMostShownClients); ++i) {
    const ClientSkew& client = split.clients[i];
    out << padded(std::to_string(i), 6) << padded(std::to_string(client.num_rows), 9) << ' ' << client_bar(client.num_rows, skew.max_rows);
    if (cells.count > 0)
      out << padded(two_digits(client.emd), 6) << padded(two_digits(client.entropy), 6) << "  " << class_line(client, cells);
    out << '\n';
  }
  if (split.clients.size() > kMostShownClients)
    out << "... and " << split.clients.size() - kMostShownClients << " more; --split-csv FILE writes all of them\n";
}

void write_csv(std::span<const SplitStatistics> splits, std::ostream& out) {
  out << "split,client,rows,emd,entropy,class,class_rows\n";
  for (const SplitStatistics& split : splits) {
    for (std::size_t i = 0; i < split.clients.size(); ++i) {
      const ClientSkew& client = split.clients[i];
      const std::string head = to_hex(split.hash) + "," + std::to_string(i) + "," + std::to_string(client.num_rows);
      if (split.classes.empty()) out << head << ",,,,\n";  // the data have no classes
      for (std::size_t c = 0; c < split.classes.size(); ++c)
        out << head << ',' << exact_text(client.emd) << ',' << exact_text(client.entropy) << ',' << csv_text(split.classes[c]) << ','
            << client.of_class[c] << '\n';
    }
  }
}

}  // namespace fl
