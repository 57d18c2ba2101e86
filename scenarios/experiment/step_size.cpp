#include "scenarios/experiment/step_size.hpp"

#include "clients/learning/descent.hpp"
#include "fl_core/config/key_error.hpp"

namespace fl {
namespace {

// Returns whether a client sends a gradient of f_i at the received model, possibly minus a constant, or the step along it.
template <class T>
bool sends_one_gradient(const LocalUpdate<T>& local) {
  const std::optional<Descent> descent = local.descent();
  if (!descent) return local.traits().needs_optimum;
  if (!descent->moves) return true;
  return !descent->by_optimizer && descent->work.epochs == 0 && descent->work.steps == 1 && descent->momentum == 0 &&
         descent->proximal_mu == 0 && descent->weight_decay == 0;
}

}  // namespace

template <class T>
TheoryFacts theory_facts(const TheoryParts<T>& parts, FederatedProblem<T>& problem, bool needs_convexity) {
  const double curvature = problem.model().regulariser().largest_curvature();
  const std::map<std::string, double>& names = problem.names_for(Expression("theory"), "local.learning_rate");
  TheoryFacts facts;
  facts.L = names.at("L") + curvature;
  facts.mu = names.at("mu");
  if (needs_convexity) facts.client_mu = problem.least_convexity();
  for (const double smoothness : problem.client_smoothness()) facts.L_i.push_back(smoothness + curvature);
  facts.weights = problem.weights();
  facts.clients_are_convex = problem.model().is_convex();
  for (const ExchangeChannel<T>& channel : parts.exchange.channels) facts.contracts.push_back(channel.compressor->contract(channel.scope));
  facts.local_update = parts.scenario.local.kind;
  if (parts.local.optimizer() != nullptr) facts.local_update += "\" with local_optimizer.kind = \"" + parts.scenario.local_optimizer.kind;
  facts.sends_one_gradient = sends_one_gradient(parts.local);
  if (const std::optional<Descent> descent = parts.local.descent(); descent && descent->moves)
    facts.local_steps = descent->work.epochs > 0 ? 0 : descent->work.steps;
  const SamplingOptions& sampling = parts.local.step_settings().sampling;
  facts.batch = sampling.sample_file.empty() ? sampling.batch : 1;
  facts.has_bounded_noise = gradient_noise(problem, sampling).has_value();
  facts.round.full_participation = has_everyone(parts.scenario);
  facts.round.constant_step = has_constant_step(parts.local.step_settings().schedule);
  facts.round.averages_by_weight = averages_by_weight(parts.scenario);
  facts.round.plain_server = steps_plainly(parts.scenario.server.part);
  facts.round.exact_downlink = sends_models_exactly(parts.scenario);
  facts.round.no_postprocessor = changes_nothing(parts.scenario.postprocessor);
  return facts;
}

template <class T>
TheoryStep step_of_theorem(const Feedback<T>& feedback, const std::string& kind, const std::string& word, const TheoryFacts& facts) {
  TheoryStep step = word == "tight" ? feedback.tight_step_size(facts) : feedback.theory_step_size(facts);
  if (step.value) return step;
  throw key_error("local.learning_rate",
                  "\"" + word + "\" with feedback '" + kind + "': " + step.why_not + "; or give a number or a rule such as \"1/(L+l2)\"");
}

template TheoryFacts theory_facts(const TheoryParts<float>&, FederatedProblem<float>&, bool);
template TheoryFacts theory_facts(const TheoryParts<double>&, FederatedProblem<double>&, bool);
template TheoryStep step_of_theorem(const Feedback<float>&, const std::string&, const std::string&, const TheoryFacts&);
template TheoryStep step_of_theorem(const Feedback<double>&, const std::string&, const std::string&, const TheoryFacts&);

}  // namespace fl
