#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "fl_core/config/options.hpp"
#include "scenarios/analysis/stored_settings.hpp"
#include "scenarios/analysis/study_setup.hpp"
#include "scenarios/file/results_version.hpp"

namespace fl {
namespace {

std::string in_a_row(const std::vector<std::string>& words, const char* between = ", ") {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::string toml_text(const std::string& text) { return to_string(Value{text}); }

// An axis with the value of each of its labels, in TOML.
struct AxisText {
  std::string key;
  std::vector<std::string> labels, values;
  std::string zip;
};

// Labels of axes, {axis, label}, which choose the combinations of a table of [[sweep.set]].
using RunLabels = std::vector<std::pair<std::string, std::string>>;

// Writes the scenario of a study from the settings of its runs.
class ScenarioWriter {
 public:
  explicit ScenarioWriter(const Study& study) : study_(study), settings_(study) {
    for (const std::string& key : settings_.keys("")) place(key);
    for (const std::string& axis : settings_.axes()) add_axis(axis);
    zip_axes();
  }

  [[nodiscard]] std::string text() {
    const std::string shared = shared_settings();
    std::string text =
        "# The study \"" + study_.name + "\" of fedbits " + version() + ": the settings of its runs, every key written out.\n";
    if (!varying_.empty())
      text += "# These keys differ between runs with the same labels, so this file leaves them out (fedbits explain HASH has them): " +
              in_a_row({varying_.begin(), varying_.end()}) + "\n";
    const std::size_t all = combinations();
    if (all != settings_.size())
      text += "# The study has " + std::to_string(settings_.size()) + " of the " + std::to_string(all) + " combinations of its axes.\n";
    return text + "\n" + shared + sweep();
  }

 private:
  [[nodiscard]] std::string version() const { return settings_.size() == 0 ? "" : settings_.record(0).version; }

  // Finds where a key stands in the file: with the settings that all runs share, on its axis, or in tables of [[sweep.set]]. A key whose
  // values the labels do not determine has no place, and is named.
  void place(const std::string& key) {
    if (key == kResultsVersionKey || is_of_seeds(key)) return;
    const std::string own = settings_.axis_of(key);
    if (own == key || (own.empty() ? settings_.is_shared(key) : is_determined_by(key, {own}))) return;
    apart_.insert(key);
    for (const std::string& axis : settings_.axes())
      if (is_determined_by(key, {axis})) return set_by(key, {axis});
    if (is_determined_by(key, settings_.axes())) return set_by(key, settings_.axes());
    varying_.insert(key);
  }
  [[nodiscard]] RunLabels labels_of(std::size_t run, const std::vector<std::string>& axes) const {
    RunLabels labels;
    for (const std::string& axis : axes) labels.emplace_back(axis, settings_.label(run, axis));
    return labels;
  }
  [[nodiscard]] bool is_determined_by(const std::string& key, const std::vector<std::string>& axes) const {
    std::map<RunLabels, std::string> value_of;
    for (std::size_t run = 0; run < settings_.size(); ++run)
      if (value_of.try_emplace(labels_of(run, axes), settings_.value(run, key)).first->second != settings_.value(run, key)) return false;
    return true;
  }
  void set_by(const std::string& key, const std::vector<std::string>& axes) {
    for (std::size_t run = 0; run < settings_.size(); ++run)
      if (const std::string& value = settings_.value(run, key); !value.empty()) {
        const RunLabels labels = labels_of(run, axes);
        if (!sets_.contains(labels)) order_of_sets_.push_back(labels);
        sets_[labels][key] = value;
      }
  }

  // Returns the value of an axis in a run: that of its key, or an inline table of all keys in it that its label determines.
  [[nodiscard]] std::string value_of(std::size_t run, const std::string& axis, const std::string& label) const {
    if (const std::string& own = settings_.value(run, axis); !own.empty()) return own;
    std::vector<std::string> members = {"label = " + toml_text(label)};
    for (const std::string& key : settings_.keys(axis + "."))
      if (const std::string& own = settings_.value(run, key); !own.empty() && !apart_.contains(key))
        members.push_back(key.substr(axis.size() + 1) + " = " + own);
    return "{ " + in_a_row(members) + " }";
  }
  void add_axis(const std::string& key) {
    AxisText axis{.key = key, .labels = {}, .values = {}, .zip = {}};
    std::set<std::string> known;
    for (std::size_t run = 0; run < settings_.size(); ++run) {
      const std::string label = settings_.label(run, key);
      if (!known.insert(label).second) continue;
      axis.labels.push_back(label);
      axis.values.push_back(value_of(run, key, label));
    }
    axes_.push_back(axis);
  }
  // Two axes move together if each label of one stands beside one label of the other alone.
  void zip_axes() {
    for (std::size_t a = 0; a < axes_.size(); ++a)
      for (std::size_t b = a + 1; b < axes_.size(); ++b) {
        if (axes_[a].labels.size() != axes_[b].labels.size() || axes_[a].labels.size() < 2) continue;
        std::set<std::pair<std::string, std::string>> pairs;
        for (std::size_t run = 0; run < settings_.size(); ++run)
          pairs.emplace(settings_.label(run, axes_[a].key), settings_.label(run, axes_[b].key));
        if (pairs.size() != axes_[a].labels.size()) continue;
        if (axes_[a].zip.empty()) axes_[a].zip = "together-" + std::to_string(a + 1);
        axes_[b].zip = axes_[a].zip;
      }
  }
  [[nodiscard]] std::size_t combinations() const {
    std::size_t count = 1;
    std::set<std::string> zips;
    for (const AxisText& axis : axes_)
      if (axis.zip.empty() || zips.insert(axis.zip).second) count *= axis.labels.size();
    return count;
  }

  // Returns the lines of the first run's scenario that all runs share, under their tables.
  [[nodiscard]] std::string shared_settings() {
    if (settings_.size() == 0) return "";
    std::istringstream lines(settings_.record(0).scenario);
    std::string text, table, head;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with('[')) {
        table = line.substr(1, line.find(']') - 1);
        head = "\n" + line + "\n";
        continue;
      }
      const std::size_t equals = line.find(" = ");
      if (equals == std::string::npos) continue;
      const std::string key = (table.empty() ? "" : table + ".") + line.substr(0, equals);
      if (key == kResultsVersionKey || is_of_seeds(key) || !settings_.axis_of(key).empty()) continue;
      if (!settings_.is_shared(key)) continue;
      text += head + line + "\n";
      head.clear();
      if (key == "name") text += "seed = " + std::to_string(first_seed()) + "\n";
    }
    return text;
  }
  [[nodiscard]] std::uint64_t first_seed() const {
    std::uint64_t first = ~std::uint64_t{0};
    for (const StudyCell& cell : study_.cells)
      for (const std::size_t run : cell.runs) first = std::min(first, study_.runs[run].record.seed);
    return first;
  }
  [[nodiscard]] std::size_t num_seeds() const {
    std::size_t most = 1;
    for (const StudyCell& cell : study_.cells) most = std::max(most, cell.runs.size());
    return most;
  }

