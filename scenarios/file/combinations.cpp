#include "scenarios/file/combinations.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "scenarios/file/sections.hpp"

namespace fl {

namespace {

// Returns whether a value of the axis is a table, or holds one: it then changes which tables and keys there are.
bool has_tables(const Axis& axis) {
  return std::ranges::any_of(axis.values, [](const AxisValue& value) { return value.node.holds_table(); });
}

// Returns the table of the scenario in which an axis without tables changes values; none where it changes which keys there are.
std::optional<std::string> table_of(const Axis& axis, const std::vector<std::string>& tables) {
  std::string longest;
  for (const std::string& table : tables)
    if (!table.empty() && holds(table, axis.key) && table.size() > longest.size()) longest = table;
  if (longest == "compressor" || longest == "feedback") return std::nullopt;
  return longest;
}

}  // namespace

Combinations::Combinations(const Sweep& sweep) : sweep_(sweep) {
  for (const Axis& axis : sweep.axes) has_tables_.push_back(has_tables(axis));
}

Scenario Combinations::read(const Node& tree, const std::vector<std::size_t>& value_of, ProblemList& problems) {
  if (!sweep_.sets.empty()) return read_scenario(tree, problems);  // any key may differ
  const std::vector<std::size_t> tables = values_of_tables(value_of);
  const auto known = known_.find(tables);
  known_now_ = known == known_.end() ? nullptr : &known->second;
  if (known_now_ == nullptr) {
    Scenario scenario = read_scenario(tree, problems);
    if (problems.empty()) keep(tables, scenario);
    return scenario;
  }
  Scenario scenario = known_now_->first;
  read_tables(tree, known_now_->read, scenario, problems);
  return scenario;
}

std::string Combinations::text_of(const Scenario& scenario) const {
  return known_now_ == nullptr ? to_toml(scenario) : known_now_->texts.text(scenario, known_now_->written);
}

std::vector<std::size_t> Combinations::values_of_tables(const std::vector<std::size_t>& value_of) const {
  std::vector<std::size_t> values;
  for (std::size_t a = 0; a < value_of.size(); ++a)
    if (has_tables_[a]) values.push_back(value_of[a]);
  return values;
}

void Combinations::keep(const std::vector<std::size_t>& values, const Scenario& scenario) {
  const std::vector<std::string> tables = section_paths(scenario);
  std::set<std::string> changed = {"", "seeds"};  // `seed` sets what [seeds] does not
  for (std::size_t a = 0; a < sweep_.axes.size(); ++a) {
    if (has_tables_[a]) continue;
    const std::optional<std::string> table = table_of(sweep_.axes[a], tables);
    if (!table) return;
    for (const std::string& outer : tables)
      if (outer == *table || (!outer.empty() && holds(outer, *table))) changed.insert(outer);
  }
  std::set<std::string> written = changed;
  if (scenario.data.draws_test_rows()) written.insert("data");  // data.test_seed
  if (known_.size() == kMostKnown) known_.clear();
  known_now_ = &known_.emplace(values, Known{scenario, std::move(changed), std::move(written), ScenarioTexts(scenario)}).first->second;
}

}  // namespace fl
