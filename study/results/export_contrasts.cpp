#include "study/results/export_contrasts.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "study/output/output_file.hpp"

namespace fl {
namespace {

constexpr std::array kBits = {Against::bits_up, Against::bits_both};

const char* name_of(Against against) { return against == Against::bits_up ? "up" : "both"; }

// A family of contrasts: one measure at one kind of bits.
struct Family {
  std::string measure;
  Against against;
  Contrasts contrasts;
};

std::vector<Family> families_of(const Study& study, const ContrastOptions& options) {
  std::vector<Family> families;
  for (std::size_t measure = 0; measure < study.measures.size(); ++measure)
    for (const Against against : kBits)
      families.push_back({study.measures[measure], against, contrast_methods(study, measure, against, options)});
  return families;
}

// Returns the axes that belong neither to the method nor to the level, in the order in which they first appear.
std::vector<std::string> other_axes(const Study& study) {
  std::vector<std::string> keys;
  const std::string methods = " + " + study.axes.method + " + ";
  for (const StudyRun& run : study.runs)
    for (const AxisLabel& axis : run.record.axes)
      if (axis.key != study.axes.level && methods.find(" + " + axis.key + " + ") == std::string::npos &&
          std::ranges::find(keys, axis.key) == keys.end())
        keys.push_back(axis.key);
  return keys;
}

std::optional<std::string> label_of(const RunRecord& record, const std::string& key) {
  const auto found = std::ranges::find(record.axes, key, &AxisLabel::key);
  return found == record.axes.end() ? std::nullopt : std::optional(found->label);
}

void put_names(TableWriter& table, const Family& family, std::size_t group, std::size_t pair) {
  const Contrasts& contrasts = family.contrasts;
  table.cell(contrasts.groups[group]);
  table.cell(family.measure);
  table.cell(std::string(name_of(family.against)));
  table.cell(contrasts.pairs[pair].a);
  table.cell(contrasts.pairs[pair].b);
  table.cell(contrasts.classes[0]);
  table.cell(contrasts.classes[1]);
}

void put_difference(TableWriter& table, const Study& study, const Family& family, const PairedRun& one) {
  const RunRecord &a = study.runs[one.a.run].record, &b = study.runs[one.b.run].record;
  table.cell(a.name);
  put_names(table, family, one.group, one.pair);
  table.cell(family.contrasts.levels[one.level]);
  table.cell(one.seed);
  for (const double number : {one.zeta_at_start, one.zeta_at_optimum, one.x, one.a.value, one.b.value, one.difference}) table.cell(number);
  table.cell(std::uint64_t{one.a.is_capped});
  table.cell(std::uint64_t{one.b.is_capped});
  table.cell(one.budget);
  one.num_evaluations == kNoEvaluations ? table.empty_cell() : table.cell(std::uint64_t{one.num_evaluations});
  table.cell(a.run);
  table.cell(b.run);
  table.cell(one.why);
}

void write_differences(const Study& study, const std::vector<Family>& families, TableFormat format, std::ostream& out) {
  std::vector<std::string> header(kDifferenceColumns.begin(), kDifferenceColumns.end());
  const std::vector<std::string> keys = other_axes(study);
  for (const std::string& key : keys) header.push_back(std::ranges::find(header, key) == header.end() ? key : "axis." + key);
  TableWriter table(out, format, header);
  for (const Family& family : families)
    for (const PairedRun& one : family.contrasts.differences) {
      put_difference(table, study, family, one);
      for (const std::string& key : keys) table.cell_as_written(table.written(label_of(study.runs[one.a.run].record, key)));
      table.end_row();
    }
  table.end_table();
}

void put_margin(TableWriter& table, const Contrasts& contrasts, const MarginContrast* one) {
  if (one == nullptr) {
    for (int cell = 0; cell < 11; ++cell) table.empty_cell();
    return;
  }
  table.cell(contrasts.margin->text);
  table.cell(contrasts.levels[one->level]);
  for (const double number : {one->difference.mean, one->difference.student.low, one->difference.student.high, one->p_non_inferior,
                              one->p_superior, one->p_non_inferior_adjusted, one->p_superior_adjusted})
    table.cell(number);
  table.cell(std::string(to_string(one->result)));
  table.cell(one->why);
}

void put_slope(TableWriter& table, const Family& family, const SlopeContrast& slope) {
  put_names(table, family, slope.group, slope.pair);
  table.cell(std::string(to_string(family.contrasts.heterogeneity)));
  for (const std::size_t count : {slope.slopes.size(), slope.num_left_out, slope.num_capped}) table.cell(std::uint64_t{count});
  for (const double number :
       {slope.slope.mean, slope.slope.student.low, slope.slope.student.high, slope.p_value, slope.p_holm, slope.p_flip, slope.p_flip_holm})
    table.cell(number);
  table.cell(std::string(to_string(slope.verdict)));
  table.cell(slope.why);
}

void write_slopes(const std::vector<Family>& families, TableFormat format, std::ostream& out) {
  TableWriter table(out, format, {kSlopeColumns.begin(), kSlopeColumns.end()});
  for (const Family& family : families) {
    const Contrasts& contrasts = family.contrasts;
    for (std::size_t i = 0; i < contrasts.slopes.size(); ++i) {
      put_slope(table, family, contrasts.slopes[i]);
      put_margin(table, contrasts, contrasts.margins.empty() ? nullptr : &contrasts.margins[i]);
      for (int cell = 0; cell < 2; ++cell) table.empty_cell();
      table.end_row();
    }
    for (const SlopeDifference& one : contrasts.slope_differences) {
      const LabelPair& between = contrasts.between[one.between];
      put_slope(table, family, one.contrast);
      put_margin(table, contrasts, nullptr);
      table.cell(between.key + "=" + between.a + ":" + between.b);
      table.cell(contrasts.groups[one.other_group]);
      table.end_row();
    }
  }
  table.end_table();
}

}  // namespace

std::vector<DamagedRun> export_contrasts(const RunStore& store, const ContrastExport& options) {
  const Study study = read_study(store, options.study);
  const std::vector<Family> families = families_of(study, options.contrasts);
  std::optional<OutputFile> differences, slopes;
  if (!options.differences.empty()) {
    differences.emplace(options.differences);
    write_differences(study, families, format_of(options.differences), differences->stream());
    differences->close();
  }
  if (!options.slopes.empty()) {
    slopes.emplace(options.slopes);
    write_slopes(families, format_of(options.slopes), slopes->stream());
    slopes->close();
  }
  if (differences) differences->rename();
  if (slopes) slopes->rename();
  return study.damaged;
}

}  // namespace fl
