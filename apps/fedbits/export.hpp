// `fedbits export STORE --rounds rounds.csv --runs runs.csv`: what a store holds, as tables. A path that ends in .json gets an array of
// objects with the same names.
//
// A double is written as the shortest text that reads back as the same double. What was not measured is an empty cell, or null. An
// infinite value is inf in CSV, and 1e999 in JSON, which readers take for infinity. Cells of a CSV are quoted as in RFC 4180.
//
// Runs come in the order in which they were first stored. A reproducible export sorts them by hash and leaves `seconds` empty, so that it
// has the same bytes whatever the machine did meanwhile.
#pragma once

#include <filesystem>
#include <iosfwd>

#include "server/run_store.hpp"

namespace fl {

// A cell of a CSV file: quoted where it must be.
[[nodiscard]] std::string csv_text(const std::string& text);

enum class TableFormat { csv, json };

struct ExportOptions {
  std::filesystem::path rounds, runs;  // where to write; an empty path leaves the table out
  bool reproducible = false;
};

// Problems with the options themselves: ConfigError when nothing is asked for, or a name ends in neither .csv nor .json.
void validate(const ExportOptions& options);

// Writes the tables: each under a temporary name first, both renamed at the end. StoreError names the path and the reason.
void export_results(const RunStore& store, const ExportOptions& options);

void write_rounds(const RunStore& store, bool reproducible, TableFormat format, std::ostream& out);
void write_runs(const RunStore& store, bool reproducible, TableFormat format, std::ostream& out);

}  // namespace fl
