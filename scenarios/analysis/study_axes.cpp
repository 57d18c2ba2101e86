#include "scenarios/analysis/study_axes.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace fl {

std::string quoted_list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    parts.push_back(text.substr(from, comma - from));
    from = comma + 1;
  }
  return parts;
}

namespace {

// Returns the first key that begins with one of the prefixes, which are tried in order.
std::string first_beginning(const std::vector<std::string>& keys, const std::vector<std::string>& prefixes,
                            const std::vector<std::string>& except) {
  for (const std::string& prefix : prefixes)
    for (const std::string& key : keys)
      if (key.starts_with(prefix) && std::ranges::find(except, key) == except.end()) return key;
  return {};
}

const std::string& asked_axis(const std::string& option, const std::string& asked, const std::vector<std::string>& keys,
                              Problems& problems) {
  if (!asked.empty() && std::ranges::find(keys, asked) == keys.end())
    problems.push_back({option, "no run has an axis '" + asked + "'; there are " + quoted_list(keys)});
  return asked;
}

void drop_axis(Grid& grid, std::size_t axis) {
  const auto at = static_cast<std::ptrdiff_t>(axis);
  grid.keys.erase(grid.keys.begin() + at);
  for (GridCell& cell : grid.cells) cell.labels.erase(cell.labels.begin() + at);
}

// Removes redundant axes. Axes that move together (zip) and have the same label everywhere are redundant; one of `wanted`, or the first,
// stays.
void drop_twins(Grid& grid, const std::vector<std::string>& wanted) {
  const auto is_wanted = [&](std::size_t axis) { return std::ranges::find(wanted, grid.keys[axis]) != wanted.end(); };
  const auto are_twins = [&](std::size_t a, std::size_t b) {
    return std::ranges::all_of(grid.cells, [&](const GridCell& cell) { return cell.labels[a] == cell.labels[b]; });
  };
  for (std::size_t a = grid.keys.size(); a-- > 0;) {
    if (is_wanted(a)) continue;
    bool is_said = false;
    for (std::size_t b = 0; b < grid.keys.size(); ++b) is_said = is_said || ((b < a || (b > a && is_wanted(b))) && are_twins(a, b));
    if (is_said) drop_axis(grid, a);
  }
}

// Joins axes into one, "a + b", with labels "x + y". Returns its key.
std::string join_axes(Grid& grid, const std::vector<std::string>& names) {
  if (names.size() == 1) return names[0];
  std::string key;
  std::vector<std::string> labels(grid.cells.size());
  for (const std::string& name : names) {
    const auto axis = static_cast<std::size_t>(std::ranges::find(grid.keys, name) - grid.keys.begin());
    const std::string plus = key.empty() ? "" : " + ";
    key += plus + name;
    for (std::size_t c = 0; c < labels.size(); ++c)
      if (labels[c] != grid.cells[c].labels[axis]) labels[c] += plus + grid.cells[c].labels[axis];
    drop_axis(grid, axis);
  }
  grid.keys.push_back(key);
  for (std::size_t c = 0; c < labels.size(); ++c) grid.cells[c].labels.push_back(labels[c]);
  return key;
}

// Returns whether the label on one axis determines the label on another.
bool determines(const Grid& grid, std::size_t axis, std::size_t other) {
  std::map<std::string, std::string> told;
  return std::ranges::all_of(grid.cells, [&](const GridCell& cell) {
    return told.try_emplace(cell.labels[axis], cell.labels[other]).first->second == cell.labels[other];
  });
}

std::size_t num_labels(const Grid& grid, std::size_t axis) {
  std::set<std::string> labels;
  for (const GridCell& cell : grid.cells) labels.insert(cell.labels[axis]);
  return labels.size();
}

// Returns the axes that move together with the method (a zip), the method included, in the order of the axes. No two methods have the same
// labels on them, so they are part of the method and no level. The partition and the data are never part of a method.
std::vector<std::string> with_zipped(const Grid& grid, const std::string& method, const std::string& asked_level) {
  const auto place = static_cast<std::size_t>(std::ranges::find(grid.keys, method) - grid.keys.begin());
  std::vector<std::string> all;
  for (std::size_t a = 0; a < grid.keys.size(); ++a) {
    const bool is_level = grid.keys[a] == asked_level || grid.keys[a].starts_with("partition") || grid.keys[a].starts_with("data");
    const bool is_zipped =
        !is_level && num_labels(grid, a) > 1 && num_labels(grid, place) > 1 && (determines(grid, a, place) || determines(grid, place, a));
    if (a == place || is_zipped) all.push_back(grid.keys[a]);
  }
  return all;
}

}  // namespace

void choose_axes(Study& study, Grid& grid, const StudyOptions& options, Problems& problems) {
  const std::vector<std::string>& keys = grid.keys;
  std::vector<std::string> methods = split_at_commas(options.method_axis);
  for (const std::string& method : methods) {
    asked_axis("--method", method, keys, problems);
    if (std::ranges::count(methods, method) > 1) problems.push_back({"--method", "'" + method + "' is named more than once"});
  }
  study.axes.level = asked_axis("--level", options.level_axis, keys, problems);
  if (!study.axes.level.empty() && std::ranges::find(methods, study.axes.level) != methods.end())
    problems.push_back({"--level", "'" + study.axes.level + "' is the method already; choose another axis"});
  if (!problems.empty()) return;
  if (methods[0].empty()) methods[0] = first_beginning(keys, {"compressor", "feedback"}, {study.axes.level});
  if (methods[0].empty()) methods[0] = keys.back() == study.axes.level ? keys.front() : keys.back();
  if (methods.size() == 1) methods = with_zipped(grid, methods[0], options.level_axis);
  if (study.axes.level.empty()) study.axes.level = first_beginning(keys, {"partition", "data"}, methods);

  std::vector<std::string> wanted = methods;
  wanted.push_back(study.axes.level);
  drop_twins(grid, wanted);
  study.axes.method = join_axes(grid, methods);
}

}  // namespace fl
