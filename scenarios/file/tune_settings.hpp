// The table [sweep.tune]: which keys are tuned, on how many seeds, and where candidates are compared.
//
//   keys = [{key, values}, ...]   the candidates of a method are all combinations of the values of those keys that its parts have;
//                                 `key` and `values` in the table itself are one such key
//   at = "bits"                   candidates are compared at B bits, those that the method `budget_of` sends in the scenario's rounds
//   at = "rounds"                 candidates are compared at the scenario's rounds
//
// A measure is compared as the mean of the last fifth of the bits or rounds (scenarios/results/end_point.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/file/config_tree.hpp"
#include "scenarios/results/trace.hpp"

namespace fl {

struct TuneKey {
  std::string key;            // "local.learning_rate"
  std::vector<Value> values;  // as written
  SourceLocation place = {};  // of the list
};

inline constexpr std::size_t kMostCandidates = 10'000;  // of a method: combinations of the values of all keys

// How values are found on seeds of their own. Every method gets the same values and seeds.
struct TuneSettings {
  enum class At { rounds, bits };
  std::int64_t seeds = 3;
  std::vector<TuneKey> keys;                     // none: nothing but matching
  std::string measure = "train_loss";            // train_loss, f_gap, or a column of evaluate.measures
  bool is_highest_best = false;                  // as that column says; else the smallest is
  At at = At::rounds;                            // where candidates are compared
  Against budget_bits = Against::bits_up;        // which bits the budget counts
  SourceLocation place = {}, budget_place = {};  // of the table, and of what names the budget
  SourceLocation measure_place = {};
};

// The table as written.
struct TuneTable {
  TuneSettings settings;
  std::optional<TuneSettings::At> at;
  std::string budget_of;  // label of a method; "" = chosen
  SourceLocation place, budget_place;
  std::vector<SourceLocation> key_places;  // of settings.keys
};

[[nodiscard]] TuneTable read_tune(const Node& table, ProblemList& problems);

}  // namespace fl
