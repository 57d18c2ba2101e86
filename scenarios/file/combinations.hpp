// Reads and writes the scenarios of a sweep's combinations.
//
// Combinations differ in few tables: the others are read and written once. Axes whose values are tables change which tables and keys there
// are, so that is done once for each combination of their values.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scenarios/file/config_tree.hpp"
#include "scenarios/file/scenario_reader.hpp"
#include "scenarios/file/sweep_reader.hpp"

namespace fl {

class Combinations {
 public:
  // The sweep outlives it.
  explicit Combinations(const Sweep& sweep);

  // Reads the tree of a combination, which is given by the number of each axis's value.
  [[nodiscard]] Scenario read(const Node& tree, const std::vector<std::size_t>& value_of, ProblemList& problems);
  // Returns the text of a scenario of the combination that was read last, with any seeds.
  [[nodiscard]] std::string text_of(const Scenario& scenario) const;

 private:
  struct Known {
    Scenario first;
    std::set<std::string> read, written;  // tables that differ between the combinations with these tables, and between their seeds as well
    ScenarioTexts texts;
  };
  static constexpr std::size_t kMostKnown = 256;

  [[nodiscard]] std::vector<std::size_t> values_of_tables(const std::vector<std::size_t>& value_of) const;
  void keep(const std::vector<std::size_t>& values, const Scenario& scenario);

  const Sweep& sweep_;
  std::vector<bool> has_tables_;                     // by axis
  std::map<std::vector<std::size_t>, Known> known_;  // by the values of the axes of tables
  const Known* known_now_ = nullptr;                 // of the combination that was read last; null = not known
};

}  // namespace fl
