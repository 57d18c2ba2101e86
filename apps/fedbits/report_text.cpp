#include "apps/fedbits/report_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>

#include "apps/fedbits/contrast_text.hpp"
#include "apps/fedbits/terminal.hpp"
#include "scenarios/analysis/equal_bits.hpp"
#include "scenarios/analysis/level_sentences.hpp"
#include "scenarios/analysis/study_setup.hpp"
#include "study/output/numbers.hpp"

namespace fl {
namespace {

std::string interval_text(const Interval& interval) {
  return interval.is_known() ? "[" + short_text(interval.low) + ", " + short_text(interval.high) + "]" : "-";
}

// Returns bits or seconds.
std::string cost_text(double cost, Against against) {
  return against == Against::seconds && !std::isnan(cost) ? short_text(cost) + " s" : human_bits(cost);
}
const char* cost_word(Against against) { return against == Against::seconds ? "time" : "bits"; }

std::string cost_interval_text(const Interval& interval, Against against) {
  const auto end = [against](double cost) { return std::isinf(cost) ? std::string("never") : cost_text(cost, against); };
  return interval.is_known() ? "[" + end(interval.low) + ", " + end(interval.high) + "]" : "-";
}

std::string verdict_and_reason(const EqualBitsComparison& c) { return c.why.empty() ? to_string(c.verdict) : "no claim: " + c.why; }

std::string verdict_text(const EqualBitsComparison& c) {
  const std::string text = verdict_and_reason(c);
  return c.remarks.empty() ? text : text + " (" + c.remarks + ")";
}

// Returns "0.052 worse", "0.69 initial model", or "0.31 (2)" with the number of evaluations if they are too few for a claim.
std::string share_text(const Study& study, const EqualBitsComparison& c) {
  const bool is_known = !std::isnan(c.value.value.mean);
  const std::string value = is_known ? short_text(c.value.value.mean) : "-";
  if (c.value.num_at_start > 0) return value + " initial model";
  if (is_known && c.value.num_evaluations < kLeastEvaluations) return value + " (" + std::to_string(c.value.num_evaluations) + ")";
  if (!study.is_alternative(c.method)) return value + (c.method == study.references.baseline ? " baseline" : " reference");
  return value + " " + (is_known ? verdict_and_reason(c) : c.why);
}

std::string ratio_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", value);
  return text;
}

// Begins a row, after a blank line if the level changes.
void begin_row(Table& table, const Study& study, std::size_t panel, std::size_t method, std::size_t& last_panel) {
  if (!table.rows.empty() && panel != last_panel) table.rows.emplace_back();
  const bool is_new = table.rows.empty() || panel != last_panel;
  table.rows.push_back({is_new ? shown_title(study.panels[panel].title(study.axes.level)) : "", shown_title(study.methods[method])});
  last_panel = panel;
}

Table equal_bits_table(const Study& study, const std::vector<EqualBitsComparison>& comparisons, Against against) {
  Table table;
  table.columns = {{"level", Align::left},
                   {one_line(study.axes.method), Align::left},
                   {"pairs"},
                   {std::string("at ") + cost_word(against)},
                   {"value"},
                   {"baseline"},
                   {"difference"},
                   {"Student 95%"},
                   {"BCa 95%"},
                   {"p"},
                   {"p Holm"},
                   {"var ratio"},
                   {"verdict", Align::left}};
  std::size_t panel = 0;
  for (const EqualBitsComparison& c : comparisons) {
    begin_row(table, study, c.panel, c.method, panel);
    std::vector<std::string>& row = table.rows.back();
    const PairedDifference& paired = c.paired;
    const bool tested = c.seeds.size() > 1;
    for (const std::string& text :
         {std::to_string(c.seeds.size()), cost_text(c.budget_bits.mean, against), short_text(c.value.value.mean),
          short_text(c.baseline_value.value.mean), short_text(paired.difference.mean), interval_text(paired.difference.student),
          interval_text(paired.difference.bootstrap), tested ? short_text(paired.p_value) : "-", tested ? short_text(paired.p_holm) : "-",
          std::isnan(paired.variance_ratio) ? "-" : ratio_text(paired.variance_ratio), verdict_text(c)})
      row.push_back(text);
  }
  return table;
}

// Returns a table with a row per level, method and share of the baseline's bits. References and the baseline have only values.
Table shares_table(const Study& study, const std::vector<EqualBitsComparison>& comparisons) {
  Table table;
  table.columns = {{"level", Align::left}, {one_line(study.axes.method), Align::left}};
  for (const double share : kShares) table.columns.push_back({"at " + std::to_string(std::lround(100 * share)) + "%", Align::left});
  std::size_t last_panel = 0;
  for (const Panel& panel : study.panels)
    for (const std::size_t cell : panel.cells) {
      const StudyCell& at = study.cells[cell];
      begin_row(table, study, at.panel, at.method, last_panel);
      for (const EqualBitsComparison& c : comparisons)
        if (c.panel == at.panel && c.method == at.method) table.rows.back().push_back(share_text(study, c));
    }
  return table;
}

Table target_table(const Study& study, const std::vector<BitsToTarget>& targets, Against against) {
  Table table;
  table.columns = {{"level", Align::left},
                   {one_line(study.axes.method), Align::left},
                   {"reached it"},
                   {std::string("median ") + cost_word(against)},
                   {"95%"}};
  std::size_t panel = 0;
  for (const BitsToTarget& to : targets) {
    begin_row(table, study, to.panel, to.method, panel);
    std::vector<std::string>& row = table.rows.back();
    row.push_back(std::to_string(to.bits.reached) + " of " + std::to_string(to.bits.count));
    row.push_back(std::isinf(to.bits.median) ? "not reached" : cost_text(to.bits.median, against));
    row.push_back(cost_interval_text(to.bits.interval, against));
  }
  return table;
}

void print_equal_bits(const Study& study, std::size_t measure, Against against, std::ostream& out) {
  const std::vector<EqualBitsComparison> comparisons = compare_at_equal_bits(study, measure, against);
  const auto family = std::ranges::count_if(comparisons, [](const EqualBitsComparison& c) { return c.seeds.size() > 1; });
  out << study.measures[measure] << " at equal " << to_string(against) << ", compared with "
      << shown_title(study.methods[study.references.baseline]) << " (family of " << family
      << " comparisons, Holm)\nvalues are means over the last " << std::lround(100 * study.rules.window) << "% of the "
      << cost_word(against) << "; var ratio is var(difference) / (var(value) + var(baseline)), below 1 where pairing helps\n\n";
  print(equal_bits_table(study, comparisons, against), out);
  out << '\n';
}

void print_shares(const Study& study, std::size_t measure, Against against, std::ostream& out) {
  out << study.measures[measure] << " at 25, 50 and 100% of the " << to_string(against) << " of "
      << shown_title(study.methods[study.references.baseline]) << " (one family, Holm)\nin brackets: evaluations in the last "
      << std::lround(100 * study.rules.window) << "% of the bits, fewer than the " << kLeastEvaluations
      << " that a claim needs; methods that lose nothing are references\na cell without a value: runs that end before "
         "this budget have none there; the next table compares them at the bits that both reached\n\n";
  print(shares_table(study, compare_at_shares(study, measure, against)), out);
  out << '\n';
}

void print_studies(const Study& study, std::ostream& out) {
  if (study.store.studies.size() < 2) return;
  out << "this store holds " << study.store.studies.size()
      << " studies, which are not compared with each other; --study NAME chooses one\n";
  for (const StoredStudy& entry : study.store.studies)
    out << (entry.name == study.name ? "  * " : "    ") << one_line(entry.name) << " (" << entry.num_runs
        << (entry.num_runs == 1 ? " run" : " runs") << ")\n";
  out << "* marks the study that is shown below\n\n";
}

void print_target(const Study& study, std::size_t measure, const ReportOptions& options, std::ostream& out) {
  const bool is_given = measure == 0 && options.target.has_value();
  const double target = is_given ? *options.target : default_target(study, measure);
  if (std::isnan(target)) return;
  for (const Against against : {Against::bits_up, Against::seconds}) {
    if (!study.knows(against)) continue;
    out << to_string(against) << " until " << study.measures[measure] << " is " << short_text(target)
        << (is_given ? "" : ", the worst end point of the baseline (chosen after the fact; --target fixes one)") << "\n\n";
    print(target_table(study, bits_to_target(study, measure, against, target), against), out);
    out << '\n';
  }
}

constexpr std::size_t kMostLineColumns = 400;  // of a line of text; files have all of it

void print_lines(const std::vector<StudySetup::Line>& lines, std::ostream& out) {
  std::size_t width = 0;
  for (const StudySetup::Line& line : lines) width = std::max(width, display_width(shown_label(line.name)));
  for (const StudySetup::Line& line : lines) {
    const std::string name = shown_label(line.name);
    out << "  " << name << std::string(width - display_width(name) + 2, ' ') << shown_label(line.text, kMostLineColumns) << '\n';
  }
}

Table found_table(const Study& study, const std::vector<StudySetup::Found>& found) {
  Table table;
  table.columns = {{"level", Align::left},
                   {one_line(study.axes.method), Align::left},
                   {"key", Align::left},
                   {"value"},
                   {"how it was found", Align::left}};
  std::size_t panel = 0;
  for (const StudySetup::Found& one : found) {
    begin_row(table, study, one.panel, one.method, panel);
    for (const std::string& text : {one.key, one.value, one.remark}) table.rows.back().push_back(one_line(text));
  }
  return table;
}

void print_setup(const Study& study, std::ostream& out) {
  const StudySetup setup = setup_of(study);
  out << "setup\n";
  print_lines(setup.lines, out);
  out << "\nmethods (" << one_line(study.axes.method) << ")\n";
  print_lines(setup.methods, out);
  out << '\n';
  if (setup.found.empty()) return;
  out << "values that tuning and the matching of bits found\n\n";
  print(found_table(study, setup.found), out);
  out << '\n';
}

void print_answer(const Study& study, std::size_t measure, std::ostream& out) {
  out << "who is ahead at the uplink bits that both reached (" << study.measures[measure] << "; p-values of paired t-tests, Holm)\n";
  for (const std::string& sentence : level_sentences(study, measure, Against::bits_up)) {
    std::size_t begin = 0;
    for (std::size_t end = 0; begin < sentence.size(); begin = end + 2) {  // a line for each comparison
      end = std::min(sentence.find("; ", begin), sentence.size());
      out << (begin == 0 ? "  " : ";\n      ") << shown_label(sentence.substr(begin, end - begin), kMostLineColumns);
    }
    out << '\n';
  }
  if (const std::string both = both_ways_sentence(study, measure); !both.empty())
    out << "  " << shown_label(both, kMostLineColumns) << '\n';
  out << '\n';
}

void print_all_contrasts(const Study& study, std::size_t measure, const ReportOptions& options, std::ostream& out) {
  if (options.contrasts.contrasts.empty()) return;
  for (const Against against : {Against::bits_up, Against::bits_both})
    print_contrasts(study, measure, against, contrast_methods(study, measure, against, options.contrasts), out);
}

}  // namespace

