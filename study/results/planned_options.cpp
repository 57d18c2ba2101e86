#include "study/results/planned_options.hpp"

#include <algorithm>
#include <map>

#include "scenarios/file/analysis_plan.hpp"
#include "scenarios/file/results_version.hpp"
#include "study/output/numbers.hpp"

namespace fl {
namespace {

std::string joined_with_commas(const std::vector<std::string>& texts) {
  std::string text;
  for (const std::string& one : texts) text += (text.empty() ? "" : ", ") + one;
  return text;
}

// Follows a plan key by key.
class Follower {
 public:
  explicit Follower(PlannedOptions& options) : options_(options) {}

  void follow(const char* option, std::string& given, const std::string& planned) {
    if (given.empty())
      given = planned;
    else if (given != planned)
      depart(option, given, planned);
  }
  void follow(const char* option, std::vector<std::string>& given, const std::vector<std::string>& planned) {
    if (given.empty())
      given = planned;
    else if (given != planned)
      depart(option, joined_with_commas(given), joined_with_commas(planned));
  }
  void follow(const char* option, std::optional<double>& given, const std::optional<double>& planned) {
    if (!given)
      given = planned;
    else if (given != planned)
      depart(option, short_text(*given), planned ? short_text(*planned) : "");
  }
  void depart(const char* option, const std::string& given, const std::string& planned) {
    options_.departures.push_back(std::string(option) + (given.empty() ? "" : " " + one_line(given)) +
                                  " departs from the analysis plan, which " +
                                  (planned.empty() ? "does not have it" : "has " + one_line(planned)));
  }

 private:
  PlannedOptions& options_;
};

void follow_plan(const AnalysisPlan& plan, AnalysisArguments& arguments, PlannedOptions& options) {
  Follower follower(options);
  follower.follow("--contrast", arguments.contrasts.contrasts, plan.contrasts);
  follower.follow("--between", arguments.contrasts.between, plan.between);
  follower.follow("--classes", arguments.contrasts.classes, plan.classes.size() == 2 ? plan.classes[0] + ":" + plan.classes[1] : "");
  follower.follow("--heterogeneity", arguments.contrasts.heterogeneity, plan.heterogeneity);
  follower.follow("--margin", arguments.contrasts.margins, plan.margins);
  follower.follow("--slope-test", arguments.contrasts.test, plan.slope_test);
  follower.follow("--chance", arguments.contrasts.chance, plan.chance);
  follower.follow("--measure", arguments.study.measures, plan.measures);
  follower.follow("--window", arguments.window, plan.window);
  follower.follow("--method", arguments.study.method_axis, plan.axes.method);
  follower.follow("--level", arguments.study.level_axis, plan.axes.level);
  follower.follow("--baseline", arguments.study.baseline, plan.axes.baseline);
  if (arguments.study.claims_despite_refused) follower.depart("--claims-despite-refused", "", "");
}

}  // namespace

PlannedOptions planned_options(const RunStore& store, const AnalysisArguments& asked, Problems& problems) {
  PlannedOptions options;
  AnalysisArguments arguments = asked;
  std::vector<DamagedRun> damaged;
  std::vector<RunRecord> records = store.list(damaged);
  (void)remove_other_results(records);
  std::erase_if(records, [](const RunRecord& record) { return !is_finished(record.status); });
  std::map<std::string, const RunRecord*> plans;
  std::size_t with_plan = 0;
  for (const RunRecord& record : records)
    if (const std::string hash = plan_hash(record); !hash.empty()) {
      plans.emplace(hash, &record);
      ++with_plan;
    }
  std::optional<AnalysisPlan> plan;
  if (plans.size() == 1) plan = plan_of(*plans.begin()->second);
  if (plans.size() > 1) {
    std::string hashes;
    for (const auto& [hash, record] : plans) hashes += (hashes.empty() ? "" : ", ") + hash.substr(0, 16);
    options.notes.push_back("the runs of this store have " + std::to_string(plans.size()) + " different analysis plans (SHA-256 " + hashes +
                            "), so none is followed");
  }
  if (plan) {
    follow_plan(*plan, arguments, options);
    options.notes.push_back("analysis plan " + one_line(plan->file) + ", SHA-256 " + plan->sha256 + ", stored with " +
                            std::to_string(with_plan) + " of " + std::to_string(records.size()) + " finished runs");
    if (with_plan < records.size())
      options.notes.push_back(std::to_string(records.size() - with_plan) +
                              " finished runs of this store were made without the analysis plan");
    for (const std::string& departure : options.departures) options.notes.push_back("NOT AS PLANNED: " + departure);
  }
  options.study = arguments.study;
  if (arguments.window) options.study.window = *arguments.window;
  options.contrasts = contrast_options(arguments.contrasts, problems);
  if (plan) options.contrasts.levels = plan->levels;
  return options;
}

}  // namespace fl
