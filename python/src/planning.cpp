#include "python/src/planning.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "checks/check.hpp"
#include "fl_core/config/default_options.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"
#include "python/src/calls.hpp"
#include "python/src/interrupt.hpp"
#include "python/src/study_options.hpp"
#include "scenarios/plugins/part_settings.hpp"
#include "study/driver/simulation.hpp"
#include "study/machine/machine_share.hpp"
#include "study/planning/checked_parts.hpp"
#include "study/planning/plan_json.hpp"
#include "study/planning/suggestion.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace fl::python {
namespace {

// Returns a plan as JSON. Its trials are threads of this process.
std::string plan(const nb::dict& options, bool on_main_thread) {
  StudySettings arguments;
  take_study_options(options, arguments);
  SweepSettings settings;
  settings.kind = Workers::threads;
  take(options, "threads", settings.threads);
  int asked_jobs = 0;
  take(options, "jobs", asked_jobs);
  PlanSettings planned;
  take(options, "seconds", planned.seconds);
  take(options, "most", planned.most);
  std::ostringstream out;
  bool is_interrupted = false;
  {
    const StopsAtInterrupt stops(on_main_thread);
    const WithoutLock released;
    settings.workers = planned.workers = jobs_for(asked_jobs, settings.threads);
    planned.stop = stops.token();
    settings.paging = paging_of(arguments.state_memory, "");
    const DataCatalog catalog(arguments.data);
    SweepRunner runner(cells_of(arguments, &catalog), catalog, settings);
    write_plan(plan_study(runner, planned), runner.cells(), planned.workers, out);
    is_interrupted = stops.is_asked();
  }
  if (is_interrupted) raise_interrupt();
  return out.str();
}

SuggestArguments suggest_arguments(const nb::dict& options) {
  StudySettings scenario;
  take_study_options(options, scenario);
  SuggestArguments asked{.text = scenario.text, .file = scenario.file, .data = scenario.data, .settings = scenario.settings};
  take(options, "k", asked.k);
  take(options, "ratio", asked.ratio);
  take(options, "lambda", asked.lambda);
  take(options, "epsilon", asked.epsilon);
  take(options, "d", asked.d);
  take(options, "gamma", asked.gamma);
  take(options, "zeta", asked.zeta);
  take(options, "sigma", asked.noise.sigma);
  take(options, "noise_growth", asked.noise.M);
  take(options, "measure", asked.rounds);
  return asked;
}

// Returns work(token) without Python's lock. Raises KeyboardInterrupt if it was asked to stop meanwhile.
template <class Work>
auto unless_stopped(bool on_main_thread, const Work& work) {
  std::optional<decltype(work(StopToken()))> found;
  bool is_stopped = false;
  {
    const StopsAtInterrupt stops(on_main_thread);
    const WithoutLock released;
    try {
      found.emplace(work(stops.token()));
    } catch (const Error&) {
      if (!stops.is_asked()) throw;
    }
    is_stopped = stops.is_asked();
  }
  if (is_stopped) raise_interrupt();
  return *std::move(found);
}

// Returns the numbers of `fedbits suggest` by their names.
nb::dict suggest_numbers(const nb::dict& options, bool on_main_thread) {
  SuggestArguments arguments = suggest_arguments(options);
  const Suggestion found = unless_stopped(
      on_main_thread, [&](const StopToken& stop) { return suggest(std::move(arguments), [&stop] { return !stop.is_asked(); }); });
  const SuggestArguments& asked = found.asked;
  nb::dict numbers;
  if (asked.d) numbers["d"] = *asked.d;
  if (asked.gamma) numbers["gamma"] = *asked.gamma;
  if (asked.zeta) numbers["zeta"] = *asked.zeta;
  if (found.unit) numbers["unit"] = to_string(*found.unit);
  if (const std::optional<double> k = asked.entries()) {
    numbers["k"] = *k;
    numbers["lambda_rule"] = rule_lambda(*k);
    if (asked.d) numbers["lambda_equal_bounds"] = equal_bounds_lambda(*k, *asked.d, found.noise());
  }
  if (asked.lambda) {
    numbers["k_rule"] = rule_k(*asked.lambda);
    if (asked.d) numbers["k_equal_bounds"] = equal_bounds_k(*asked.lambda, *asked.d, found.noise());
    if (asked.d && asked.gamma) numbers["epsilon"] = epsilon_of(*asked.lambda, *asked.d, *asked.gamma);
  }
  if (asked.epsilon) numbers["lambda_epsilon"] = epsilon_lambda(*asked.epsilon, *asked.d, *asked.gamma);
  if (found.measured) {
    numbers[found.measured->unit == Unit::step ? "lambda_measured" : "threshold_measured"] = found.measured->threshold;
    numbers["measured_rounds"] = found.measured->rounds;
    numbers["measured_bits"] = found.measured->bits_up;
    numbers["measured_deviation"] = found.measured->matched.deviation;
  }
  return numbers;
}

// Gives parts their own defaults back after a check with other options.
class DefaultsOf {
 public:
  explicit DefaultsOf(const std::vector<PartName>& parts) {
    for (const PartName& part : parts) before_.emplace_back(part, Registry::instance().default_options(part.role, part.name));
  }
  ~DefaultsOf() {
    for (auto& [part, options] : before_) set_default_options(part.role, part.name, std::move(options));
  }
  DefaultsOf(const DefaultsOf&) = delete;
  DefaultsOf& operator=(const DefaultsOf&) = delete;

