#include "scenarios/partitioners/split_file.hpp"

#include <algorithm>
#include <charconv>
#include <ostream>
#include <string_view>

#include "fl_core/config/key_error.hpp"
#include "fl_core/config/text_lines.hpp"
#include "fl_core/state/checksum.hpp"

namespace fl {
namespace {

constexpr std::string_view kColumns = "row,client";

template <class Number>
bool read_number(std::string_view text, Number& number, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc{} && end == text.data() + text.size();
}

class SplitFileReader {
 public:
  SplitFileReader(const std::string& path, std::string_view text) : path_(path), lines_(text) {}

  SplitFile read() {
    while (lines_.next()) {
      const std::string_view line = lines_.line();
      if (line.starts_with('#'))
        comment(line);
      else if (!has_columns_)
        columns(line);
      else
        row(line);
    }
    check();
    return std::move(split_);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw key_error("partition.path", path_ + ":" + std::to_string(lines_.number()) + ": " + why);
  }
  [[noreturn]] void fail_whole(const std::string& why) const { throw key_error("partition.path", path_ + ": " + why); }

  // "# key = value"; other comments are for people.
  void comment(std::string_view line) {
    const std::size_t equals = line.find(" = ");
    if (equals == std::string_view::npos) return;
    std::string_view key = line.substr(1, equals - 1), value = line.substr(equals + 3);
    while (key.starts_with(' ')) key.remove_prefix(1);
    std::uint64_t hash = 0;
    const auto count = [&](std::optional<std::size_t>& number) {
      std::size_t read = 0;
      if (!read_number(value, read)) fail("expected \"# " + std::string(key) + " = NUMBER\", is " + shown_line(line));
      number = read;
    };
    if (key == "data") split_.data = value;
    if (key == "rows") count(rows_);
    if (key == "clients") count(clients_);
    if (key != "data_hash") return;
    if (!read_number(value, hash, 16)) fail("expected \"# data_hash = HEX\", is " + shown_line(line));
    split_.data_hash = hash;
  }
  void columns(std::string_view line) {
    if (line != kColumns) fail("expected the columns \"" + std::string(kColumns) + "\", is " + shown_line(line));
    has_columns_ = true;
  }
  void row(std::string_view line) {
    if (line.empty()) return;
    const std::size_t comma = line.find(',');
    std::uint32_t row = 0, client = kNoClient;
    const bool is_good = comma != std::string_view::npos && read_number(line.substr(0, comma), row) &&
                         (line.substr(comma + 1) == "-" || (read_number(line.substr(comma + 1), client) && client != kNoClient));
    if (!is_good) fail("expected \"row,client\", with \"-\" for a row that nobody holds, is " + shown_line(line));
    constexpr std::uint32_t kMostRows = 1u << 31;
    if (row >= kMostRows || (client != kNoClient && client >= kMostRows)) fail(shown_line(line) + " has a number beyond 2^31");
    seen_.push_back({row, client});
  }

  struct Line {
    std::uint32_t row, client;
  };

  void check() {
    if (!has_columns_) fail_whole("has no line \"" + std::string(kColumns) + "\"");
    std::ranges::sort(seen_, {}, &Line::row);
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      if (seen_[i].row == i) continue;
      const bool is_twice = i > 0 && seen_[i].row == seen_[i - 1].row;
      fail_whole("row " + std::to_string(is_twice ? seen_[i].row : i) + (is_twice ? " stands there twice" : " is missing") +
                 "; every row from 0 on stands there once, with \"-\" where nobody holds it");
    }
    if (rows_ && *rows_ != seen_.size())
      fail_whole("says that it has " + std::to_string(*rows_) + " rows, and has " + std::to_string(seen_.size()));
    std::vector<std::size_t> rows_of;
    for (const Line& line : seen_) {
      split_.client_of.push_back(line.client);
      if (line.client == kNoClient) continue;
      // A client beyond the number of rows leaves another without rows.
      if (line.client >= seen_.size())
        fail_whole("client " + std::to_string(line.client) + " is beyond the " + std::to_string(seen_.size()) +
                   " rows, so that some client has no row");
      rows_of.resize(std::max<std::size_t>(rows_of.size(), line.client + std::size_t{1}));
      ++rows_of[line.client];
    }
    split_.num_clients = rows_of.size();
    if (clients_ && *clients_ != split_.num_clients)
      fail_whole("says that it has " + std::to_string(*clients_) + " clients, and has " + std::to_string(split_.num_clients));
    const auto empty = std::ranges::find(rows_of, std::size_t{0});
    if (empty != rows_of.end()) fail_whole("client " + std::to_string(empty - rows_of.begin()) + " has no row");
    if (rows_of.empty()) fail_whole("gives no row to any client");
  }

  const std::string& path_;
  TextLines lines_;
  bool has_columns_ = false;
  std::optional<std::size_t> rows_, clients_;
  std::vector<Line> seen_;
  SplitFile split_;
};

}  // namespace

void write_split(const SplitFile& split, std::ostream& out) {
  out << "# fedbits split\n";
  if (!split.data.empty()) out << "# data = " << split.data << '\n';
  out << "# rows = " << split.client_of.size() << "\n# clients = " << split.num_clients << '\n';
  if (split.data_hash) out << "# data_hash = " << to_hex(*split.data_hash) << '\n';
  out << kColumns << '\n';
  for (std::size_t row = 0; row < split.client_of.size(); ++row) {
    out << row << ',';
    if (split.client_of[row] == kNoClient)
      out << "-\n";
    else
      out << split.client_of[row] << '\n';
  }
}

SplitFile read_split(const std::string& path) { return parse_split(read_text_file("partition.path", path), path); }

SplitFile parse_split(std::string_view text, const std::string& path) { return SplitFileReader(path, text).read(); }

std::vector<Shard> shards_of(const SplitFile& split) {
  std::vector<Shard> shards(split.num_clients);
  for (std::size_t row = 0; row < split.client_of.size(); ++row)
    if (split.client_of[row] != kNoClient) shards[split.client_of[row]].push_back(static_cast<std::uint32_t>(row));
  return shards;
}

}  // namespace fl
