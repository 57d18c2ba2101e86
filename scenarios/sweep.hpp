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
// Cells come in order: the first axis outermost, seeds innermost.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/scenario.hpp"

namespace fl {

struct Cell {
  Scenario scenario;
  std::vector<std::pair<std::string, std::string>> axis_labels;  // {key, label} per axis, in order
  std::string resolved_toml;                                     // to_toml(scenario)
  std::filesystem::path folder;                                  // of the scenario file: where its relative paths are looked for
  std::uint64_t hash = 0;                                        // hash_of_text(resolved_toml)
};

// All cells of a scenario file; `settings` are the texts of --set. Throws ConfigError with all problems.
[[nodiscard]] FL_API std::vector<Cell> read_cells(const std::filesystem::path& file, const std::vector<std::string>& settings = {});

// The same for a text; `source` names it in errors.
[[nodiscard]] FL_API std::vector<Cell> parse_cells(const std::string& text, const std::string& source,
                                                   const std::vector<std::string>& settings = {});

}  // namespace fl
