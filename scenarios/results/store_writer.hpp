// Writes a run into the tables of a store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/results/run_record.hpp"
#include "scenarios/results/sqlite.hpp"

namespace fl::store {

// Returns the number of a run, as recorded in either list of runs.
[[nodiscard]] std::optional<std::uint64_t> number_of(sqlite::Database& database, const std::string& run);

// Writes a run and its checksums. The run replaces the one stored under its hash and takes its `number`; a new run takes the next number.
// Call within a transaction.
void write_run(sqlite::Database& database, const std::optional<std::uint64_t>& number, const RunRecord& record,
               const std::vector<RoundRow>& rows);

}  // namespace fl::store
