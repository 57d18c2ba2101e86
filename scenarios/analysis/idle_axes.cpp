#include "scenarios/analysis/idle_axes.hpp"

#include <algorithm>
#include <cstddef>
#include <map>

#include "scenarios/analysis/replicates.hpp"

namespace fl {
namespace {

// The runs of one label of an axis, by the labels of the other axes and the seed.
using RunsOfLabel = std::map<std::pair<std::vector<std::string>, std::uint64_t>, const RunRecord*>;

// Returns the labels of an axis in the order of their first runs, and their runs. A later run replaces an earlier one of the same place.
std::vector<std::pair<std::string, RunsOfLabel>> labels_of(const Grid& grid, std::size_t axis) {
  std::vector<std::pair<std::string, RunsOfLabel>> labels;
  for (const GridCell& cell : grid.cells) {
    std::vector<std::string> others = cell.labels;
    const std::string label = others[axis];
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(axis));
    auto at = std::ranges::find(labels, label, &std::pair<std::string, RunsOfLabel>::first);
    if (at == labels.end()) at = labels.insert(labels.end(), {label, {}});
    for (const RunRecord* run : cell.runs) at->second[{others, run->seed}] = run;
  }
  return labels;
}

// Returns how many pairs of runs two labels have; 0 if one of the pairs differs.
std::size_t same_pairs(const RunsOfLabel& a, const RunsOfLabel& b) {
  std::size_t pairs = 0;
  for (const auto& [place, run] : a) {
    const auto other = b.find(place);
    if (other == b.end()) continue;
    if (!are_same_run(*run, *other->second)) return 0;
    ++pairs;
  }
  return pairs;
}

// Returns "1, 5 and 20".
std::string listed_with_and(const std::vector<std::string>& labels) {
  std::string text = labels.front();
  for (std::size_t i = 1; i < labels.size(); ++i) text += (i + 1 < labels.size() ? ", " : " and ") + labels[i];
  return text;
}

}  // namespace

std::vector<std::string> idle_axes(const Grid& grid) {
  std::vector<std::string> sentences;
  for (std::size_t axis = 0; axis < grid.keys.size(); ++axis) {
    const auto labels = labels_of(grid, axis);
    std::vector<bool> is_named(labels.size(), false);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      std::vector<std::string> same = {labels[i].first};
      std::size_t pairs = 0;
      for (std::size_t j = i + 1; j < labels.size() && !is_named[i]; ++j) {
        const std::size_t found = same_pairs(labels[i].second, labels[j].second);
        if (found == 0) continue;
        is_named[j] = true;
        same.push_back(labels[j].first);
        pairs += found;
      }
      if (same.size() > 1)
        sentences.push_back(grid.keys[axis] + ": " + listed_with_and(same) + " give the same runs, bit for bit, for every seed (" +
                            std::to_string(pairs) + (pairs == 1 ? " pair" : " pairs") + "): between them nothing was compared");
    }
  }
  return sentences;
}

}  // namespace fl
