#include "scenarios/file/analysis_plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>

#include "fl_core/config/error.hpp"
#include "scenarios/data/sha256.hpp"
#include "scenarios/file/config_tree.hpp"
#include "scenarios/file/toml_reader.hpp"

namespace fl {
namespace {

constexpr const char *kPlan = "analysis_plan:", *kText = "analysis_plan_text:";
constexpr std::size_t kDigits = 64;  // of a SHA-256

std::string sha256_of_text(const std::string& text) { return sha256_of(std::as_bytes(std::span(text))); }

void take_texts(const Node& root, const std::string& key, std::vector<std::string>& texts, ProblemList& problems) {
  const Node* node = root.find(key);
  if (node == nullptr) return;
  const bool is_list = node->kind == Node::Kind::array && !node->items.empty();
  if (!is_list) {
    problems.add(node->place, key + ": must be a list with at least one string, is " + node->shown());
    return;
  }
  for (const Node& item : node->items) {
    const std::string* text = item.text();
    if (text == nullptr || text->empty())
      problems.add(item.place, key + ": must hold strings that are not empty, holds " + item.shown());
    else if (std::ranges::find(texts, *text) != texts.end())
      problems.add(item.place, key + ": holds " + item.shown() + " twice");
    else
      texts.push_back(*text);
  }
}

void take_text(const Node& root, const std::string& key, std::string& text, const std::vector<std::string>& choices,
               ProblemList& problems) {
  const Node* node = root.find(key);
  if (node == nullptr) return;
  const std::string* found = node->text();
  if (found == nullptr || found->empty()) {
    problems.add(node->place, key + ": must be a string that is not empty, is " + node->shown());
  } else if (!choices.empty() && std::ranges::find(choices, *found) == choices.end()) {
    std::string known;
    for (const std::string& choice : choices) known += (known.empty() ? "\"" : ", \"") + choice + "\"";
    problems.add(node->place, key + ": must be one of " + known + ", is " + node->shown());
  } else {
    text = *found;
  }
}

void take_share(const Node& root, const std::string& key, std::optional<double>& share, bool allows_zero, ProblemList& problems) {
  const Node* node = root.find(key);
  if (node == nullptr) return;
  const Value value = node->holds_table() ? Value{} : node->value();
  const auto* real = std::get_if<double>(&value.data);
  const auto* whole = std::get_if<std::int64_t>(&value.data);
  const double number = real != nullptr ? *real : whole != nullptr ? static_cast<double>(*whole) : std::nan("");
  if ((allows_zero ? number >= 0 : number > 0) && number <= 1)
    share = number;
  else
    problems.add(node->place,
                 key + ": must be a number " + (allows_zero ? "between 0 and 1" : "above 0 and at most 1") + ", is " + node->shown());
}

// Returns whether a text can be KEY=A:B.
bool is_label_pair(const std::string& text) {
  const std::size_t equals = text.find('='), colon = equals == std::string::npos ? equals : text.find(':', equals);
  return equals != 0 && colon != std::string::npos && colon > equals + 1 && colon + 1 < text.size();
}

void check_plan(const Node& root, const AnalysisPlan& plan, ProblemList& problems) {
  const auto place_of = [&root](const char* key) { return root.find(key)->place; };
  if (root.find("contrasts") == nullptr) problems.add(root.place, "contrasts: is required: pairs of methods, such as [\"hard:top-1%\"]");
  for (const std::string& contrast : plan.contrasts)
    if (const std::size_t colon = contrast.find(':'); colon == std::string::npos || colon == 0 || colon + 1 == contrast.size())
      problems.add(place_of("contrasts"), "contrasts: \"" + contrast + "\" must be two methods as A:B");
  for (const std::string& between : plan.between)
    if (!is_label_pair(between))
      problems.add(place_of("between"), "between: \"" + between + "\" must be an axis with two of its labels as KEY=A:B");
  if (!plan.classes.empty() && plan.classes.size() != 2)
    problems.add(place_of("classes"), "classes: must be two names, has " + std::to_string(plan.classes.size()));
  if (plan.levels.size() == 1) problems.add(place_of("levels"), "levels: must be two levels or more");
  for (const std::string& margin : plan.margins)
    if (!read_margin(margin))
      problems.add(place_of("margins"), "margins: \"" + margin + "\" must be a ratio above 1, such as 1.1x, or points, such as 1pt");
}

}  // namespace

std::optional<Margin> read_margin(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  if (end == text.c_str() || !std::isfinite(value)) return std::nullopt;
  if (unit == "x" && value > 1) return Margin{.is_ratio = true, .value = value, .text = text};
  if (unit == "pt" && value > 0 && value < 100) return Margin{.is_ratio = false, .value = value / 100, .text = text};
  return std::nullopt;
}

AnalysisPlan parse_plan(const std::string& text, const std::string& file) {
  ProblemList problems;
  const Node root = parse_toml(text, file, problems);
  AnalysisPlan plan{.file = std::filesystem::path(file).filename().string(), .sha256 = sha256_of_text(text), .text = text};
  refuse_other_keys(root, "",
                    {"contrasts", "between", "classes", "measures", "window", "heterogeneity", "levels", "margins", "slope_test", "chance",
                     "method", "level", "baseline"},
                    problems);
  take_texts(root, "contrasts", plan.contrasts, problems);
  take_texts(root, "between", plan.between, problems);
  take_texts(root, "classes", plan.classes, problems);
  take_texts(root, "measures", plan.measures, problems);
  take_texts(root, "levels", plan.levels, problems);
  take_texts(root, "margins", plan.margins, problems);
  take_text(root, "heterogeneity", plan.heterogeneity, {"optimum", "start", "order"}, problems);
  take_text(root, "slope_test", plan.slope_test, {"t", "sign-flip"}, problems);
  take_text(root, "method", plan.axes.method, {}, problems);
  take_text(root, "level", plan.axes.level, {}, problems);
  take_text(root, "baseline", plan.axes.baseline, {}, problems);
  take_share(root, "window", plan.window, false, problems);
  take_share(root, "chance", plan.chance, true, problems);
  check_plan(root, plan, problems);
  problems.throw_if_any();
  return plan;
}

AnalysisPlan read_plan(const std::filesystem::path& file) {
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(file, error);
  std::ifstream in(file, std::ios::binary);
  if (!is_file || !in) throw ConfigError("sweep.plan_file: cannot read " + file.string() + "; it is looked for beside the scenario file");
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (text.size() > kLongestPlan)
    throw ConfigError("sweep.plan_file: " + file.string() + " has " + std::to_string(text.size()) + " bytes; at most " +
                      std::to_string(kLongestPlan) + " are allowed");
  return parse_plan(text, file.string());
}

std::vector<ResolvedConstant> plan_constants(const AnalysisPlan& plan) {
  return {{kPlan + plan.sha256 + ":" + plan.file, 1}, {kText + plan.text, 1}};
}

bool is_plan_constant(const ResolvedConstant& constant) { return constant.name.starts_with(kPlan) || constant.name.starts_with(kText); }

std::string plan_hash(const RunRecord& record) {
  for (const ResolvedConstant& constant : record.constants)
    if (constant.name.starts_with(kPlan)) return constant.name.substr(std::string(kPlan).size(), kDigits);
  return {};
}

std::optional<AnalysisPlan> plan_of(const RunRecord& record) {
  const std::string hash = plan_hash(record);
  if (hash.empty()) return std::nullopt;
  std::string file, text;
  for (const ResolvedConstant& constant : record.constants) {
    if (constant.name.starts_with(kText)) text = constant.name.substr(std::string(kText).size());
    if (constant.name.starts_with(kPlan))
      file = constant.name.substr(std::min(constant.name.size(), std::string(kPlan).size() + kDigits + 1));
  }
  if (sha256_of_text(text) != hash)
    throw ConfigError("run " + record.run + ": the text of its analysis plan does not have the SHA-256 " + hash);
  return parse_plan(text, file);
}

void refuse_changed_plan(const std::vector<RunRecord>& stored, const std::string& cells_plan) {
  for (const RunRecord& record : stored) {
    const std::string hash = plan_hash(record);
    if (!is_finished(record.status) || hash.empty() || hash == cells_plan) continue;
    throw ConfigError("sweep.plan_file: run " + record.run + " of this store was made under the plan with SHA-256 " + hash.substr(0, 16) +
                      "..., and " +
                      (cells_plan.empty() ? "the scenario has no plan now" : "the file now has " + cells_plan.substr(0, 16) + "...") +
                      "; restore the plan, or choose another folder with --out (`fedbits explain` prints a run's plan)");
  }
}

}  // namespace fl