void print_report(const Study& study, const ReportOptions& options, Tables tables, std::ostream& out) {
  print_studies(study, out);
  print_setup(study, out);
  for (const std::string& note : study.notes) out << "note: " << one_line(note) << "\n\n";
  if (tables == Tables::one) {
    print_answer(study, 0, out);
    print_equal_bits(study, 0, Against::bits_up, out);
    if (study.knows(Against::seconds)) print_equal_bits(study, 0, Against::seconds, out);
    if (options.target) print_target(study, 0, options, out);
    print_all_contrasts(study, 0, options, out);
    out << "more: --all prints the tables of every measure and budget, -o FILE.html writes a page with charts, --latex FILE tables for a "
           "paper,\n"
           "--scenario FILE the scenario that plays these runs again\nto cite: "
        << setup_of(study).citation << '\n';
    return;
  }
  for (std::size_t measure = 0; measure < study.measures.size(); ++measure) {
    print_answer(study, measure, out);
    print_shares(study, measure, Against::bits_up, out);
    for (const Against against : {Against::bits_up, Against::bits_both, Against::seconds})
      if (study.knows(against)) print_equal_bits(study, measure, against, out);
    print_target(study, measure, options, out);
    print_all_contrasts(study, measure, options, out);
  }
  out << "to cite: " << setup_of(study).citation << '\n';
}

}  // namespace fl
