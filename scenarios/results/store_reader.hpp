// Reads runs of a store and compares them with their checksums.
//
// A run is listed twice, in `runs` and in `checksums`. It is whole if both lists have it under one id, its record and lists of labels match
// their checksum, and its rounds match theirs. A damaged page removes entries from at most one list. The steps and memory of each read are
// bounded in proportion to the file size, whatever the file contains.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/results/run_store.hpp"
#include "scenarios/results/sqlite.hpp"
#include "scenarios/results/store_measures.hpp"

namespace fl {

class StoreReader {
 public:
  // The caller holds a transaction while it reads.
  explicit StoreReader(sqlite::Database& database);

  // Looks a run up in both lists. Returns nothing if neither list has it. Throws DamagedRunError.
  struct Entry {
    std::uint64_t id = 0, record = 0, rounds = 0;  // number and checksums of the run
  };
  [[nodiscard]] std::optional<Entry> find(const std::string& run);
  [[nodiscard]] RunRecord record(const std::string& run, const Entry& entry);
  [[nodiscard]] std::vector<RoundRow> rows(const std::string& run, const Entry& entry);

  // Returns every hash in either list, in the order in which the runs were first appended. Adds damage of the lists themselves to
  // `damaged`.
  [[nodiscard]] std::vector<std::string> hashes(std::vector<DamagedRun>& damaged);

 private:
  [[nodiscard]] std::vector<std::pair<std::uint64_t, std::string>> read_list(const char* sql, const char* name,
                                                                             std::vector<DamagedRun>& damaged);
  [[nodiscard]] RunRecord read_record(std::uint64_t id);
  void read_lists(std::uint64_t id, RunRecord& record);
  [[nodiscard]] std::vector<RoundRow> read_rows(std::uint64_t id);
  [[noreturn]] void fail(const std::string& run, std::uint64_t id, const std::string& why);

  sqlite::Database& database_;
  std::uint64_t most_text_bytes_;
  sqlite::Statement id_, checksums_, record_, axes_, constants_;
  std::optional<sqlite::Statement> plugins_, rows_;
  std::optional<store::MeasureReader> measures_;  // present if a run of the store has measures of its own
};

}  // namespace fl
