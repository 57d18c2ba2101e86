#include "scenarios/analysis/slope_differences.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "scenarios/analysis/grid.hpp"
#include "scenarios/analysis/seed_slopes.hpp"
#include "scenarios/analysis/study_axes.hpp"

namespace fl {
namespace {

using Labels = std::map<std::string, std::string>;  // by key

// Returns the keys of the axes that belong neither to the method nor to the level.
std::vector<std::string> keys_of_groups(const Study& study) {
  const std::string methods = " + " + study.axes.method + " + ";
  std::vector<std::string> keys;
  for (const StudyRun& run : study.runs)
    for (const AxisLabel& axis : run.record.axes)
      if (axis.key != study.axes.level && methods.find(" + " + axis.key + " + ") == std::string::npos &&
          std::ranges::find(keys, axis.key) == keys.end())
        keys.push_back(axis.key);
  return keys;
}

std::string label_of_axis(const RunRecord& record, const std::string& key) {
  const auto found = std::ranges::find(record.axes, key, &AxisLabel::key);
  return found == record.axes.end() ? kNoLabel : found->label;
}

// Returns the labels of each group of the contrasts, which are those of any of its runs.
std::vector<Labels> labels_of_groups(const Contrasts& contrasts, const Study& study) {
  const std::vector<std::string> keys = keys_of_groups(study);
  std::vector<Labels> labels(contrasts.groups.size());
  for (const StudyCell& cell : study.cells) {
    const auto group = std::ranges::find(contrasts.groups, study.panels[cell.panel].rest);
    if (cell.runs.empty() || group == contrasts.groups.end()) continue;
    Labels& of = labels[static_cast<std::size_t>(group - contrasts.groups.begin())];
    for (const std::string& key : keys) of.try_emplace(key, label_of_axis(study.runs[cell.runs.front()].record, key));
  }
  return labels;
}

// Returns the labels of a group on the axes that have another label than `key`. Axes with the same label are zipped with it.
Labels labels_beside(const Labels& group, const std::string& key) {
  Labels beside;
  for (const auto& [other, label] : group)
    if (label != group.at(key)) beside.emplace(other, label);
  return beside;
}

// Returns the pairs of groups that differ in the two labels alone.
std::vector<std::pair<std::size_t, std::size_t>> pairs_of_groups(const std::vector<Labels>& groups, const LabelPair& between) {
  const auto has = [&](std::size_t group, const std::string& label) {
    return !groups[group].empty() && groups[group].at(between.key) == label;
  };
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t a = 0; a < groups.size(); ++a)
    for (std::size_t b = 0; b < groups.size(); ++b)
      if (has(a, between.a) && has(b, between.b) && labels_beside(groups[a], between.key) == labels_beside(groups[b], between.key))
        pairs.emplace_back(a, b);
  return pairs;
}

// Returns the difference of a seed's slopes.
SeedSlope difference_of(const SeedSlope& a, const SeedSlope& b) {
  SeedSlope difference{.value = a.value - b.value, .why = a.why.empty() ? b.why : a.why, .num_capped = a.num_capped + b.num_capped};
  for (const SeedSlope* one : {&a, &b}) difference.identity.insert(difference.identity.end(), one->identity.begin(), one->identity.end());
  return difference;
}

SlopeContrast contrast_groups(const Contrasts& contrasts, const Study& study, std::size_t pair, std::size_t group, std::size_t other) {
  SlopeContrast contrast{.pair = pair, .group = group};
  const auto of_group = slopes_by_seed(study, contrasts, pair, group), of_other = slopes_by_seed(study, contrasts, pair, other);
  std::set<std::vector<std::size_t>> seen;
  std::set<std::uint64_t> seeds;
  std::vector<const PairedRun*> all;
  for (const auto* slopes : {&of_group, &of_other})
    for (const auto& [seed, slope] : *slopes) {
      seeds.insert(seed);
      all.insert(all.end(), slope.pairs.begin(), slope.pairs.end());
    }
  for (const std::uint64_t seed : seeds) {
    const auto a = of_group.find(seed), b = of_other.find(seed);
    SeedSlope slope{.why = "seed " + std::to_string(seed) + " has runs in one of the two groups only"};
    if (a != of_group.end() && b != of_other.end()) slope = difference_of(a->second, b->second);
    if (slope.identity.empty() || seen.insert(slope.identity).second) add_seed(contrast, seed, slope);
  }
  test_slopes(contrast, study, all);
  return contrast;
}

}  // namespace

std::vector<LabelPair> label_pairs(const std::string& text) {
  std::vector<LabelPair> pairs;
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) return pairs;
  for (std::size_t colon = text.find(':', equals); colon != std::string::npos; colon = text.find(':', colon + 1))
    if (LabelPair pair{text.substr(0, equals), text.substr(equals + 1, colon - equals - 1), text.substr(colon + 1)};
        !pair.a.empty() && !pair.b.empty() && pair.a != pair.b)
      pairs.push_back(std::move(pair));
  return pairs;
}

std::vector<LabelPair> compared_labels(const Study& study, const ContrastOptions& options, Problems& problems) {
  const std::vector<std::string> keys = keys_of_groups(study);
  std::vector<LabelPair> compared;
  for (const std::string& text : options.between) {
    const auto has_label = [&](const std::string& key, const std::string& label) {
      return std::ranges::any_of(study.runs, [&](const StudyRun& run) { return label_of_axis(run.record, key) == label; });
    };
    std::optional<LabelPair> found;
    for (const LabelPair& pair : label_pairs(text))
      if (!found && std::ranges::find(keys, pair.key) != keys.end() && has_label(pair.key, pair.a) && has_label(pair.key, pair.b))
        found = pair;
    if (found)
      compared.push_back(*found);
    else
      problems.push_back({"--between", "'" + text + "' must be an axis with two of its labels as KEY=A:B; besides method and level " +
                                           (keys.empty() ? "there is no axis" : "there are " + quoted_list(keys))});
  }
  return compared;
}

void add_slope_differences(Contrasts& contrasts, const Study& study, Direction direction) {
  if (contrasts.between.empty()) return;
  const std::vector<Labels> groups = labels_of_groups(contrasts, study);
  for (std::size_t between = 0; between < contrasts.between.size(); ++between)
    for (const auto& [group, other] : pairs_of_groups(groups, contrasts.between[between]))
      for (std::size_t pair = 0; pair < contrasts.pairs.size(); ++pair)
        contrasts.slope_differences.push_back(
            {.between = between, .other_group = other, .contrast = contrast_groups(contrasts, study, pair, group, other)});
  std::vector<SlopeContrast*> family;
  for (SlopeDifference& one : contrasts.slope_differences) family.push_back(&one.contrast);
  correct_slopes(family, contrasts.test, direction);
}

}  // namespace fl
