// The rows of stochastic gradients as a file: written by a run, or read to replay a sampling.
//
//   round,client,step,rows
//   1,0,0,5 17 3          rows of client 0's minibatch in local step 0 of round 1, in the order in which the model reads them
//   1,0,1,9 9 2
// Rounds count from 1, clients and steps from 0; a row is its position among the client's own rows, from 0. Lines may be in any order. A
// method that computes one gradient per round has step 0 alone. The file does not contain additional gradients over all rows (at a
// reference point, for a control variate), because nothing is drawn for them.
//
// A file without this first line has the older form with one row per round and client: line r, column i = the row of client i in round r.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clients/learning/shard_sizes.hpp"
#include "fl_core/config/device.hpp"
#include "fl_core/config/text_lines.hpp"
#include "fl_core/data/dataset.hpp"
#include "fl_core/state/file_turn.hpp"

namespace fl {

// The content of a sample file, with rows of the data in place of the clients' own row numbers.
class FL_API SampleFile {
 public:
  // Throws ConfigError naming file and line if the file is missing or not an ordinary file, or if it contains no numbers, a row that a
  // client does not have, or a sample twice. For the older form, also throws if there are fewer than num_rounds lines, or more numbers in a
  // line than clients. Rows of clients whose shards are elsewhere are checked by `sizes` and not kept.
  SampleFile(const std::string& path, const std::vector<Shard>& shards, std::uint32_t num_rounds, const ShardSizes& sizes);
  // Reads the same from a text; `path` is its name in errors.
  SampleFile(const std::string& path, std::string_view text, const std::vector<Shard>& shards, std::uint32_t num_rounds,
             const ShardSizes& sizes);

  // Returns the rows of a sample. Throws ConfigError if the file lacks it.
  [[nodiscard]] std::span<const std::uint32_t> rows(std::uint32_t client, std::uint32_t round, std::uint32_t step) const;
  // Returns whether the file gives the rows of each step; the older form does not.
  [[nodiscard]] bool has_steps() const { return has_steps_; }
  [[nodiscard]] std::size_t most_rows() const { return most_rows_; }  // of any sample

 private:
  struct Entry {
    std::uint32_t round = 0, client = 0, step = 0;
    std::size_t begin = 0, end = 0;  // into rows_
  };
  void read_steps(TextLines lines);
  void read_columns(TextLines lines, std::uint32_t num_rounds);
  void add_line(std::string_view line, const std::string& place);
  // Adds a client's own row number, in the form of a row of the data.
  void add_row(std::uint32_t client, std::uint32_t row, const std::string& place);

  std::string path_;
  const std::vector<Shard>& shards_;
  ShardSizes sizes_;
  bool has_steps_ = false;
  std::size_t most_rows_ = 0;
  std::vector<Entry> entries_;  // ascending round, client, step
  std::vector<std::uint32_t> rows_;
};

// Writes the samples of a run, a round at a time. Several threads may add samples at the same time; one thread ends the round.
class FL_API SampleRecorder {
 public:
  // Throws StoreError if the file cannot be written. The file gets its final name in finish().
  SampleRecorder(std::filesystem::path file, const std::vector<Shard>& shards);
  ~SampleRecorder();
  SampleRecorder(const SampleRecorder&) = delete;
  SampleRecorder& operator=(const SampleRecorder&) = delete;

  // Adds a sample. A sample that a method draws twice is written once.
  void add(std::uint32_t client, std::uint32_t round, std::uint32_t step, std::span<const std::uint32_t> rows);
  void end_round();
  void finish();

 private:
  std::filesystem::path file_;
  const std::vector<Shard>& shards_;
  std::optional<FileTurn> turn_;
  std::ofstream out_;
  bool is_finished_ = false;
  std::mutex mutex_;
  std::uint32_t round_ = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> samples_;  // by client and step
};

}  // namespace fl