 private:
  std::vector<std::pair<PartName, Options>> before_;
};

struct Checked {
  PartName part;
  checks::Check check;
  checks::Findings findings;
};

std::vector<Checked> run_checks(const CheckArguments& arguments, const StopToken& stop) {
  const std::vector<PartName> parts = parts_to_check(arguments, {});
  require_known_checks(arguments.only, parts);
  const DefaultsOf defaults(parts);
  set_defaults(parts, arguments.settings);
  std::vector<Checked> all;
  for (const PartName& part : parts)
    for (const checks::Check& check : checks::checks_of(part.role)) {
      if (stop.is_asked()) return all;
      if (!arguments.only.empty() && std::ranges::find(arguments.only, check.name) == arguments.only.end()) continue;
      Checked& one = all.emplace_back(Checked{.part = part, .check = check, .findings = {}});
      checks::FindingPlace(one.findings, part.name).guard([&] { check.run(part.name, one.findings); });
    }
  require_checks(parts);
  return all;
}

// Returns a tuple per check: role, part, check, promise, number of findings, texts of the first ones.
nb::list check_parts(const CheckArguments& arguments, bool on_main_thread) {
  const std::vector<Checked> all = unless_stopped(on_main_thread, [&](const StopToken& stop) { return run_checks(arguments, stop); });
  nb::list rows;
  for (const Checked& one : all)
    rows.append(
        nb::make_tuple(one.part.role, one.part.name, one.check.name, one.check.promise, one.findings.count(), one.findings.texts()));
  return rows;
}

}  // namespace

void bind_planning(nb::module_& module) {
  module.def("plan", &plan, "options"_a, "on_main_thread"_a);
  module.def("suggest", &suggest_numbers, "options"_a, "on_main_thread"_a);
  module.def(
      "check_model_on",
      [](const std::string& model, std::vector<std::size_t> shape, std::size_t num_classes, std::size_t vocabulary) {
        checks::check_model_on(model, {.shape = std::move(shape), .num_classes = num_classes, .vocabulary = vocabulary});
      },
      "model"_a, "shape"_a, "num_classes"_a, "vocabulary"_a);
  module.def(
      "check_parts",
      [](std::vector<std::string> names, std::vector<std::string> settings, std::vector<std::string> only, bool on_main_thread) {
        return check_parts({.names = std::move(names), .settings = std::move(settings), .plugins = {}, .only = std::move(only)},
                           on_main_thread);
      },
      "names"_a, "settings"_a, "only"_a, "on_main_thread"_a);
}

}  // namespace fl::python
