// `fedbits export STORE --rounds rounds.csv --runs runs.csv`: writes the contents of a store as tables. A path that ends in .json gets an
// array of objects with the same names.
//
// A double is written as the shortest text that reads back as the same double. An unmeasured value is an empty cell, or null. An infinite
// value is inf in CSV, and 1e999 in JSON, which readers parse as infinity. Cells of a CSV are quoted as in RFC 4180.
//
// A spreadsheet treats a cell that begins with = + - @ or a control character as a formula. A text cell of a CSV that begins with one of
// these, or with an apostrophe, is prefixed with an apostrophe unless the whole text is a finite number. A program that reads texts back
// removes one leading apostrophe (in Python: text[1:] if text[:1] == "'" else text).
//
// Runs are in the order in which they were first stored. A reproducible export sorts them by hash and leaves `seconds` empty, so that its
// bytes do not depend on timing.
//
// runs.csv contains the configuration of each run: the labels of its axes, the keys in which the runs of the export differ, and all keys as
// one JSON object. rounds.csv has the labels and the cumulative bits. docs/results.md describes every column.
//
// Results of runs made by another version of fedbits (scenarios/file/results_version.hpp) are left out, so that the two kinds are not
// averaged together. With OtherResults::written they are included, and runs.csv has a column results_version.
#pragma once

#include <filesystem>
#include <iosfwd>

#include "fl_core/config/device.hpp"
#include "scenarios/file/results_version.hpp"
#include "scenarios/results/run_store.hpp"
#include "study/output/table_writer.hpp"

namespace fl {

enum class OtherResults { left_out, written };

struct ExportOptions {
  std::filesystem::path rounds, runs;  // output paths; an empty path omits the table
  bool reproducible = false;
  OtherResults others = OtherResults::left_out;
};

// Checks the options. Throws ConfigError if no table is requested, or if a name ends in neither .csv nor .json.
FL_API void validate(const ExportOptions& options);

// Writes the tables, first under temporary names; both are renamed at the end. Returns which runs of other versions were left out, and adds
// those whose bytes do not match their checksums to `damaged`. Throws StoreError that names the path and the reason.
FL_API ResultsVersions export_results(const RunStore& store, const ExportOptions& options, std::vector<DamagedRun>& damaged);

// Write whole runs, leave out those in `damaged`, and add newly found damaged runs to `damaged`.
FL_API void write_rounds(const RunStore& store, bool reproducible, TableFormat format, std::ostream& out, OtherResults others,
                         std::vector<DamagedRun>& damaged);
FL_API void write_runs(const RunStore& store, bool reproducible, TableFormat format, std::ostream& out, OtherResults others,
                       std::vector<DamagedRun>& damaged);

}  // namespace fl
