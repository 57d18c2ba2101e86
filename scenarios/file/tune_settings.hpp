// The table [sweep.tune]: which keys are tuned, on how many seeds, and where candidates are compared.
//
//   keys = [{key, values}, ...]   the candidates of a method are all combinations of the values of those keys that its parts have;
//                                 `key` and `values` in the table itself are one such key
//   at = "bits"                   candidates are compared at B bits, those that the method `budget_of` sends in the scenario's rounds
//   at = "seconds"                likewise at the simulated time that the method `budget_of` takes for the scenario's rounds
//   at = "rounds"                 candidates are compared at the scenario's rounds
//   at = "target"                 candidates are compared by the bits with which they reach the level of the method `target_of`, which is
//                                 tuned first, at the scenario's rounds; `margin` says how far from its level is near enough
//
// A measure is compared as the mean of the last fifth of the bits or rounds (scenarios/results/end_point.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/file/analysis_plan.hpp"
#include "scenarios/file/config_tree.hpp"
#include "scenarios/results/trace.hpp"

namespace fl {

struct TuneKey {
  std::string key;            // "local.learning_rate"
  std::vector<Value> values;  // as written
  SourceLocation place = {};  // of the list
};

inline constexpr std::size_t kMostCandidates = 10'000;  // of a method: combinations of the values of all keys

// The settings with which tuning finds values on seeds of its own. Every method gets the same values and seeds.
struct TuneSettings {
  enum class At { rounds, bits, target };
  std::int64_t seeds = 3;
  std::vector<TuneKey> keys;                     // none: nothing but matching
  std::string measure = "train_loss";            // train_loss, f_gap, or a column of evaluate.measures
  bool is_highest_best = false;                  // as that column says; else the smallest is
  At at = At::rounds;                            // where candidates are compared
  Against budget_bits = Against::bits_up;        // what the budget counts, seconds as well, or which bits a target costs
  Margin margin{.text = "1.1x"};                 // of a target: how far from the reference's level
  SourceLocation place = {}, budget_place = {};  // of the table, and of what names the budget
  SourceLocation measure_place = {};
};

// The table as written.
struct TuneTable {
  TuneSettings settings;
  std::optional<TuneSettings::At> at;
  std::string budget_of;  // label of a method; "" = chosen
  std::string target_of;  // the same
  SourceLocation place, budget_place, margin_place;
  std::vector<SourceLocation> key_places;  // of settings.keys
};

// Returns the level that is near enough to that of the reference.
[[nodiscard]] FL_API double target_near(double level, const TuneSettings& settings);

[[nodiscard]] TuneTable read_tune(const Node& table, ProblemList& problems);

}  // namespace fl
