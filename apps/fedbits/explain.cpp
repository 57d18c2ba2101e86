#include "apps/fedbits/explain.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <ostream>
#include <sstream>
#include <vector>

#include "scenarios/file/analysis_plan.hpp"
#include "scenarios/file/results_version.hpp"
#include "scenarios/results/step_theorems.hpp"
#include "study/output/numbers.hpp"

namespace fl {
namespace {

struct Line {
  std::string name, value;
};

// Prints lines as comments. An unknown value is an empty text, and its line is omitted.
void print_comments(std::ostream& out, const std::string& title, std::vector<Line> lines) {
  std::erase_if(lines, [](const Line& line) { return line.value.empty(); });
  if (lines.empty()) return;
  std::size_t width = 0;
  for (const Line& line : lines) width = std::max(width, display_width(line.name));
  out << "# " << title << "\n";
  for (const Line& line : lines)
    out << "#   " << one_line(line.name) << std::string(width - display_width(line.name) + 2, ' ') << one_line(line.value) << "\n";
}

void add_measured(std::vector<Line>& lines, const std::string& name, double value) {
  if (!std::isnan(value)) lines.push_back({name, exact_text(value)});
}

std::vector<Line> outcome(const RunRecord& record) {
  std::vector<Line> lines = {{"status", to_string(record.status)},
                             {"rounds", std::to_string(record.rounds)},
                             {"bits_up", std::to_string(record.bits_up)},
                             {"bits_down", std::to_string(record.bits_down)}};
  add_measured(lines, "train_loss", record.train_loss);
  add_measured(lines, "f_gap", record.f_gap);
  add_measured(lines, "test_accuracy", record.test_accuracy);
  add_measured(lines, "total_error", record.total_error);
  add_measured(lines, "zeta_sq", record.zeta_sq);
  lines.push_back({"checksum", record.checksum});
  return lines;
}

std::string results_text(const RunRecord& record) {
  const std::int64_t version = results_version_of(record.scenario), own = results_version_for(record.scenario);
  if (version == own) return std::to_string(version);
  return std::to_string(version) + "; this fedbits has " + std::to_string(own) + " and gives other results";
}

std::vector<Line> origin(const RunRecord& record) {
  std::vector<Line> lines = {{"fedbits", record.version},
                             {kResultsVersionKey, results_text(record)},
                             {"seed", std::to_string(record.seed)},
                             {"split_hash", record.split_hash},
                             {"cpu", record.cpu},
                             {"instruction_set", record.instruction_set},
                             {"compiler", record.compiler},
                             {"threads", std::to_string(record.threads)}};
  add_measured(lines, "seconds", record.seconds);
  for (const PluginUse& plugin : record.plugins) lines.push_back({"plugin", plugin.name + " sha256 " + plugin.sha256});
  return lines;
}

// Prints the analysis plan of the run as comments, line by line.
void print_plan(std::ostream& out, const RunRecord& record) {
  const std::optional<AnalysisPlan> plan = plan_of(record);
  if (!plan) return;
  out << "#\n# analysis plan " << one_line(plan->file) << ", sha256 " << plan->sha256 << "\n";
  std::istringstream lines(plan->text);
  for (std::string line; std::getline(lines, line);) out << "#   " << one_line(line) << "\n";
}

}  // namespace

void explain(const RunRecord& record, std::ostream& out) {
  out << "# run " << record.run << " of " << one_line(record.name) << "\n";
  print_comments(out, "result", outcome(record));
  print_comments(out, "origin", origin(record));
  std::vector<Line> axes, constants;
  for (const AxisLabel& axis : record.axes) axes.push_back({axis.key, axis.label});
  for (const ResolvedConstant& constant : record.constants)
    if (!is_plan_constant(constant))
      constants.push_back({constant.name, std::isnan(constant.value) ? "not computed" : exact_text(constant.value)});
  print_comments(out, "place in the sweep", axes);
  print_comments(out, "resolved constants", constants);
  for (const std::string& sentence : step_theorems_of({record}).sentences()) out << "# " << one_line(sentence) << "\n";
  print_plan(out, record);
  out << "\n" << record.scenario;
  if (!record.scenario.ends_with('\n')) out << "\n";
}

void explain(const RunStore& store, const std::string& prefix, std::ostream& out) { explain(store.record(prefix), out); }

}  // namespace fl
