#include "apps/fedbits/report_latex.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <vector>

#include "scenarios/analysis/equal_bits.hpp"
#include "scenarios/analysis/study_setup.hpp"
#include "study/output/numbers.hpp"

namespace fl {
namespace {

// Writes any text as LaTeX, with its special characters escaped; characters outside ASCII as LaTeX's UTF-8 takes them.
std::string latex(const std::string& text) {
  std::string safe;
  for (const char c : one_line(text)) {
    switch (c) {
      case '\\': safe += "\\textbackslash{}"; break;
      case '^': safe += "\\textasciicircum{}"; break;
      case '~': safe += "\\textasciitilde{}"; break;
      case '<': safe += "\\textless{}"; break;
      case '>': safe += "\\textgreater{}"; break;
      case '|': safe += "\\textbar{}"; break;
      case '"': safe += "''"; break;
      case '_': safe += "\\_\\allowbreak{}"; break;
      case '&':
      case '%':
      case '$':
      case '#':
      case '{':
      case '}':
        safe += '\\';
        safe += c;
        break;
      default: safe += c;
    }
  }
  return safe;
}

// Returns a number in mathematical mode: "$0.3184$", "$1.23\cdot10^{-9}$", "$\infty$"; "--" for NaN.
std::string latex_number(double value, const char* format = "%.4g") {
  if (std::isnan(value)) return "--";
  if (std::isinf(value)) return value > 0 ? "$\\infty$" : "$-\\infty$";
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  const std::string plain = text;
  const std::size_t e = plain.find('e');
  if (e == std::string::npos) return "$" + plain + "$";
  return "$" + plain.substr(0, e) + "\\cdot10^{" + std::to_string(std::stoi(plain.substr(e + 1))) + "}$";
}

// So few pairs cannot tell smaller p-values from zero.
std::string p_text(double p) { return p < 1e-4 ? "$<10^{-4}$" : latex_number(p, "%.2g"); }

// Returns whether the axis of levels alone tells the panels apart, so that its name can head a column of labels.
bool has_only_levels(const Study& study) {
  return !study.axes.level.empty() && std::ranges::all_of(study.panels, [](const Panel& panel) { return panel.rest.empty(); });
}
// Returns the last part of the axis' key, "alpha": the setup says the whole.
std::string level_head(const Study& study) {
  return has_only_levels(study) ? latex(study.axes.level.substr(study.axes.level.rfind('.') + 1)) : "level";
}

// Returns a difference and its interval, "[-1.26, 21.7]", in the unit in which they are compared.
std::string latex_difference(double difference, const DifferenceUnit& unit) { return latex_number(unit.factor * difference, "%.3g"); }
std::string latex_difference(const Interval& one, const DifferenceUnit& unit) {
  return one.is_known() ? "[" + latex_difference(one.low, unit) + ", " + latex_difference(one.high, unit) + "]" : "--";
}

std::string latex_bits(double value) { return std::isinf(value) ? "never" : human_bits(value); }

class LatexTable {
 public:
  LatexTable(std::ostream& out, const std::string& caption, const std::string& label, const std::string& columns,
             const std::vector<std::string>& heads)
      : out_(out) {
    out << "\\begin{table}\n\\centering\\footnotesize\\setlength{\\tabcolsep}{3.5pt}\n\\caption{" << caption << "}\n\\label{tab:" << label
        << "}\n\\begin{tabular}{" << columns << "}\n\\toprule\n";
    if (heads.empty()) return;
    row(heads);
    out << "\\midrule\n";
  }
  ~LatexTable() { out_ << "\\bottomrule\n\\end{tabular}\n\\end{table}\n\n"; }
  LatexTable(const LatexTable&) = delete;
  LatexTable& operator=(const LatexTable&) = delete;

