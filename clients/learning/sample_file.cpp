#include "clients/learning/sample_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <tuple>

#include "fl_core/config/key_error.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kColumns = "round,client,step,rows";

fs::path unfinished(const fs::path& file) { return file.string() + ".tmp-" + std::to_string(::getpid()); }

// Removes what killed processes left of the same run's samples.
void remove_leftovers(const fs::path& file) {
  const std::string begin = file.filename().string() + ".tmp";
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator at(file.has_parent_path() ? file.parent_path() : ".", error), end; !error && at != end; at.increment(error))
    if (at->path().filename().string().starts_with(begin)) found.push_back(at->path());
  for (const fs::path& path : found)
    if (const FileTurn turn(path, FileTurn::Wait::no); turn.is_held()) fs::remove(path, error);
}

}  // namespace

SampleFile::SampleFile(const std::string& path, const std::vector<Shard>& shards, std::uint32_t num_rounds, const ShardSizes& sizes)
    : SampleFile(path, read_text_file("local.sample_file", path), shards, num_rounds, sizes) {}

SampleFile::SampleFile(const std::string& path, std::string_view text, const std::vector<Shard>& shards, std::uint32_t num_rounds,
                       const ShardSizes& sizes)
    : path_(path), shards_(shards), sizes_(sizes) {
  TextLines lines(text);
  const TextLines from_first = lines;
  has_steps_ = lines.next() && lines.line() == kColumns;
  if (has_steps_)
    read_steps(lines);
  else
    read_columns(from_first, num_rounds);
}

void SampleFile::read_steps(TextLines lines) {
  while (lines.next())
    if (!lines.line().empty()) add_line(lines.line(), path_ + ":" + std::to_string(lines.number()));
  const auto key = [](const Entry& entry) { return std::tuple(entry.round, entry.client, entry.step); };
  std::ranges::sort(entries_, {}, key);
  const auto twice = std::ranges::adjacent_find(entries_, {}, key);
  if (twice != entries_.end())
    throw key_error("local.sample_file", path_ + ": step " + std::to_string(twice->step) + " of client " + std::to_string(twice->client) +
                                             " in round " + std::to_string(twice->round) + " stands there twice");
}

void SampleFile::add_line(std::string_view text, const std::string& place) {
  const char *at = text.data(), *end = text.data() + text.size();
  const auto fail = [&] {
    throw key_error("local.sample_file",
                    place + ": expected \"" + std::string(kColumns) + "\", the rows with spaces between, is " + shown_line(text));
  };
  const auto number = [&](char after) {
    std::uint32_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc{} || next == end || *next != after) fail();
    at = next + 1;
    return value;
  };
  Entry entry;
  entry.round = number(',');
  entry.client = number(',');
  entry.step = number(',');
  if (entry.round == 0) throw key_error("local.sample_file", place + ": rounds are counted from 1");
  if (entry.client >= shards_.size())
    throw key_error("local.sample_file",
                    place + ": client " + std::to_string(entry.client) + ", but clients are 0 to " + std::to_string(shards_.size() - 1));
  entry.begin = rows_.size();
  while (at != end) {
    std::uint32_t row = 0;
    const auto [next, error] = std::from_chars(at, end, row);
    if (error != std::errc{} || (next != end && *next != ' ')) fail();
    add_row(entry.client, row, place);
    at = next;
    while (at != end && *at == ' ') ++at;
  }
  entry.end = rows_.size();
  if (entry.begin == entry.end) fail();
  most_rows_ = std::max(most_rows_, entry.end - entry.begin);
  entries_.push_back(entry);
}

void SampleFile::add_row(std::uint32_t client, std::uint32_t row, const std::string& place) {
  if (row >= sizes_[client])
    throw key_error("local.sample_file", place + ": client " + std::to_string(client) + " has " + std::to_string(sizes_[client]) +
                                             " rows, row " + std::to_string(row) + " was asked for");
  rows_.push_back(shards_[client].empty() ? 0 : shards_[client][row]);
}

