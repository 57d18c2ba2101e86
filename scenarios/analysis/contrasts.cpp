#include "scenarios/analysis/contrasts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "fl_core/config/error.hpp"
#include "scenarios/analysis/paired_runs.hpp"
#include "scenarios/analysis/seed_slopes.hpp"
#include "scenarios/analysis/sign_flip.hpp"
#include "scenarios/analysis/slope_differences.hpp"
#include "scenarios/analysis/study_axes.hpp"

namespace fl {
namespace {

// ---- slopes --------------------------------------------------------------------------------------------------------------------

SlopeContrast slope_contrast(const Study& study, const Contrasts& contrasts, std::size_t pair, std::size_t group) {
  SlopeContrast contrast{.pair = pair, .group = group};
  std::set<std::vector<std::size_t>> seen;
  std::vector<const PairedRun*> all;
  const auto slopes = slopes_by_seed(study, contrasts, pair, group);
  for (const auto& [seed, slope] : slopes) {
    all.insert(all.end(), slope.pairs.begin(), slope.pairs.end());
    if (seen.insert(slope.identity).second) add_seed(contrast, seed, slope);
  }
  test_slopes(contrast, study, all);
  return contrast;
}

void correct_all_slopes(Contrasts& contrasts, Direction direction) {
  std::vector<SlopeContrast*> family;
  for (SlopeContrast& slope : contrasts.slopes) family.push_back(&slope);
  correct_slopes(family, contrasts.test, direction);
}

// ---- margins -------------------------------------------------------------------------------------------------------------------

// Returns the strongest level of a group: the last one.
MarginContrast margin_contrast(const Study& study, const Contrasts& contrasts, std::size_t pair, std::size_t group, Direction direction) {
  MarginContrast result{.pair = pair, .group = group, .level = contrasts.levels.size() - 1};
  const std::vector<std::size_t> first = first_of_runs(study);
  std::set<std::vector<std::size_t>> seen;
  std::vector<double> differences, harm;
  std::vector<const PairedRun*> all;
  for (const PairedRun& one : contrasts.differences) {
    if (one.pair != pair || one.group != group || one.level != result.level) continue;
    all.push_back(&one);
    if (!seen.insert(identity_of(first, std::vector{&one})).second) continue;
    if (!one.why.empty()) {
      if (result.why.empty()) result.why = "seed " + std::to_string(one.seed) + ": " + one.why;
      continue;
    }
    differences.push_back(one.difference);
    harm.push_back(direction == Direction::lower_is_better ? one.difference : -one.difference);
  }
  result.difference = estimate_mean(differences);
  const double limit = contrasts.margin->is_ratio ? std::log(contrasts.margin->value) : contrasts.margin->value;
  result.p_non_inferior = p_value_below(harm, limit);
  result.p_superior = p_value_below(harm, 0);
  if (result.why.empty() && differences.size() < 2) result.why = "fewer than two pairs of runs";
  if (result.why.empty()) result.why = why_of_runs(study, all);
  return result;
}

void correct_margins(Contrasts& contrasts) {
  std::vector<MarginContrast*> family;
  std::vector<std::pair<double, double>> chains;
  for (MarginContrast& one : contrasts.margins) {
    one.p_non_inferior_adjusted = one.p_non_inferior;
    one.p_superior_adjusted = one.p_superior;
    if (one.difference.count < 2) continue;
    family.push_back(&one);
    chains.emplace_back(one.p_non_inferior, one.p_superior);
  }
  const auto adjusted = chain_adjusted(chains);
  for (std::size_t i = 0; i < family.size(); ++i) {
    MarginContrast& one = *family[i];
    std::tie(one.p_non_inferior_adjusted, one.p_superior_adjusted) = adjusted[i];
    if (!one.why.empty()) continue;
    if (one.p_non_inferior_adjusted > kOneSidedError)
      one.why = "the margin is not excluded";
    else
      one.result = one.p_superior_adjusted <= kOneSidedError ? MarginResult::superior : MarginResult::non_inferior;
  }
}

// ---- options -------------------------------------------------------------------------------------------------------------------

const Margin* margin_for(const MeasureColumn& column, const ContrastOptions& options) {
  for (const Margin& margin : options.margins)
    if (margin.is_ratio ? column.shown == MeasureColumn::Shown::gap : column.shown == MeasureColumn::Shown::share) return &margin;
  return nullptr;
}

void check_margins(const Study& study, const ContrastOptions& options, Problems& problems) {
  for (const Margin& margin : options.margins)
    if (std::ranges::none_of(study.columns,
                             [&](const MeasureColumn& column) { return margin_for(column, {.margins = {margin}}) != nullptr; }))
      problems.push_back({"--margin", "'" + margin.text +
                                          "' fits no measure of this study: a ratio (1.1x) is for a gap, points (1pt) for a share; "
                                          "--measure names a measure"});
}

std::vector<std::string> labels_of_levels(const Study& study) {
  std::vector<std::string> labels;
  for (const Panel& panel : study.panels)
    if (std::ranges::find(labels, panel.level) == labels.end()) labels.push_back(panel.level);
  return labels;
}

// Returns the levels in order: those of the options, or all of them by their mean zeta^2 (at x_0, else at x*). Levels without zeta^2 keep
// the order of the runs.
std::vector<std::string> ordered_levels(const Study& study, const ContrastOptions& options, Problems& problems) {
  std::vector<std::string> known = labels_of_levels(study);
  if (study.axes.level.empty() || known.size() < 2) {
    problems.push_back({"--contrast", "needs two levels of heterogeneity or more; --level names their axis"});
    return known;
  }
  for (const std::string& level : options.levels)
    if (std::ranges::find(known, level) == known.end())
      problems.push_back({"levels", "no run has the level '" + level + "' of " + study.axes.level + "; there are " + quoted_list(known)});
  if (options.levels.size() == 1) problems.push_back({"levels", "must be two levels or more"});
  if (!options.levels.empty()) return options.levels;
  std::map<std::string, double> mean;
  for (const std::string& level : known) {
    double sum = 0, count = 0;
    for (const StudyCell& cell : study.cells)
      if (study.panels[cell.panel].level == level)
        for (const std::size_t run : cell.runs) {
          const StudyRun& one = study.runs[run];
          const double zeta = std::isfinite(one.record.zeta_sq) ? one.record.zeta_sq : zeta_at_optimum(one.record);
          if (std::isfinite(zeta)) sum += std::log(std::max(zeta, std::numeric_limits<double>::min()));
          count += std::isfinite(zeta) ? 1 : 0;
        }
    mean[level] = sum / count;
  }
  if (std::ranges::none_of(known, [&](const std::string& level) { return std::isnan(mean[level]); }))
    std::ranges::stable_sort(known, {}, [&](const std::string& level) { return mean[level]; });
  return known;
}

Heterogeneity chosen_axis(const Study& study, const ContrastOptions& options) {
  if (options.heterogeneity) return *options.heterogeneity;
  const auto all_know = [&](auto&& zeta) {
    return std::ranges::all_of(study.runs,
                               [&](const StudyRun& run) { return run.record.status == RunStatus::failed || zeta(run.record) > 0; });
  };
  if (all_know([](const RunRecord& record) { return zeta_at_optimum(record); })) return Heterogeneity::at_optimum;
  return all_know([](const RunRecord& record) { return record.zeta_sq; }) ? Heterogeneity::at_start : Heterogeneity::order;
}

}  // namespace

std::vector<ContrastPair> contrast_pairs(const Study& study, const ContrastOptions& options, Problems& problems) {
  std::vector<ContrastPair> pairs;
  const auto is_method = [&](const std::string& label) { return std::ranges::find(study.methods, label) != study.methods.end(); };
  for (const std::string& text : options.contrasts) {
    const std::size_t before = pairs.size();
    for (std::size_t colon = text.find(':'); colon != std::string::npos; colon = text.find(':', colon + 1))
      if (const ContrastPair pair{text.substr(0, colon), text.substr(colon + 1)};
          pair.a != pair.b && is_method(pair.a) && is_method(pair.b)) {
        pairs.push_back(pair);
        break;
      }
    if (pairs.size() == before)
      problems.push_back({"--contrast", "'" + text + "' must be two different methods as A:B; there are " + quoted_list(study.methods)});
  }
  return pairs;
}

Contrasts contrast_methods(const Study& study, std::size_t measure, Against against, const ContrastOptions& options) {
  Problems problems;
  const MeasureColumn& column = study.columns[measure];
  Contrasts contrasts{.pairs = contrast_pairs(study, options, problems), .classes = options.classes, .test = options.test};
  contrasts.levels = ordered_levels(study, options, problems);
  check_margins(study, options, problems);
  contrasts.between = compared_labels(study, options, problems);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  contrasts.heterogeneity = chosen_axis(study, options);
  contrasts.is_log_ratio = column.shown == MeasureColumn::Shown::gap;
  if (const Margin* margin = margin_for(column, options)) contrasts.margin = *margin;
  for (const Panel& panel : study.panels)
    if (std::ranges::find(contrasts.groups, panel.rest) == contrasts.groups.end()) contrasts.groups.push_back(panel.rest);
  pair_runs(contrasts, study, measure, against, options.chance);
  const Direction direction = direction_of(column);
  for (std::size_t pair = 0; pair < contrasts.pairs.size(); ++pair)
    for (std::size_t group = 0; group < contrasts.groups.size(); ++group) {
      contrasts.slopes.push_back(slope_contrast(study, contrasts, pair, group));
      if (contrasts.margin) contrasts.margins.push_back(margin_contrast(study, contrasts, pair, group, direction));
    }
  correct_all_slopes(contrasts, direction);
  correct_margins(contrasts);
  add_slope_differences(contrasts, study, direction);
  return contrasts;
}

}  // namespace fl
