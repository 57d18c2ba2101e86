#include "scenarios/analysis/level_sentences.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "scenarios/analysis/equal_bits.hpp"
#include "scenarios/results/number_text.hpp"

namespace fl {
namespace {

std::string with_digits(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// A difference to the baseline in the unit that readers compare: points for shares, else per cent of the baseline's value.
class DifferenceText {
 public:
  DifferenceText(const Study& study, std::size_t measure, const EqualBitsComparison& c) : name_(study.columns[measure].title), c_(c) {
    if (name_.empty()) name_ = study.measures[measure];
    const DifferenceUnit unit = unit_of_difference(study, measure, c);
    factor_ = unit.factor;
    unit_ = unit.name;
  }
  // Returns "f(x) - f* 12.3% lower (95% interval 9.5% to 15%, p = 0.00073, 5 pairs)".
  [[nodiscard]] std::string text() const {
    const PairedDifference& paired = c_.paired;
    const double sign = paired.difference.mean < 0 ? -1 : 1;
    std::string text = name_ + " " + amount();
    std::vector<std::string> sure;
    if (paired.difference.student.is_known()) sure.push_back("95% interval " + interval_text(sign));
    if (c_.seeds.size() > 1) sure.push_back((paired.p_holm < 1e-4 ? "p < 0.0001" : "p = " + with_digits("%.2g", paired.p_holm)));
    sure.push_back(std::to_string(c_.seeds.size()) + (c_.seeds.size() == 1 ? " pair" : " pairs"));
    for (std::size_t i = 0; i < sure.size(); ++i) text += (i == 0 ? " (" : ", ") + sure[i];
    return text + ")";
  }
  // Returns "12.3% lower".
  [[nodiscard]] std::string amount() const {
    const double mean = c_.paired.difference.mean;
    return with_digits("%.3g", std::abs(factor_ * mean)) + unit_ + (mean < 0 ? " lower" : " higher");
  }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  // Returns "9.5% to 15%" in the direction of the mean, or "1.26% lower to 21.7% higher" where both directions are in it.
  [[nodiscard]] std::string interval_text(double sign) const {
    const Interval& student = c_.paired.difference.student;
    const auto size = [&](double value) { return with_digits("%.3g", std::abs(factor_ * value)) + unit_; };
    if (student.contains(0)) return size(student.low) + " lower to " + size(student.high) + " higher";
    return sign < 0 ? size(student.high) + " to " + size(student.low) : size(student.low) + " to " + size(student.high);
  }

  std::string name_, unit_;
  double factor_ = 1;
  const EqualBitsComparison& c_;
};

// Returns " at 719.9 kbit up", or the mean where the pairs have other budgets: " at 913 kbit up on average".
std::string budget_text(const EqualBitsComparison& c, Against against) {
  constexpr double kAlike = 0.005;  // of the mean
  if (std::isnan(c.budget_bits.mean)) return "";
  if (against == Against::seconds) return " at " + short_text(c.budget_bits.mean) + " s";
  static const std::map<Against, std::string> kNames = {{Against::bits_up, " up"}, {Against::bits_both, " up and down"}};
  const auto name = kNames.find(against);
  std::string text = " at " + human_bits(c.budget_bits.mean) + (name == kNames.end() ? "" : name->second);
  const bool is_known = c.budget_bits.student.is_known();
  if (is_known && c.budget_bits.student.high - c.budget_bits.mean > kAlike * c.budget_bits.mean) text += " on average";
  return text;
}

// Returns the reason for no claim as the end of a sentence.
std::string because(const std::string& why) {
  return why == "not after Holm's correction" ? "p is above 0.05 after Holm's correction" : why;
}

std::string comparison_text(const Study& study, std::size_t measure, const EqualBitsComparison& c, Against against) {
  const std::string &method = study.methods[c.method], &baseline = study.methods[study.references.baseline];
  const std::string at = budget_text(c, against);
  const DifferenceText difference(study, measure, c);
  std::string text;
  if (c.verdict != Verdict::no_claim)
    text = method + (c.verdict == Verdict::better ? " is ahead of " : " is behind ") + baseline + at + ": " + difference.text();
  else
    text = "no claim about " + method + at +
           (c.seeds.size() > 1 && std::isfinite(c.paired.difference.mean) ? ": " + difference.text() : "") +
           (c.why.empty() ? "" : ", because " + because(c.why));
  return c.remarks.empty() ? text : text + " [" + c.remarks + "]";
}

// Returns "partition.alpha = 0.1 (zeta^2 = 1.89)"; the heterogeneity is the mean over the runs that measured it.
std::string level_text(const Study& study, std::size_t panel) {
  double sum = 0;
  std::size_t count = 0;
  for (const std::size_t cell : study.panels[panel].cells)
    for (const std::size_t run : study.cells[cell].runs)
      if (const double zeta = study.runs[run].record.zeta_sq; std::isfinite(zeta)) {
        sum += zeta;
        ++count;
      }
  const std::string title = study.panels[panel].title(study.axes.level);
  if (title.empty() || count == 0 || study.panels.size() == 1) return title;
  return title + " (ζ² = " + with_digits("%.3g", sum / static_cast<double>(count)) + ")";
}

std::string sentence_of(const Study& study, std::size_t measure, std::size_t panel, const std::vector<EqualBitsComparison>& comparisons,
                        Against against) {
  std::vector<std::string> parts;
  for (const Verdict verdict : {Verdict::better, Verdict::worse, Verdict::no_claim})
    for (const EqualBitsComparison& c : comparisons)
      if (c.panel == panel && c.verdict == verdict) parts.push_back(comparison_text(study, measure, c, against));
  std::string text = level_text(study, panel);
  if (!text.empty()) text += ": ";
  if (parts.empty()) return text + "there is nothing to compare with " + study.methods[study.references.baseline] + ".";
  for (std::size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? "" : "; ") + parts[i];
  return text + ".";
}

// Returns "partition.alpha = 0.1, 1 and 100" for panels, or "every level".
std::string levels_text(const Study& study, const std::vector<std::size_t>& panels) {
  if (panels.size() == study.panels.size()) return panels.size() == 1 ? "" : " at every level";
  std::string text;
  for (std::size_t i = 0; i < panels.size(); ++i)
    text += (i == 0 ? " at " : i + 1 == panels.size() ? " and " : ", ") + study.panels[panels[i]].title(study.axes.level);
  return text;
}

// The panels in which a method has another verdict when the bits down count as well.
struct Changed {
  std::vector<std::size_t> ahead, behind, lost;  // the new verdict is better, worse, or no claim any more
  std::vector<std::string> gain, loss;           // by how much, in the order of `ahead` and `behind`
};

}  // namespace

std::vector<std::string> level_sentences(const Study& study, std::size_t measure, Against against) {
  const std::vector<EqualBitsComparison> comparisons = compare_at_equal_bits(study, measure, against);
  std::vector<std::string> sentences;
  for (std::size_t panel = 0; panel < study.panels.size(); ++panel)
    sentences.push_back(sentence_of(study, measure, panel, comparisons, against));
  return sentences;
}

std::string both_ways_sentence(const Study& study, std::size_t measure) {
  if (!study.knows(Against::bits_both)) return "";
  const std::vector<EqualBitsComparison> up = compare_at_equal_bits(study, measure, Against::bits_up),
                                         both = compare_at_equal_bits(study, measure, Against::bits_both);
  std::map<std::size_t, Changed> changed;  // by method
  for (const EqualBitsComparison& now : both) {
    const auto before =
        std::ranges::find_if(up, [&](const EqualBitsComparison& c) { return c.panel == now.panel && c.method == now.method; });
    if (before == up.end() || before->verdict == now.verdict) continue;
    Changed& method = changed[now.method];
    (now.verdict == Verdict::better ? method.ahead : now.verdict == Verdict::worse ? method.behind : method.lost).push_back(now.panel);
    if (now.verdict != Verdict::no_claim)
      (now.verdict == Verdict::better ? method.gain : method.loss).push_back(DifferenceText(study, measure, now).amount());
  }
  if (both.empty()) return "";
  if (changed.empty()) return "With the bits down counted as well, every verdict is the same.";
  std::string text;
  const std::string name = study.columns[measure].title.empty() ? study.measures[measure] : study.columns[measure].title;
  const auto add = [&](const std::string& what, const std::vector<std::size_t>& panels, const std::vector<std::string>& amounts) {
    if (panels.empty()) return;
    text += (text.empty() ? "" : "; ") + what + levels_text(study, panels);
    for (std::size_t i = 0; i < amounts.size(); ++i)
      text += (i == 0 ? " (" + name + " " : ", ") + amounts[i] + (i + 1 == amounts.size() ? ")" : "");
  };
  const std::string& baseline = study.methods[study.references.baseline];
  for (const auto& [method, verdicts] : changed) {
    add(study.methods[method] + " is behind " + baseline, verdicts.behind, verdicts.loss);
    add(study.methods[method] + " is ahead of " + baseline, verdicts.ahead, verdicts.gain);
    add("no claim remains about " + study.methods[method], verdicts.lost, {});
  }
  return "With the bits down counted as well, the answer changes: " + text + ".";
}

}  // namespace fl
