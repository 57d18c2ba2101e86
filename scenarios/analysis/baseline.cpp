#include "scenarios/analysis/baseline.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "scenarios/analysis/study_axes.hpp"

namespace fl {
namespace {

// Returns whether the operator of a run promises to lose nothing; nothing for a run that records no promise.
std::optional<bool> loses_nothing(const RunRecord& record) {
  std::optional<bool> result;
  for (const ResolvedConstant& constant : record.constants) {
    if (!constant.name.starts_with("promised_")) continue;
    const bool is_lossless = constant.name == "promised_delta" ? constant.value == 1 : constant.value == 0;
    result = result.value_or(false) || is_lossless;
  }
  return result;
}

std::vector<bool> methods_without_loss(const Study& study, const std::vector<RunRecord>& records) {
  std::vector<bool> lossless(study.methods.size(), true), has_promise(study.methods.size(), false);
  for (const StudyCell& cell : study.cells)
    for (const std::size_t run : cell.runs)
      if (const std::optional<bool> promise = loses_nothing(records[run])) {
        has_promise[cell.method] = true;
        lossless[cell.method] = lossless[cell.method] && *promise;
      }
  for (std::size_t m = 0; m < lossless.size(); ++m)
    if (!has_promise[m]) lossless[m] = study.methods[m] == "none";
  return lossless;
}

// Returns the mean over the panels of the mean uplink bits per run. Returns infinity for a method that is missing from a panel of the
// alternatives, or that has a run there that did not end well.
double bits_of(const Study& study, const std::vector<RunRecord>& records, std::size_t method) {
  constexpr double kIncomplete = std::numeric_limits<double>::infinity();
  double sum = 0;
  std::size_t panels = 0;
  for (const Panel& panel : study.panels) {
    const bool has_rivals =
        std::ranges::any_of(panel.cells, [&](std::size_t cell) { return !study.references.is_reference[study.cells[cell].method]; });
    if (!has_rivals) continue;
    const StudyCell* cell = study.find(panel, method);
    if (cell == nullptr) return kIncomplete;
    double bits = 0;
    for (const std::size_t run : cell->runs) {
      if (records[run].status != RunStatus::done) return kIncomplete;
      bits += static_cast<double>(records[run].bits_up) / static_cast<double>(cell->runs.size());
    }
    sum += bits;
    ++panels;
  }
  return panels == 0 ? kIncomplete : sum / static_cast<double>(panels);
}

std::size_t method_of_few_bits(const Study& study, const std::vector<RunRecord>& records) {
  std::vector<double> bits;
  for (std::size_t m = 0; m < study.methods.size(); ++m)
    bits.push_back(study.references.is_reference[m] ? std::numeric_limits<double>::infinity() : bits_of(study, records, m));
  const double fewest = *std::ranges::min_element(bits);
  for (std::size_t m = 0; m < bits.size(); ++m)
    if (!study.references.is_reference[m] && bits[m] <= kFewBits * fewest) return m;
  return 0;
}

}  // namespace

void choose_baseline(Study& study, const std::vector<RunRecord>& records, const std::string& asked, Problems& problems) {
  study.references.is_reference = methods_without_loss(study, records);
  if (std::ranges::count(study.references.is_reference, false) < 2) study.references.is_reference.assign(study.methods.size(), false);
  const auto place_of = [&](const std::string& label) {
    return static_cast<std::size_t>(std::ranges::find(study.methods, label) - study.methods.begin());
  };
  if (!asked.empty()) {
    study.references.baseline = place_of(asked);
    if (study.references.baseline == study.methods.size())
      problems.push_back(
          {"--baseline", "'" + asked + "' is no label of " + study.axes.method + "; there are " + quoted_list(study.methods)});
    else
      study.references.is_reference[study.references.baseline] = false;
    return;
  }
  if (std::ranges::count(study.references.is_reference, true) == 0 && place_of("none") < study.methods.size()) {
    study.references.baseline = place_of("none");
    return;
  }
  study.references.baseline = method_of_few_bits(study, records);
  if (study.methods.size() > 1)
    study.notes.push_back("the methods are compared with '" + study.methods[study.references.baseline] +
                          "', the first of those that compress and send the fewest bits; --baseline compares with another");
}

}  // namespace fl