  [[nodiscard]] std::string sweep() const {
    if (axes_.empty() && num_seeds() == 1) return "";
    std::string text = "\n[sweep]\nseeds = " + std::to_string(num_seeds()) + "\n";
    for (const AxisText& axis : axes_) {
      text += "\n[[sweep.axis]]\nkey = " + toml_text(axis.key) + "\n";
      if (!axis.zip.empty()) text += "zip = " + toml_text(axis.zip) + "\n";
      text += "values = [\n";
      for (const std::string& value : axis.values) text += "  " + value + ",\n";
      text += "]\n";
    }
    for (const RunLabels& labels : order_of_sets_)
      text += "\n[[sweep.set]]\nwhen = " + when(labels) + "\nkeys = " + keys(sets_.at(labels)) + "\n";
    return text;
  }
  [[nodiscard]] static std::string when(const RunLabels& labels) {
    std::vector<std::string> members;
    for (const auto& [axis, label] : labels) members.push_back(axis + " = " + toml_text(label));
    return "{ " + in_a_row(members) + " }";
  }
  [[nodiscard]] static std::string keys(const KeyValues& values) {
    std::vector<std::string> members;
    for (const auto& [key, value] : values) members.push_back(key + " = " + value);
    return "{ " + in_a_row(members) + " }";
  }

  const Study& study_;
  const StoredSettings settings_;
  std::vector<AxisText> axes_;
  std::set<std::string> apart_;          // keys that are neither shared nor on their axis
  std::map<RunLabels, KeyValues> sets_;  // by the labels of the combinations that have these values
  std::vector<RunLabels> order_of_sets_;
  std::set<std::string> varying_;  // keys that the labels do not determine
};

}  // namespace

std::string common_scenario(const Study& study) { return ScenarioWriter(study).text(); }

}  // namespace fl
