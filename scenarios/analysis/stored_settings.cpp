#include "scenarios/analysis/stored_settings.hpp"

#include <algorithm>
#include <set>
#include <variant>

#include "scenarios/file/stored_scenario.hpp"

namespace fl {
namespace {

void add(const std::string& path, const Value& value, KeyValues& settings) {
  if (const auto* table = std::get_if<Value::Table>(&value.data)) {
    for (const auto& [key, member] : *table) add(path.empty() ? key : path + "." + key, member, settings);
  } else {
    settings[path] = to_string(value);
  }
}

}  // namespace

StoredSettings::StoredSettings(const Study& study) {
  for (const StudyCell& cell : study.cells) {
    if (cell.runs.empty()) continue;
    const RunRecord& record = study.runs[cell.runs.front()].record;
    add("", stored_scenario(record.scenario, record.run), runs_.emplace_back());
    records_.push_back(&record);
    cells_.push_back(&cell);
    for (const AxisLabel& axis : record.axes)
      if (std::ranges::find(axes_, axis.key) == axes_.end()) axes_.push_back(axis.key);
  }
}

const std::string& StoredSettings::value(std::size_t run, const std::string& key) const {
  static const std::string none;
  const auto found = runs_[run].find(key);
  return found == runs_[run].end() ? none : found->second;
}

std::vector<std::string> StoredSettings::keys(const std::string& prefix) const {
  std::set<std::string> keys;
  for (const KeyValues& run : runs_)
    for (auto at = run.lower_bound(prefix); at != run.end() && at->first.starts_with(prefix); ++at) keys.insert(at->first);
  return {keys.begin(), keys.end()};
}

std::vector<std::string> StoredSettings::values(const std::string& key) const {
  std::vector<std::string> values;
  for (std::size_t run = 0; run < runs_.size(); ++run)
    if (std::ranges::find(values, value(run, key)) == values.end()) values.push_back(value(run, key));
  return values;
}

std::string StoredSettings::axis_of(const std::string& key) const {
  const auto sets = [&key](const std::string& axis) { return key == axis || key.starts_with(axis + "."); };
  const auto found = std::ranges::find_if(axes_, sets);
  return found == axes_.end() ? "" : *found;
}

std::string StoredSettings::label(std::size_t run, const std::string& axis) const {
  const auto found = std::ranges::find(records_[run]->axes, axis, &AxisLabel::key);
  return found == records_[run]->axes.end() ? "" : found->label;
}

bool is_of_seeds(const std::string& key) { return key == "seed" || key.starts_with("seeds.") || key == "data.test_seed"; }

}  // namespace fl
