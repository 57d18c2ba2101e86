#include "scenarios/analysis/tuning_notes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

namespace fl {
namespace {

constexpr std::size_t kMostNamed = 12;
constexpr const char* kEdge = "tuned_at_edge:";

double found_constant(const RunRecord& record, const std::string& name) {
  const auto found = std::ranges::find(record.constants, name, &ResolvedConstant::name);
  return found == record.constants.end() ? kNotMeasured : found->value;
}

std::string labels_of(const RunRecord& record) {
  std::string text;
  for (const AxisLabel& axis : record.axes) text += (text.empty() ? "" : ", ") + axis.label;
  return text.empty() ? record.name : text;
}

// Returns "a; b; and 3 more".
std::string listed(const std::vector<std::string>& texts) {
  std::string list;
  for (std::size_t i = 0; i < std::min(texts.size(), kMostNamed); ++i) list += (i == 0 ? "" : "; ") + texts[i];
  return texts.size() <= kMostNamed ? list : list + "; and " + std::to_string(texts.size() - kMostNamed) + " more";
}

}  // namespace

std::string unmatched_text(const RunRecord& record) {
  const double deviation = found_constant(record, "matched_bits_deviation");
  if (!(std::fabs(deviation) > found_constant(record, "matched_bits_tolerance"))) return "";
  char text[48];
  std::snprintf(text, sizeof text, "bits %+.3g%%", 100 * deviation);
  return text;
}

std::vector<std::string> tuning_notes(const std::vector<RunRecord>& records) {
  std::vector<std::string> unmatched, edges, notes;
  std::set<std::string> met;
  for (const RunRecord& record : records) {
    if (const std::string text = unmatched_text(record); !text.empty() && met.insert(labels_of(record)).second)
      unmatched.push_back(labels_of(record) + " (" + text + ")");
    for (const ResolvedConstant& constant : record.constants) {
      if (!constant.name.starts_with(kEdge)) continue;
      const std::string text = constant.name.substr(std::string(kEdge).size()) + " of " + labels_of(record);
      if (met.insert(text).second) edges.push_back(text);
    }
  }
  if (!unmatched.empty())
    notes.push_back("no value of the matched option sends as many bits as the reference, the nearest was taken: " + listed(unmatched));
  if (!edges.empty())
    notes.push_back("the best tuned value is the outermost of all that were tried, so a better one may lie outside: " + listed(edges));
  return notes;
}

}  // namespace fl
