// The rows of stochastic gradients as a file: written by a run, or read to replay a sampling.
//
//   round,client,step,rows
//   1,0,0,5 17 3          rows of client 0's minibatch in local step 0 of round 1, in the order in which the model reads them
//   1,0,1,9 9 2
// Rounds count from 1, clients and steps from 0; a row is its place among the client's own rows, from 0. Lines come in any order. A method
// that takes one gradient in a round has step 0 alone. Gradients over all rows that a method takes besides (of a reference point, a control
// variate) are not there: nothing is drawn for them.
//
// A file without that first line is of the older form, one row per round and client: line r, column i = the row of client i in round r.
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

#include "fl_core/config/device.hpp"
#include "fl_core/config/text_lines.hpp"
#include "fl_core/data/dataset.hpp"
#include "fl_core/state/file_turn.hpp"

namespace fl {

// What a file holds, with rows of the data in place of the clients' own numbers.
class FL_API SampleFile {
 public:
  // Throws ConfigError naming file and line: missing or no ordinary file, no numbers, a row that a client does not have, a sample twice; in
  // the older form fewer than num_rounds lines, or more numbers in a line than clients.
  SampleFile(const std::string& path, const std::vector<Shard>& shards, std::uint32_t num_rounds);
  // The same of a text; `path` is its name in errors.
  SampleFile(const std::string& path, std::string_view text, const std::vector<Shard>& shards, std::uint32_t num_rounds);

  // Throws ConfigError for a sample that the file lacks.
  [[nodiscard]] std::span<const std::uint32_t> rows(std::uint32_t client, std::uint32_t round, std::uint32_t step) const;
  // Whether it says which rows each step takes; the older form does not.
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

  std::string path_;
  const std::vector<Shard>& shards_;
  bool has_steps_ = false;
  std::size_t most_rows_ = 0;
  std::vector<Entry> entries_;  // ascending round, client, step
  std::vector<std::uint32_t> rows_;
};

// Writes the samples of a run, a round at a time. Threads may add samples together; one thread ends the round.
class FL_API SampleRecorder {
 public:
  // Throws StoreError where the file cannot be written. It has its name once finish() was called.
  SampleRecorder(std::filesystem::path file, const std::vector<Shard>& shards);
  ~SampleRecorder();
  SampleRecorder(const SampleRecorder&) = delete;
  SampleRecorder& operator=(const SampleRecorder&) = delete;

  // A sample that a method draws twice is written once.
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
