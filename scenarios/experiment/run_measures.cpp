#include "scenarios/experiment/run_measures.hpp"

#include <vector>

#include "scenarios/experiment/run_method.hpp"

namespace fl {

// The loss and the gradient of the model share a pass over the training rows if both are due.
template <class T>
double RunMeasures<T>::Evaluation::train_loss(std::span<const T> x) {
  if (needs_gradient_ && !gradient_ && is_model(x)) {
    if (const auto both = run_.evaluator.loss_and_gradient(x)) {
      gradient_ = both->gradient;
      return both->loss;
    }
  }
  return run_.evaluator.train_loss(x);
}

template <class T>
GradientStatistics RunMeasures<T>::Evaluation::gradient(std::span<const T> x) {
  return gradient_ && is_model(x) ? *gradient_ : run_.evaluator.gradient(x);
}

template <class T>
Spread RunMeasures<T>::Evaluation::client_accuracy(std::span<const T> x) {
  typename Evaluator<T>::Adapt adapt;  // adapts x to the parameters that clients keep
  if (!kinds_of(layers_of_run(run_.scenario, run_.problem.layers())).kept.empty())
    adapt = [this](std::uint32_t client, T* own) { run_.probe.put_kept(client, own); };
  return run_.evaluator.client_accuracy(x, adapt);
}

template <class T>
std::vector<double> RunMeasures<T>::Evaluation::mean_memory() {
  if (run_.feedback.plan().error_slot.empty()) return {};
  return run_.round.memory_sum(round_played_ + 1);
}

// Describes the bits of the round, and its messages and updates if they were kept.
template <class T>
void RunMeasures<T>::describe_round(MeasureView<T>& view, const DueMeasures& due) const {
  const RoundPlan& plan = run_.round.plan();
  const Ledger& ledger = run_.round.ledger();
  view.cohort = plan.cohort;
  view.cohort_weight = plan.cohort_weight;
  view.delivered = run_.round.delivered();
  view.costs = {.clients = plan.cohort.size(),
                .elements_up = ledger.round_up().elements,
                .bits_up = ledger.round_up().bits,
                .bits_down = ledger.round_down_bits(),
                .refused = run_.round.refused(),
                .bits_up_published = ledger.round_up().published,
                .bits_up_entropy = ledger.round_up().entropy,
                .residual_age = run_.round.residual_age()};
  if (run_.clock != nullptr)
    view.costs.timeline = run_.scenario.is_asynchronous() ? &run_.clock->clock->last() : &run_.clock->cohort->timeline();
  if (measures_.needs(due, &MeasureCost::messages)) view.messages = run_.probe.measures().first(plan.cohort.size());
  if (!measures_.needs(due, &MeasureCost::updates)) return;
  view.updates = run_.probe.updates(plan.cohort.size(), run_.problem.P());
  const double gamma = run_.step_size * run_.local.step_settings().schedule.factor(view.round, view.num_rounds);
  view.update_step = run_.unit == Unit::update ? 1 : gamma;
}

template <class T>
void RunMeasures<T>::measure(RoundRow& row, const DueMeasures& due) {
  MeasureView<T> view{.round = static_cast<std::uint32_t>(row.round),
                      .num_rounds = static_cast<std::uint32_t>(run_.scenario.rounds),
                      .model = run_.model,
                      .average = run_.average ? std::span<const double>(run_.average->value()) : std::span<const double>(),
                      .f_star = run_.f_star,
                      .problem = problem_,
                      .evaluation = evaluation_,
                      .pool = run_.pool};
  evaluation_.open(view.round, measures_.needs(due, &MeasureCost::gradients));
  if (view.round > 0) describe_round(view, due);
  measures_.measure(due, view, row);
}

template <class T>
double RunMeasures<T>::zeta_sq_at_optimum() {
  const std::vector<double>& x_star = run_.problem.optimum(run_.scenario.evaluate.optimum).x;
  const std::vector<T> at(x_star.begin(), x_star.end());
  return run_.evaluator.gradient(at).zeta_sq;
}

template class RunMeasures<float>;
template class RunMeasures<double>;

}  // namespace fl