// Reads the local rows of every round and client, and checks them against the clients' rows.
void SampleFile::read_columns(TextLines lines, std::uint32_t num_rounds) {
  most_rows_ = 1;
  for (std::uint32_t round = 1; round <= num_rounds; ++round) {
    const std::string place = path_ + ":" + std::to_string(round);
    if (!lines.next() || (round == 1 && lines.line().empty()))
      throw key_error("local.sample_file",
                      place + ": the file ends after " + std::to_string(round - 1) + " rounds, the run has " + std::to_string(num_rounds));
    const char *at = lines.line().data(), *end = at + lines.line().size();
    const auto skip = [&] {
      while (at != end && (*at == ',' || *at == ' ')) ++at;
    };
    for (std::size_t client = 0; client < shards_.size(); ++client, skip()) {
      std::uint32_t row = 0;
      const auto [next, error] = std::from_chars(at, end, row);
      if (error != std::errc{})
        throw key_error("local.sample_file", place + ": expected " + std::to_string(shards_.size()) +
                                                 " row numbers, one per client, or \"" + std::string(kColumns) +
                                                 "\" in the first line, is " + shown_line(lines.line()));
      add_row(static_cast<std::uint32_t>(client), row, place);
      at = next;
    }
    if (at != end)
      throw key_error("local.sample_file", place + ": " + std::to_string(shards_.size()) +
                                               " row numbers are expected, one per client, and more follow: " +
                                               shown_line({at, static_cast<std::size_t>(end - at)}));
  }
}

std::span<const std::uint32_t> SampleFile::rows(std::uint32_t client, std::uint32_t round, std::uint32_t step) const {
  if (!has_steps_) return {&rows_[(round - 1) * shards_.size() + client], 1};
  const auto wanted = std::tuple(round, client, step);
  const auto key = [](const Entry& entry) { return std::tuple(entry.round, entry.client, entry.step); };
  const auto found = std::ranges::lower_bound(entries_, wanted, {}, key);
  if (found == entries_.end() || key(*found) != wanted)
    throw key_error("local.sample_file", "'" + path_ + "' has no rows for step " + std::to_string(step) + " of client " +
                                             std::to_string(client) + " in round " + std::to_string(round) +
                                             "; the run that wrote it had other clients, steps or rounds");
  return std::span(rows_).subspan(found->begin, found->end - found->begin);
}

SampleRecorder::SampleRecorder(fs::path file, const std::vector<Shard>& shards) : file_(std::move(file)), shards_(shards) {
  std::error_code ignored;
  if (file_.has_parent_path()) fs::create_directories(file_.parent_path(), ignored);
  remove_leftovers(file_);
  turn_.emplace(unfinished(file_));
  out_.open(unfinished(file_));
  if (!out_) throw StoreError("cannot write the samples " + file_.string());
  out_ << kColumns << '\n';
}

SampleRecorder::~SampleRecorder() {
  std::error_code ignored;
  if (!is_finished_) fs::remove(unfinished(file_), ignored);
}

void SampleRecorder::add(std::uint32_t client, std::uint32_t round, std::uint32_t step, std::span<const std::uint32_t> rows) {
  const std::lock_guard lock(mutex_);
  round_ = round;
  const auto [place, is_new] = samples_.try_emplace({client, step}, rows.begin(), rows.end());
  if (!is_new && !std::ranges::equal(place->second, rows))
    throw Error("a local update takes two samples of other rows in one step, which a sample file cannot say");
}

void SampleRecorder::end_round() {
  for (const auto& [key, rows] : samples_) {
    out_ << round_ << ',' << key.first << ',' << key.second << ',';
    const Shard& shard = shards_[key.first];
    for (std::size_t i = 0; i < rows.size(); ++i) out_ << (i > 0 ? " " : "") << std::ranges::lower_bound(shard, rows[i]) - shard.begin();
    out_ << '\n';
  }
  samples_.clear();
  if (!out_) throw StoreError("cannot write the samples " + file_.string() + ": the disk is full or broken");
}

void SampleRecorder::finish() {
  out_.close();
  std::error_code error;
  if (out_) fs::rename(unfinished(file_), file_, error);
  if (!out_ || error) throw StoreError("cannot write the samples " + file_.string() + (error ? ": " + error.message() : ""));
  is_finished_ = true;
}

}  // namespace fl
