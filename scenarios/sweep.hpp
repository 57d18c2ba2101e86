// A sweep: the grid of scenarios that one file describes.
//
//   [sweep] seeds = n               seed, seed+1, ... for all four seeds, so that cells of equal seed are paired
//   [[sweep.axis]] key, values      every combination of the axes' values; a value that is a table carries a label and replaces
//                                   the table at its key
//                 zip = "name"      axes of one zip move together, first value with first value; they need equally many
//   [[sweep.exclude]] axis = label  leaves out every combination with these labels (or one of a list of labels), as in
//                                     compressor.up = "none"
//                                     partition.alpha = [0.1, 0.5]
//
//   [sweep.tune] seeds, key, values, measure    finds the best value of a key for every combination, on seeds of its own
//   match_bits_of = "label" in a table value    finds the value of an option (match_key, "threshold") at which as many bits are sent as by
//                                               the value of that label on the same axis
// What is to be found out is found by tune_cells() (scenarios/tuning.hpp); before, cells carry the values of the file.
//
// Cells come in order: the first axis outermost, seeds innermost.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/scenario.hpp"

namespace fl {

// The option that makes a cell send as many bits as its neighbour on one axis.
struct MatchBits {
  std::size_t axis = 0;   // of the labels
  std::string reference;  // label of the neighbour
  std::string option;     // "compressor.up.threshold"
};

// How values are found on seeds of their own. Every combination gets the same number of values and seeds.
struct TuneSettings {
  std::int64_t seeds = 3;
  std::string key;  // "" = nothing but matching
  std::vector<Value> values;
  std::string measure = "train_loss";  // at the end, smallest is best; never one of the test set
};

struct Cell {
  Scenario scenario;
  std::vector<std::pair<std::string, std::string>> axis_labels;  // {key, label} per axis, in order
  std::string resolved_toml;                                     // to_toml(scenario)
  std::filesystem::path folder;                                  // of the scenario file: where its relative paths are looked for
  std::uint64_t hash = 0;                                        // hash_of_text(resolved_toml)
  std::optional<MatchBits> match;
  std::shared_ptr<const TuneSettings> tune;
  [[nodiscard]] bool needs_tuning() const { return match || (tune && !tune->key.empty()); }
  // The labels of the combination whose bits are to be matched; only where there is one.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> reference_labels() const {
    auto labels = axis_labels;
    labels[match->axis].second = match->reference;
    return labels;
  }
};

// The same cell with an option set, or with all seeds moved on. Throws ConfigError for a key or value that does not fit.
[[nodiscard]] FL_API Cell with_option(const Cell& cell, const std::string& key, const Value& value);
[[nodiscard]] FL_API Cell with_later_seeds(const Cell& cell, std::uint64_t steps);

// All cells of a scenario file; `settings` are the texts of --set. Throws ConfigError with all problems.
[[nodiscard]] FL_API std::vector<Cell> read_cells(const std::filesystem::path& file, const std::vector<std::string>& settings = {});

// The same for a text; `source` names it in errors.
[[nodiscard]] FL_API std::vector<Cell> parse_cells(const std::string& text, const std::string& source,
                                                   const std::vector<std::string>& settings = {});

}  // namespace fl
