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

// Returns the key of what cannot do without a minimum, or "".
template <class T>
std::string user_of_optimum(const Scenario& scenario, const LocalUpdate<T>& local) {
  if (scenario.start.kind == Kind::optimum) return "start.kind";
  if (local.traits().needs_optimum) return "local.kind";
  if (scenario.stop.f_gap) return "stop.f_gap";
  return scenario.evaluate.average ? "evaluate.average" : "";
}

template <class T>
Start find_optimum(const Scenario& scenario, FederatedProblem<T>& problem, const LocalUpdate<T>& local) {
  const std::string user = user_of_optimum(scenario, local);
  if (user.empty() && !wants_gap(scenario, problem)) return {};
  const std::string key = user.empty() ? "evaluate.optimum" : user;
  const auto& optimum = about_key(key, [&]() -> const Minimum& { return problem.optimum(scenario.evaluate.optimum); });
  if (optimum.is_known) return {&optimum.x, optimum.value};
  if (!user.empty())
    throw key_error(user,
                    "needs a minimum of f, and none was found: f is convex but not strongly (model.l2 = 0), and where classes can be "
                    "separated its values fall for ever; set model.l2 above 0");
  return {};
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
StepSize step_size_of(const Scenario& scenario, FederatedProblem<T>& problem, const RunMethod<T>& method) {
  const Expression& rule = method.local->step_settings().learning_rate;
  std::map<std::string, double> names = problem.names_for(rule, "local.learning_rate");
  StepSize step_size;
  for (const std::string word : {"theory", "tight"}) {
    if (std::ranges::count(names_of(rule), word) == 0) continue;
    const TheoryParts<T> parts{scenario, *method.local, method.exchange, method.unit, 1};
    const TheoryStep step =
        step_of_theorem(*method.feedback, scenario.feedback_up.kind, word, theory_facts(parts, problem, word == "tight"));
    names[word] = *step.value;
    step_size.theorem = step.theorem;
    if (rule.text() == word) step_size.rate = step.rate;  // of this step, not of a multiple
  }
  step_size.value = about_key("local.learning_rate", [&] { return rule.resolve(names); });
  if (!(step_size.value > 0))
    throw key_error("local.learning_rate", "must be > 0, is " + std::to_string(step_size.value) + " (" + rule.text() + ")");
  return step_size;
}

template bool wants_gap(const Scenario&, const FederatedProblem<float>&);
template bool wants_gap(const Scenario&, const FederatedProblem<double>&);
template Start start_model(const Scenario&, FederatedProblem<float>&, const LocalUpdate<float>&, bool, std::span<float>);
template Start start_model(const Scenario&, FederatedProblem<double>&, const LocalUpdate<double>&, bool, std::span<double>);

template StepSize step_size_of(const Scenario&, FederatedProblem<float>&, const RunMethod<float>&);
template StepSize step_size_of(const Scenario&, FederatedProblem<double>&, const RunMethod<double>&);

}  // namespace fl