  void row(const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) out_ << (i == 0 ? "" : " & ") << cells[i];
    out_ << " \\\\\n";
  }
  // Separates the rows of levels by a little space, and returns the title of the level in its first row.
  std::string level(const Study& study, std::size_t panel) {
    if (panel == last_) return "";
    if (last_ != kNone) out_ << "\\addlinespace\n";
    last_ = panel;
    return latex(has_only_levels(study) ? study.panels[panel].level : study.panels[panel].title(study.axes.level));
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  std::ostream& out_;
  std::size_t last_ = kNone;
};

void write_setup_table(const Study& study, const StudySetup& setup, std::ostream& out) {
  LatexTable table(out, "Setup of the study " + latex(study.name) + ".", "setup", "lp{0.75\\linewidth}", {});
  for (const StudySetup::Line& line : setup.lines) table.row({latex(line.name), latex(line.text)});
  out << "\\midrule\n";
  for (const StudySetup::Line& method : setup.methods) table.row({latex(method.name), latex(method.text)});
}

void write_found_table(const Study& study, const StudySetup& setup, std::ostream& out) {
  if (setup.found.empty()) return;
  LatexTable table(out, "Values that tuning and the matching of bits found.", "found", "lllrp{0.36\\linewidth}",
                   {level_head(study), "method", "key", "value", "how it was found"});
  for (const StudySetup::Found& one : setup.found)
    table.row({table.level(study, one.panel), latex(study.methods[one.method]), latex(one.key), latex(one.value), latex(one.remark)});
}

void write_comparison_table(const Study& study, std::ostream& out) {
  const std::string baseline = latex(study.methods[study.references.baseline]);
  const bool is_share = study.columns[0].shown == MeasureColumn::Shown::share;
  LatexTable table(out,
                   "\\texttt{" + latex(study.measures[0]) + "} at the uplink bits that both runs of a pair reached, compared with " +
                       baseline + ". Differences are " + (is_share ? "in percentage points" : "in per cent of the baseline's mean") +
                       ", with Student's 95\\% intervals over paired seeds; $p$ is of paired $t$-tests, corrected by Holm; --: no claim.",
                   "comparison", "llrrrrlrl",
                   {level_head(study), "method", "bits", "value", "baseline", is_share ? "points" : "\\%", "95\\%", "$p$", "verdict"});
  for (const EqualBitsComparison& c : compare_at_equal_bits(study, 0, Against::bits_up)) {
    const DifferenceUnit unit = unit_of_difference(study, 0, c);
    table.row({table.level(study, c.panel), latex(study.methods[c.method]), human_bits(c.budget_bits.mean),
               latex_number(c.value.value.mean, "%.3g"), latex_number(c.baseline_value.value.mean, "%.3g"),
               latex_difference(c.paired.difference.mean, unit), latex_difference(c.paired.difference.student, unit),
               c.seeds.size() > 1 ? p_text(c.paired.p_holm) : "--", c.verdict == Verdict::no_claim ? "--" : to_string(c.verdict)});
  }
}

void write_target_table(const Study& study, const ReportOptions& options, std::ostream& out) {
  const double target = options.target ? *options.target : default_target(study, 0);
  if (std::isnan(target)) return;
  LatexTable table(out,
                   "Uplink bits until \\texttt{" + latex(study.measures[0]) + "} is " + latex_number(target) +
                       (options.target ? "." : ", the worst end point of the baseline (chosen after the fact)."),
                   "target", "llrrl", {level_head(study), "method", "reached", "median bits", "95\\%"});
  for (const BitsToTarget& to : bits_to_target(study, 0, Against::bits_up, target))
    table.row(
        {table.level(study, to.panel), latex(study.methods[to.method]),
         std::to_string(to.bits.reached) + " of " + std::to_string(to.bits.count), latex_bits(to.bits.median),
         to.bits.interval.is_known() ? "[" + latex_bits(to.bits.interval.low) + ", " + latex_bits(to.bits.interval.high) + "]" : "--"});
}

}  // namespace

void write_latex_tables(const Study& study, const ReportOptions& options, std::ostream& out) {
  const StudySetup setup = setup_of(study);
  out << "% Tables of the study \"" << one_line(study.name) << "\". They need \\usepackage{booktabs}.\n% " << one_line(setup.citation)
      << "\n\n";
  write_setup_table(study, setup, out);
  write_found_table(study, setup, out);
  write_comparison_table(study, out);
  write_target_table(study, options, out);
}

}  // namespace fl
