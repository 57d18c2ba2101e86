// The table [sweep] of a scenario file as written: axes, exclusions, keys of some combinations, tuning. sweep.cpp makes the cells of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/file/config_tree.hpp"
#include "scenarios/file/tune_settings.hpp"

namespace fl {

inline constexpr std::size_t kMostCells = 100'000;  // of a sweep; an axis has at most as many values

struct AxisValue {
  std::string label;
  Node node;
  std::string match_bits_of = {}, match_key = "threshold";
  SourceLocation match_place = {}, match_key_place = {};
};

struct Axis {
  std::string key;
  SourceLocation key_place;
  std::vector<AxisValue> values;
  std::string zip;  // "" = moves alone
};

// The combinations that carry, on each of these axes, one of the labels.
struct LabelChoice {
  std::map<std::size_t, std::set<std::string>> labels;  // by axis
};

// Returns true for a combination, which is given by the number of each axis's value.
[[nodiscard]] bool is_chosen(const LabelChoice& choice, const std::vector<Axis>& axes, const std::vector<std::size_t>& value_of);

// Keys of the scenario that some combinations set, as [[sweep.set]].
struct KeysOfCombinations {
  LabelChoice when;
  std::vector<std::pair<std::string, Node>> keys;  // dotted paths and their values, which are no tables
  SourceLocation place;
};

struct Sweep {
  std::int64_t seeds = 1;
  SourceLocation place, seeds_place, exclude_place;
  std::vector<Axis> axes;
  std::vector<LabelChoice> exclusions;
  std::vector<KeysOfCombinations> sets;  // a later one replaces what an earlier one sets
  std::optional<TuneTable> tune;
  std::string to_bits_of;  // label whose bits every run of the study goes on to; "" = the scenario's rounds
  SourceLocation to_bits_place;
  std::string plan_file;  // path of the analysis plan (analysis_plan.hpp); "" = none
  SourceLocation plan_place;
};

// Returns true if `path` is `inner` or a table around it: "compressor.up" holds "compressor.up.k".
[[nodiscard]] bool holds(const std::string& path, const std::string& inner);

// Takes [sweep] out of the tree.
[[nodiscard]] Sweep take_sweep(Node& root, ProblemList& problems);

}  // namespace fl
