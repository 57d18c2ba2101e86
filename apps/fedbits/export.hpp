// `fedbits export STORE --rounds rounds.csv --runs runs.csv`: what a store holds, as tables. A path that ends in .json gets an array of
// objects with the same names.
//
// A double is written as the shortest text that reads back as the same double. What was not measured is an empty cell, or null. An
// infinite value is inf in CSV, and 1e999 in JSON, which readers take for infinity. Cells of a CSV are quoted as in RFC 4180.
//
// A spreadsheet takes a cell that begins with = + - @ or a control character for a formula. A text cell of a CSV that begins with one of
// these, or with an apostrophe, has an apostrophe put in front, unless all of it is a finite number: a program that reads texts back
// takes one leading apostrophe off (in Python: text[1:] if text[:1] == "'" else text).
//
// Runs come in the order in which they were first stored. A reproducible export sorts them by hash and leaves `seconds` empty, so that it
// has the same bytes whatever the machine did meanwhile.
//
// runs.csv says how each run was configured: the labels of its axes, the keys in which the runs of the export differ, and all keys as one
// JSON object. rounds.csv has the labels and the bits of all rounds so far. docs/results.md describes every column.
//
// Runs whose results another version of fedbits made (scenarios/file/results_version.hpp) are left out, so that nobody averages over both
// kinds. With OtherResults::written they are there too, and runs.csv has a column results_version.
#pragma once

#include <filesystem>
#include <iosfwd>

#include "apps/fedbits/table_writer.hpp"
#include "scenarios/file/results_version.hpp"
#include "scenarios/results/run_store.hpp"

namespace fl {

enum class OtherResults { left_out, written };

struct ExportOptions {
  std::filesystem::path rounds, runs;  // where to write; an empty path leaves the table out
  bool reproducible = false;
  OtherResults others = OtherResults::left_out;
};

// Problems with the options themselves: ConfigError when nothing is asked for, or a name ends in neither .csv nor .json.
void validate(const ExportOptions& options);

// Writes the tables: each under a temporary name first, both renamed at the end. Returns which runs were left out: those of other versions,
// and in `damaged` those whose bytes do not match their checksums. StoreError names the path and the reason.
ResultsVersions export_results(const RunStore& store, const ExportOptions& options, std::vector<DamagedRun>& damaged);

// Write whole runs and leave out those in `damaged`, to which they add what they find.
void write_rounds(const RunStore& store, bool reproducible, TableFormat format, std::ostream& out, OtherResults others,
                  std::vector<DamagedRun>& damaged);
void write_runs(const RunStore& store, bool reproducible, TableFormat format, std::ostream& out, OtherResults others,
                std::vector<DamagedRun>& damaged);

}  // namespace fl
