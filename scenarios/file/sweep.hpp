// A sweep: the grid of scenarios that one file describes.
//
//   [sweep] seeds = n               seed, seed+1, ... for all four seeds, so that cells of equal seed are paired
//   [[sweep.axis]] key, values      every combination of the axes' values; a value that is a table carries a label, stands in the place of
//                                   the table at its key, and inherits some of that (scenarios/file/axis_table.hpp)
//                 zip = "name"      axes of one zip move together, first value with first value; they need equally many
//   [[sweep.exclude]] axis = label  leaves out every combination with these labels (or one of a list of labels), as in
//                                     compressor.up = "none"
//                                     partition.alpha = [0.1, 0.5]
//   [[sweep.set]] when, keys        sets keys in the combinations with the labels of `when` (written as in exclude), after the axes; later
//                                   tables replace what earlier ones set
//
//   [sweep.tune]                    finds the best values of keys for every combination, on seeds of its own
//                                   (scenarios/file/tune_settings.hpp)
//   match_bits_of = "label"         in a table value: finds the value of an option (match_key, "threshold") at which as many bits are
//                                   sent as by the value of that label on the same axis
//   to_bits_of = "label"            every run goes on until it has sent the bits that the method of that label sends in the scenario's
//                                   rounds, or to kMostRounds times these
// tune_cells() (scenarios/sweep/tuning.hpp) sets tuned values; until then cells hold the file's.
//
// Cells come in order: the first axis outermost, seeds innermost.
//
// Rows that are held out at random are the same for all seeds of a study and of its tuning (data.test_seed, by default the first data
// seed), so that no row is a test row in one run and a training row in another.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/file/scenario.hpp"
#include "scenarios/file/scenario_text.hpp"
#include "scenarios/file/tune_settings.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

// The option that makes a cell send as many bits as its neighbour on one axis.
struct MatchBits {
  std::size_t axis = 0;   // of the labels
  std::string reference;  // label of the neighbour
  std::string option;     // "compressor.up.threshold"
};

inline constexpr std::int64_t kMostRounds = 4;  // times the scenario's rounds, of runs that go on to a budget of bits

inline constexpr const char* kRunsOfStudy = "runs_of_study";  // constant of a run: the number of cells of its file

using AxisLabels = std::vector<std::pair<std::string, std::string>>;  // {key, label} per axis, in order

class KeyPlaces;

struct Cell {
  Scenario scenario;
  AxisLabels axis_labels;
  std::string resolved_toml;                          // to_toml(scenario)
  std::filesystem::path folder;                       // of the scenario file: where its relative paths are looked for
  std::shared_ptr<const KeyPlaces> places = nullptr;  // where its keys were written (scenarios/file/key_places.hpp)
  std::uint64_t hash = 0;                             // hash_of_text(resolved_toml)
  std::optional<MatchBits> match;
  std::shared_ptr<const TuneSettings> tune;
  std::vector<std::size_t> tuned_keys;  // into tune->keys: those that the parts of this combination have
  AxisLabels budget_labels;             // of the combination whose bits are the budget, or whose level is the target; empty without
  bool goes_to_budget = false;          // the study's runs end at the budget or target, as those of its tuning do
  std::vector<ResolvedConstant> found;  // what tuning tells of this cell, recorded with its runs
  [[nodiscard]] bool needs_tuning() const { return match || !tuned_keys.empty() || goes_to_budget; }
  // The labels of the combination whose bits are to be matched; only where there is one.
  [[nodiscard]] AxisLabels reference_labels() const {
    auto labels = axis_labels;
    labels[match->axis].second = match->reference;
    return labels;
  }
};

// Returns the same cell with an option set. Throws ConfigError for a key or value that does not fit.
[[nodiscard]] FL_API Cell with_option(const Cell& cell, const std::string& key, const Value& value);
// The same with the place where the value was written.
[[nodiscard]] Cell with_option(const Cell& cell, const std::string& key, const Value& value, const SourceLocation& place);
// Returns the same cell with all seeds moved on, and the same test rows.
[[nodiscard]] FL_API Cell with_later_seeds(const Cell& cell, std::uint64_t steps);
// Returns the same cell as a run that ends when it has sent `bits`, or after kMostRounds times its rounds.
[[nodiscard]] FL_API Cell with_budget(const Cell& cell, Against which, double bits);
// Returns the same cell as a run that ends when the tuned measure has reached the target, or after kMostRounds times its rounds.
[[nodiscard]] FL_API Cell with_target(const Cell& cell, const TuneSettings& settings, double target);

// All cells of a scenario file; `settings` are the texts of --set. Throws ConfigError with all problems, with a catalog also those of data
// sets and files that are not there.
[[nodiscard]] FL_API std::vector<Cell> read_cells(const std::filesystem::path& file, const std::vector<std::string>& settings = {},
                                                  const DataCatalog* catalog = nullptr);

[[nodiscard]] FL_API std::vector<Cell> read_cells(const ScenarioText& scenario, const std::vector<std::string>& settings,
                                                  const DataCatalog* catalog);

// The same for a text; `source` names it in errors.
[[nodiscard]] FL_API std::vector<Cell> parse_cells(const std::string& text, const std::string& source,
                                                   const std::vector<std::string>& settings = {});

}  // namespace fl
