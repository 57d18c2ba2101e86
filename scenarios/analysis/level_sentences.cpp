#include "scenarios/analysis/level_sentences.hpp"

#include <cmath>
#include <cstdio>

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
    const double base = std::abs(c.baseline_value.value.mean);
    if (study.columns[measure].shown == MeasureColumn::Shown::share) {
      factor_ = 100;
      unit_ = " points";
    } else if (base > 0) {
      factor_ = 100 / base;
      unit_ = "%";
    }
  }
  // Returns "f(x) - f* 12.3% lower (95% [9.5, 15] %, p = 0.00073, 5 pairs)".
  [[nodiscard]] std::string text() const {
    const PairedDifference& paired = c_.paired;
    const double sign = paired.difference.mean < 0 ? -1 : 1;
    std::string text =
        name_ + " " + with_digits("%.3g", std::abs(factor_ * paired.difference.mean)) + unit_ + (sign < 0 ? " lower" : " higher");
    std::vector<std::string> sure;
    if (paired.difference.student.is_known()) {
      const double a = sign * factor_ * paired.difference.student.low, b = sign * factor_ * paired.difference.student.high;
      sure.push_back("95% [" + with_digits("%.3g", std::min(a, b)) + ", " + with_digits("%.3g", std::max(a, b)) + "]");
    }
    if (c_.seeds.size() > 1) sure.push_back("p = " + with_digits("%.2g", paired.p_holm));
    sure.push_back(std::to_string(c_.seeds.size()) + (c_.seeds.size() == 1 ? " pair" : " pairs"));
    for (std::size_t i = 0; i < sure.size(); ++i) text += (i == 0 ? " (" : ", ") + sure[i];
    return text + ")";
  }

 private:
  std::string name_, unit_;
  double factor_ = 1;
  const EqualBitsComparison& c_;
};

std::string sentence_of(const Study& study, std::size_t measure, std::size_t panel, const std::vector<EqualBitsComparison>& comparisons) {
  const std::string& baseline = study.methods[study.references.baseline];
  std::vector<std::string> parts;
  for (const Verdict verdict : {Verdict::better, Verdict::worse, Verdict::no_claim})
    for (const EqualBitsComparison& c : comparisons) {
      if (c.panel != panel || c.verdict != verdict) continue;
      const std::string& method = study.methods[c.method];
      const std::string at = std::isnan(c.budget_bits.mean) ? "" : " at " + human_bits(c.budget_bits.mean);
      if (verdict == Verdict::better)
        parts.push_back(method + " is ahead of " + baseline + at + ": " + DifferenceText(study, measure, c).text());
      else if (verdict == Verdict::worse)
        parts.push_back(method + " is behind " + baseline + at + ": " + DifferenceText(study, measure, c).text());
      else
        parts.push_back("no claim about " + method + at + (c.why.empty() ? "" : ", because " + c.why));
      if (!c.remarks.empty()) parts.back() += " [" + c.remarks + "]";
    }
  std::string text = study.panels[panel].title(study.axes.level);
  if (!text.empty()) text += ": ";
  if (parts.empty()) return text + "there is nothing to compare with " + baseline + ".";
  for (std::size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? "" : "; ") + parts[i];
  return text + ".";
}

}  // namespace

std::vector<std::string> level_sentences(const Study& study, std::size_t measure, Against against) {
  const std::vector<EqualBitsComparison> comparisons = compare_at_equal_bits(study, measure, against);
  std::vector<std::string> sentences;
  for (std::size_t panel = 0; panel < study.panels.size(); ++panel) sentences.push_back(sentence_of(study, measure, panel, comparisons));
  return sentences;
}

}  // namespace fl
