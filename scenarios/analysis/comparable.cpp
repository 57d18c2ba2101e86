#include "scenarios/analysis/comparable.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "scenarios/file/axis_table.hpp"
#include "scenarios/file/results_version.hpp"
#include "scenarios/file/sweep_reader.hpp"
#include "scenarios/file/toml_reader.hpp"

namespace fl {
namespace {

constexpr std::size_t kMostDifferences = 4;  // in a name
constexpr const char *kTuned = "tuning_candidates:", *kMatched = "matched_bits_key:", *kDeviation = "matched_bits_deviation",
                     *kKind = ".kind";

using FlatScenario = std::map<std::string, std::string>;  // values of a scenario as text, by dotted path

void flatten(const Node& node, const std::string& path, FlatScenario& flat) {
  if (node.kind == Node::Kind::array && node.holds_table())
    for (std::size_t i = 0; i < node.items.size(); ++i) flatten(node.items[i], path + "." + std::to_string(i + 1), flat);
  else if (node.kind != Node::Kind::table)
    flat[path] = node.shown();
  for (const auto& [key, member] : node.members) flatten(member, join_path(path, key), flat);
}

// Removes and returns all values at or below a path.
FlatScenario take_below(FlatScenario& flat, const std::string& path) {
  FlatScenario taken;
  std::erase_if(flat, [&](const auto& entry) {
    const bool is_below = holds(path, entry.first);
    if (is_below) taken.insert(entry);
    return is_below;
  });
  return taken;
}

std::optional<std::int64_t> take_number(FlatScenario& flat, const std::string& key) {
  const auto found = flat.find(key);
  if (found == flat.end()) return std::nullopt;
  std::int64_t number = 0;
  std::from_chars(found->second.data(), found->second.data() + found->second.size(), number);
  flat.erase(found);
  return number;
}

// A run, split into values that it shares with its study and values of its own.
struct SortedRun {
  std::size_t record = 0;
  std::vector<std::string> axes{};            // keys
  FlatScenario shared{};                      // values that are equal in all runs of the study
  std::map<std::string, FlatScenario> own{};  // values that each axis set, without those that tuning found
  FlatScenario found{};                       // values that tuning found for the cell
  std::optional<std::int64_t> test_seed{};    // as in the scenario
  std::int64_t data_seed = 0;
};

// Removes the seeds from the scenario but keeps their distances from the data seed, if these are not zero.
void take_seeds(FlatScenario& flat, SortedRun& run) {
  if (const auto common = take_number(flat, "seed")) {
    run.data_seed = *common;
  } else if (const auto data = take_number(flat, "seeds.data")) {
    run.data_seed = *data;
    for (const char* name : {"init", "sampling", "compressor"})
      if (const auto seed = take_number(flat, std::string("seeds.") + name); seed && *seed != *data)
        flat[std::string("seeds.") + name] = "seeds.data + " + std::to_string(*seed - *data);
  }
  run.test_seed = take_number(flat, "data.test_seed");
}

// Replaces values that tuning found by a word at their key, so that a study with a tuned value differs from one with a fixed value.
void take_found(const RunRecord& record, FlatScenario& flat, SortedRun& run) {
  const auto take = [&](const std::string& key, const char* word) {
    FlatScenario below = take_below(flat, key);
    run.found.merge(below);
    if (word != nullptr) flat[key] = word;
  };
  const auto on_an_axis = [&](const std::string& key) {
    return std::ranges::any_of(run.axes, [&](const std::string& axis) { return holds(axis, key); });
  };
  for (const ResolvedConstant& constant : record.constants) {
    if (constant.name.starts_with(kMatched)) take(constant.name.substr(std::string(kMatched).size()), nullptr);
    if (constant.name == kDeviation)  // records made before the key was recorded
      for (const std::string& axis : run.axes) take(axis + ".threshold", nullptr);
    if (constant.name == "budget_bits")
      for (const char* key : {"stop.bits", "stop.bits_up", "stop.seconds"})
        if (flat.contains(key)) take(key, "a method's budget");
    if (constant.name == "target_level")
      for (const char* key : {"stop.f_gap", "stop.train_loss", "stop.measures"})
        if (flat.contains(key)) take(key, "a method's level");
    if (!constant.name.starts_with(kTuned)) continue;
    const std::string key = constant.name.substr(std::string(kTuned).size());
    take(key, on_an_axis(key) ? nullptr : "tuned");
  }
}

// Sorts axes so that inner ones come first: an axis may set a value in the table of another, and the options of a part depend on its kind.
std::vector<std::string> inner_first(std::vector<std::string> axes) {
  std::ranges::stable_sort(axes, {},
                           [](const std::string& axis) { return std::pair(-std::ranges::count(axis, '.'), axis.ends_with(kKind)); });
  return axes;
}

FlatScenario take_axis(FlatScenario& flat, const std::string& axis) {
  if (!axis.ends_with(kKind)) return take_below(flat, axis);
  const std::string path = axis.substr(0, axis.size() - std::string(kKind).size());
  FlatScenario taken = take_below(flat, path);
  for (const std::string& key : keys_of_table(path))  // these keys belong to the table, for every kind
    if (const auto found = taken.extract(path + "." + key)) flat[path + "." + key] = found.mapped();
  return taken;
}

SortedRun sort_run(const RunRecord& record, std::size_t index, bool names_are_an_axis) {
  SortedRun run{.record = index};
  FlatScenario flat;
  ProblemList ignored;
  if (!record.scenario.empty()) flatten(parse_toml(record.scenario, "stored scenario", ignored), "", flat);
  flat.erase(kResultsVersionKey);
  flat["name"] = record.name;
  for (const AxisLabel& axis : record.axes)
    if (axis.key != "seed") run.axes.push_back(axis.key);
  take_seeds(flat, run);
  take_found(record, flat, run);
  for (const std::string& axis : inner_first(run.axes)) run.own[axis] = take_axis(flat, axis);
  if (names_are_an_axis)
    run.own["name"] = std::exchange(flat, {});
  else
    for (const std::string& axis : run.axes) flat[axis] = "on an axis";
  run.shared = std::move(flat);
  return run;
}

// ---- what differs --------------------------------------------------------------------------------------------------------------

// Returns the keys in which some of the scenarios differ.
std::vector<std::string> differing_keys(const std::vector<const FlatScenario*>& all) {
  std::set<std::string> keys;
  std::vector<std::string> differing;
  for (const FlatScenario* one : all)
    for (const auto& [key, _] : *one) keys.insert(key);
  const auto value = [](const FlatScenario& flat, const std::string& key) { return flat.contains(key) ? flat.at(key) : std::string(); };
  for (const std::string& key : keys)
    if (std::ranges::any_of(all, [&](const FlatScenario* one) { return value(*one, key) != value(*all.front(), key); }))
      differing.push_back(key);
  std::ranges::stable_sort(differing, {}, [](const std::string& key) { return std::ranges::count(key, '.'); });
  return differing;
}

// Returns "rounds = 20, local.learning_rate = 0.1". The common path of all keys is left out of the names.
std::string differences_text(const FlatScenario& flat, const std::vector<std::string>& keys, const std::string& below = "") {
  std::string text;
  std::size_t count = 0;
  for (const std::string& key : keys) {
    if (!flat.contains(key)) continue;
    if (++count > kMostDifferences) continue;
    const std::string& value = flat.at(key);
    const std::string shown = !below.empty() && key.starts_with(below + ".") ? key.substr(below.size() + 1) : key;
    text += (text.empty() ? "" : ", ") + (value == "on an axis" ? shown + " " + value : shown + " = " + value);
  }
  return count > kMostDifferences ? text + " and " + std::to_string(count - kMostDifferences) + " more" : text;
}

// ---- studies -------------------------------------------------------------------------------------------------------------------

using Runs = std::vector<SortedRun>;

// Handles the seeds of test rows. Test rows that each run's own seed draws are no difference. If some run names a seed for them, all runs
// get one.
void settle_test_seeds(Runs& runs) {
  std::map<FlatScenario, bool> is_named;
  for (const SortedRun& run : runs) is_named[run.shared] = is_named[run.shared] || run.test_seed.has_value();
  for (SortedRun& run : runs)
    if (is_named[run.shared]) run.shared["data.test_seed"] = std::to_string(run.test_seed.value_or(run.data_seed));
}

std::vector<Runs> split_by_shared(Runs runs) {
  settle_test_seeds(runs);
  std::map<FlatScenario, std::size_t> places;
  std::vector<Runs> studies;
  for (SortedRun& run : runs) {
    const auto [place, is_new] = places.try_emplace(run.shared, studies.size());
    if (is_new) studies.emplace_back();
    studies[place->second].push_back(std::move(run));
  }
  std::ranges::stable_sort(
      studies, [](const Runs& a, const Runs& b) { return a.size() != b.size() ? a.size() > b.size() : a.back().record > b.back().record; });
  return studies;
}

std::vector<std::string> names_of(const std::vector<Runs>& studies) {
  std::map<std::string, std::vector<const FlatScenario*>> by_name;
  for (const Runs& runs : studies)
    by_name[runs.front().shared.contains("name") ? runs.front().shared.at("name") : ""].push_back(&runs.front().shared);
  std::vector<std::string> names;
  for (const Runs& runs : studies) {
    const FlatScenario& shared = runs.front().shared;
    const std::string name = shared.contains("name") ? shared.at("name") : "all runs";
    const std::vector<const FlatScenario*>& alike = by_name.at(shared.contains("name") ? name : "");
    const std::string differences = differences_text(shared, differing_keys(alike));
    std::string text = by_name.size() > 1 || alike.size() == 1 ? name : "";
    if (!differences.empty()) text += (text.empty() ? "" : ", ") + differences;
    if (text.empty()) text = name;
    const auto same =
        std::ranges::count_if(names, [&](const std::string& other) { return other == text || other.starts_with(text + " #"); });
    names.push_back(same == 0 ? text : text + " #" + std::to_string(same + 1));
  }
  return names;
}

// ---- cells ---------------------------------------------------------------------------------------------------------------------

// Gives distinct labels to different values under one label of an axis.
void tell_labels_apart(Runs& runs, std::vector<RunRecord>& records, std::vector<std::string>& notes) {
  std::map<std::pair<std::string, std::string>, std::set<FlatScenario>> values;  // by axis and label
  const auto each_axis = [&](auto act) {
    for (SortedRun& run : runs)
      for (AxisLabel& axis : records[run.record].axes)
        if (run.own.contains(axis.key)) act(axis, run.own.at(axis.key));
  };
  each_axis([&](const AxisLabel& axis, const FlatScenario& own) { values[{axis.key, axis.label}].insert(own); });
  each_axis([&](AxisLabel& axis, const FlatScenario& own) {
    const auto found = values.find({axis.key, axis.label});
    if (found == values.end() || found->second.size() < 2) return;
    std::vector<const FlatScenario*> all;
    for (const FlatScenario& value : found->second) all.push_back(&value);
    axis.label += " (" + differences_text(own, differing_keys(all), axis.key) + ")";
  });
  for (const auto& [place, all] : values)
    if (all.size() > 1)
      notes.push_back("the label '" + place.second + "' of " + place.first + " stands for " + std::to_string(all.size()) +
                      " different values in this store; they are told apart as labels of their own");
}

// Keeps, in a cell that was tuned more than once, only the runs with the values of its newest run.
void keep_newest_values(Runs& runs, const std::vector<RunRecord>& records, std::vector<std::string>& notes) {
  std::map<std::vector<std::string>, const SortedRun*> newest;
  const auto labels_of = [&](const SortedRun& run) {
    std::vector<std::string> labels{run.own.contains("name") ? records[run.record].name : ""};
    for (const AxisLabel& axis : records[run.record].axes)
      if (axis.key != "seed") labels.push_back(axis.label);
    return labels;
  };
  for (const SortedRun& run : runs) newest[labels_of(run)] = &run;
  std::map<std::vector<std::string>, std::pair<FlatScenario, std::map<std::string, FlatScenario>>> kept;
  for (const auto& [labels, run] : newest) kept[labels] = {run->found, run->own};
  const std::size_t removed = std::erase_if(runs, [&](const SortedRun& run) {
    const auto& [found, own] = kept.at(labels_of(run));
    return run.found != found || run.own != own;
  });
  if (removed > 0)
    notes.push_back(std::to_string(removed) + (removed == 1 ? " run was" : " runs were") +
                    " left out: later runs have the same labels and other values that tuning found");
}

}  // namespace

std::vector<ComparableRuns> comparable_runs(std::vector<RunRecord> records, bool names_are_an_axis) {
  Runs sorted;
  for (std::size_t i = 0; i < records.size(); ++i) sorted.push_back(sort_run(records[i], i, names_are_an_axis));
  std::vector<Runs> studies = split_by_shared(std::move(sorted));
  const std::vector<std::string> names = names_of(studies);
  std::vector<ComparableRuns> result;
  for (std::size_t s = 0; s < studies.size(); ++s) {
    ComparableRuns& study = result.emplace_back(ComparableRuns{.name = names[s]});
    tell_labels_apart(studies[s], records, study.notes);
    keep_newest_values(studies[s], records, study.notes);
    for (const SortedRun& run : studies[s]) study.records.push_back(std::move(records[run.record]));
  }
  return result;
}

}  // namespace fl
