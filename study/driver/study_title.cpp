#include "study/driver/study_title.hpp"

#include <algorithm>

#include "study/output/numbers.hpp"

namespace fl {

std::string title_of(const Cell& cell, std::size_t number, std::size_t count) {
  std::string title = cell.scenario.name;
  if (count > 1) title += " " + std::to_string(number) + "/" + std::to_string(count);
  for (const auto& [_, label] : cell.axis_labels) title += "  " + shown_label(label);
  return title;
}

std::string label_of_budget(const std::vector<Cell>& cells) {
  std::string text;
  for (const Cell& cell : cells) {
    if (cell.budget_labels.empty()) continue;
    for (std::size_t a = 0; a < cell.axis_labels.size(); ++a)
      if (cell.axis_labels[a] != cell.budget_labels[a]) text += (text.empty() ? "" : " + ") + shown_label(cell.budget_labels[a].second);
    if (!text.empty()) return text;
  }
  const auto budgeted = std::ranges::find_if(cells, [](const Cell& cell) { return !cell.budget_labels.empty(); });
  return budgeted == cells.end() ? "" : shown_label(budgeted->budget_labels.front().second);
}

}  // namespace fl
