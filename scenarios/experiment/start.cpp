#include "scenarios/experiment/start.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "fl_core/config/key_error.hpp"
#include "fl_core/config/rule_field.hpp"
#include "scenarios/experiment/model_file.hpp"
#include "scenarios/experiment/step_size.hpp"
#include "scenarios/experiment/theory.hpp"

namespace fl {

namespace {

using Kind = StartOptions::Kind;

template <class T>
Start find_optimum(const Scenario& scenario, FederatedProblem<T>& problem, const LocalUpdate<T>& local) {
  const bool is_needed = local.traits().needs_optimum || scenario.start.kind == Kind::optimum;
  if (!is_needed && !wants_gap(scenario, problem)) return {};
  const std::string key = scenario.start.kind == Kind::optimum ? "start.kind"
                          : local.traits().needs_optimum       ? "local.kind"
                                                               : "evaluate.optimum";
  const auto& optimum = about_key(key, [&]() -> const Minimum& { return problem.optimum(scenario.evaluate.optimum); });
  return {&optimum.x, optimum.value};
}

}  // namespace

template <class T>
bool wants_gap(const Scenario& scenario, const FederatedProblem<T>& problem) {
  return scenario.evaluate.optimum.is_used && problem.has_optimum(scenario.evaluate.optimum);
}

template <class T>
Start start_model(const Scenario& scenario, FederatedProblem<T>& problem, const LocalUpdate<T>& local, bool looks_for_errors,
                  std::span<T> model) {
  const bool skips_optimum = looks_for_errors && scenario.evaluate.optimum.path.empty();
  if (skips_optimum && scenario.start.kind != Kind::file) return {};
  const Start start = skips_optimum ? Start{} : find_optimum(scenario, problem, local);
  const auto take = [&model](const std::vector<double>& x) {
    std::ranges::transform(x, model.begin(), [](double v) { return static_cast<T>(v); });
  };
  switch (scenario.start.kind) {
    case Kind::automatic:
      if (problem.model().traits().starts_at_random) problem.model().initial(scenario.seeds.init, model.data());
      break;
    case Kind::zero: break;
    case Kind::random: problem.model().initial(scenario.seeds.init, model.data()); break;
    case Kind::optimum: take(*start.x_star); break;
    case Kind::file: take(read_parameters(problem.find_input("start.path", scenario.start.path), problem.layers(), "start.path")); break;
  }
  for (T& x : model) x += static_cast<T>(scenario.start.shift);
  return start;
}

template <class T>
double step_size_of(const Scenario& scenario, FederatedProblem<T>& problem, const RunMethod<T>& method) {
  const Expression& rule = method.local->step_settings().learning_rate;
  std::map<std::string, double> names = problem.names_for(rule, "local.learning_rate");
  if (std::ranges::count(names_of(rule), "theory") > 0)
    names["theory"] = theory_step_size(*method.feedback, scenario.feedback_up.kind,
                                       theory_facts(TheoryParts<T>{scenario, *method.local, method.exchange, method.unit, 1}, problem));
  const double step_size = about_key("local.learning_rate", [&] { return rule.resolve(names); });
  if (!(step_size > 0)) throw key_error("local.learning_rate", "must be > 0, is " + std::to_string(step_size) + " (" + rule.text() + ")");
  return step_size;
}

template bool wants_gap(const Scenario&, const FederatedProblem<float>&);
template bool wants_gap(const Scenario&, const FederatedProblem<double>&);
template Start start_model(const Scenario&, FederatedProblem<float>&, const LocalUpdate<float>&, bool, std::span<float>);
template Start start_model(const Scenario&, FederatedProblem<double>&, const LocalUpdate<double>&, bool, std::span<double>);

template double step_size_of(const Scenario&, FederatedProblem<float>&, const RunMethod<float>&);
template double step_size_of(const Scenario&, FederatedProblem<double>&, const RunMethod<double>&);

}  // namespace fl
