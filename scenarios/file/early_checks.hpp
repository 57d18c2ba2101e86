// Checks of a scenario before its data are read: whether its data sets and files are there, and whether its model has the constants that
// its rules name, those that tuning would try included. These problems are reported together with those of the file itself.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "scenarios/file/config_tree.hpp"
#include "scenarios/file/key_places.hpp"
#include "scenarios/file/scenario.hpp"
#include "scenarios/file/tune_settings.hpp"

namespace fl {

// Folders searched for inputs; none without a catalog.
struct InputSearch {
  std::filesystem::path folder{};  // of the scenario file
  const DataCatalog* catalog = nullptr;
};

// Returns why a rule that names L, L_max, mu or theory has no value for a model without a known smoothness, and what to write instead.
[[nodiscard]] std::string needs_smoothness_text(const Expression& rule, const std::string& key, const std::string& model);
[[nodiscard]] bool needs_smoothness(const Expression& rule);

// Checks scenario after scenario; what was found in order is not looked at again.
class EarlyChecks {
 public:
  // `tuned` are the keys and values of [sweep.tune].
  explicit EarlyChecks(InputSearch search, const std::vector<TuneKey>& tuned = {});
  // Adds problems at the places of their keys.
  void check(const Scenario& scenario, const KeyPlaces& places, ProblemList& problems);

 private:
  void check_rules(const Scenario& scenario, const KeyPlaces& places, ProblemList& problems);
  void check_inputs(const Scenario& scenario, const KeyPlaces& places, ProblemList& problems);

  // A rule that names a constant of a smooth model, and where [sweep.tune] lists it.
  struct TunedRule {
    std::string key;
    Expression rule;
    SourceLocation place;
  };

  InputSearch search_;
  std::vector<TunedRule> tuned_;
  std::set<std::string> good_;
};

}  // namespace fl
