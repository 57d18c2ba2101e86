#include "apps/fedbits/contrast_text.hpp"

#include <cmath>
#include <ostream>

#include "apps/fedbits/terminal.hpp"
#include "study/output/numbers.hpp"

namespace fl {
namespace {

std::string interval_of(double low, double high) {
  return std::isnan(low) || std::isnan(high) ? "-" : "[" + short_text(low) + ", " + short_text(high) + "]";
}

std::string p_text(std::size_t count, double p) { return count > 1 ? short_text(p) : "-"; }

std::string with_class(const std::string& label, const std::string& name) {
  return name.empty() ? shown_title(label) : shown_title(label) + " (" + one_line(name) + ")";
}

std::string axis_text(const Contrasts& contrasts) {
  switch (contrasts.heterogeneity) {
    case Heterogeneity::at_start: return "log zeta^2 at x_0";
    case Heterogeneity::at_optimum: return "log zeta^2 at x*";
    case Heterogeneity::order: return "the place of the level in the order";
  }
  return "";
}

std::string levels_text(const Contrasts& contrasts) {
  std::string text;
  for (const std::string& level : contrasts.levels) text += (text.empty() ? "" : ", ") + shown_title(level);
  return text;
}

std::string slope_verdict(const SlopeContrast& slope) {
  if (!slope.why.empty()) return "no claim: " + slope.why;
  return slope.verdict == Verdict::better ? "gains with heterogeneity" : "loses with heterogeneity";
}

std::vector<std::string> names_of(const Contrasts& contrasts, std::size_t group, std::size_t pair) {
  return {shown_title(contrasts.groups[group]), with_class(contrasts.pairs[pair].a, contrasts.classes[0]),
          with_class(contrasts.pairs[pair].b, contrasts.classes[1])};
}

Table slopes_table(const Contrasts& contrasts) {
  Table table;
  table.columns = {
      {"group", Align::left}, {"A", Align::left}, {"B", Align::left}, {"seeds"}, {"slope"}, {"Student 95%"}, {"p"}, {"p Holm"}, {"p flip"},
      {"p flip Holm"},        {"capped"},         {"A", Align::left}};
  for (const SlopeContrast& slope : contrasts.slopes) {
    std::vector<std::string> row = names_of(contrasts, slope.group, slope.pair);
    const std::size_t n = slope.slopes.size();
    for (const std::string& text :
         {std::to_string(n), short_text(slope.slope.mean), interval_of(slope.slope.student.low, slope.slope.student.high),
          p_text(n, slope.p_value), p_text(n, slope.p_holm), p_text(n, slope.p_flip), p_text(n, slope.p_flip_holm),
          std::to_string(slope.num_capped), slope_verdict(slope)})
      row.push_back(text);
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string difference_verdict(const SlopeContrast& slope) {
  if (!slope.why.empty()) return "no claim: " + slope.why;
  return slope.verdict == Verdict::better ? "gains more" : "loses more";
}

Table slope_differences_table(const Contrasts& contrasts) {
  Table table;
  table.columns = {{"group", Align::left},
                   {"other group", Align::left},
                   {"A", Align::left},
                   {"B", Align::left},
                   {"seeds"},
                   {"difference"},
                   {"Student 95%"},
                   {"p"},
                   {"p Holm"},
                   {"p flip"},
                   {"p flip Holm"},
                   {"capped"},
                   {"A in the group", Align::left}};
  for (const SlopeDifference& one : contrasts.slope_differences) {
    const SlopeContrast& slope = one.contrast;
    std::vector<std::string> row = names_of(contrasts, slope.group, slope.pair);
    row.insert(row.begin() + 1, shown_title(contrasts.groups[one.other_group]));
    const std::size_t n = slope.slopes.size();
    for (const std::string& text :
         {std::to_string(n), short_text(slope.slope.mean), interval_of(slope.slope.student.low, slope.slope.student.high),
          p_text(n, slope.p_value), p_text(n, slope.p_holm), p_text(n, slope.p_flip), p_text(n, slope.p_flip_holm),
          std::to_string(slope.num_capped), difference_verdict(slope)})
      row.push_back(text);
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Returns a difference as the margin is written: a ratio, or percentage points.
double in_units(const Margin& margin, double difference) { return margin.is_ratio ? std::exp(difference) : 100 * difference; }

Table margins_table(const Contrasts& contrasts) {
  Table table;
  const Margin& margin = *contrasts.margin;
  table.columns = {
      {"group", Align::left}, {"A", Align::left}, {"B", Align::left}, {"pairs"},         {margin.is_ratio ? "A / B" : "A - B, points"},
      {"Student 95%"},        {"p not inferior"}, {"p superior"},     {"A", Align::left}};
  for (const MarginContrast& one : contrasts.margins) {
    std::vector<std::string> row = names_of(contrasts, one.group, one.pair);
    const std::size_t n = one.difference.count;
    const std::string result = to_string(one.result);
    for (const std::string& text :
         {std::to_string(n), short_text(in_units(margin, one.difference.mean)),
          interval_of(in_units(margin, one.difference.student.low), in_units(margin, one.difference.student.high)),
          p_text(n, one.p_non_inferior_adjusted), p_text(n, one.p_superior_adjusted), one.why.empty() ? result : result + ": " + one.why})
      row.push_back(text);
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

void print_contrasts(const Study& study, std::size_t measure, Against against, const Contrasts& contrasts, std::ostream& out) {
  out << "contrasts: slope of " << (contrasts.is_log_ratio ? "log(A / B)" : "A - B") << " of " << study.measures[measure] << " at equal "
      << to_string(against) << " over " << axis_text(contrasts)
      << "\nlevels from the least to the most heterogeneous: " << levels_text(contrasts) << "; one slope per seed; a family of "
      << contrasts.slopes.size() << " (Holm), decided by the " << (contrasts.test == SlopeTest::student ? "t test" : "sign-flip test")
      << "\ncapped: values of diverged runs, and worse values than the initial model's, which count as that (accuracies: as chance)\n\n";
  print(slopes_table(contrasts), out);
  out << '\n';
  if (!contrasts.between.empty()) {
    out << "differences of slopes between groups: the slope in the group minus the one in the other group, of the same seed; a family of "
        << contrasts.slope_differences.size() << " (Holm)\n\n";
    print(slope_differences_table(contrasts), out);
    out << '\n';
  }
  if (!contrasts.margin) return;
  out << "non-inferiority of A by a margin of " << contrasts.margin->text << " in " << study.measures[measure] << " at equal "
      << to_string(against) << ", level " << shown_title(contrasts.levels.back())
      << "\none-sided tests at 2.5%, superiority after non-inferiority; adjusted over " << contrasts.margins.size() << " chains\n\n";
  print(margins_table(contrasts), out);
  out << '\n';
}

}  // namespace fl
