#include "scenarios/results/step_theorems.hpp"

#include <algorithm>
#include <string_view>

namespace fl {
namespace {

bool has(const RunRecord& record, std::string_view name) {
  return std::ranges::find(record.constants, name, &ResolvedConstant::name) != record.constants.end();
}

// Returns the rule of local.learning_rate in a resolved scenario, or "" for a number.
std::string rule_of(const std::string& resolved) {
  static constexpr std::string_view kHead = "\n[local]\n", kStart = "\nlearning_rate = \"";
  const std::size_t head = resolved.find(kHead);
  if (head == std::string::npos) return "";
  const std::size_t from = head + kHead.size() - 1;
  const std::string local = resolved.substr(from, resolved.find("\n[", from) - from);
  const std::size_t at = local.find(kStart);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + kStart.size();
  return local.substr(begin, local.find('"', begin) - begin);
}

}  // namespace

void StepTheorems::add(const std::string& theorem, bool is_absolute, bool is_contraction) {
  if (std::ranges::find(theorems_, theorem) == theorems_.end()) theorems_.push_back(theorem);
  has_absolute_ = has_absolute_ || is_absolute;
  has_contraction_ = has_contraction_ || is_contraction;
}

std::vector<std::string> StepTheorems::sentences() const {
  std::vector<std::string> sentences;
  if (theorems_.empty()) return sentences;
  std::string names;
  for (const std::string& theorem : theorems_) names += (names.empty() ? "" : "; ") + theorem;
  sentences.push_back("step sizes come from: " + names);
  if (has_absolute_ && has_contraction_)
    sentences.emplace_back(
        "absolute and contraction operators have step sizes from bounds of different tightness here: a difference between them "
        "says nothing about the operators unless both step sizes are tuned ([sweep.tune])");
  return sentences;
}

StepTheorems step_theorems_of(const std::vector<RunRecord>& records) {
  StepTheorems theorems;
  for (const RunRecord& record : records) {
    const std::string rule = rule_of(record.scenario);
    const bool is_tight = rule.find("tight") != std::string::npos, is_theory = rule.find("theory") != std::string::npos;
    if (!is_tight && !is_theory) continue;
    const bool kappa = has(record, "promised_kappa"), delta = has(record, "promised_delta");
    theorems.add(
        is_tight ? "tight step of EF and EF21, Thomsen, Taylor, Dieuleveut 2025 and 2026" : "\"theory\", the feedback's own theorem",
        kappa && !delta, delta && !kappa);
  }
  return theorems;
}

}  // namespace fl
