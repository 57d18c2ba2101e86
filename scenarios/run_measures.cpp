#include "scenarios/run_measures.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "fl_core/norms.hpp"

namespace fl {

// What is due to be measured of x_r.
template <class T>
void RunMeasures<T>::of_model(RoundRow& row, const DueMeasures& due) {
  if (due.evaluation) evaluate(row);
  if (due.gradient) of_gradient(row);
  if (due.clients) of_clients(row);
  if (due.ranking) of_ranking(row);
}

template <class T>
void RunMeasures<T>::of_costs(RoundRow& row) const {
  const Ledger& ledger = run_.round.ledger();
  row.clients = run_.round.plan().cohort.size();
  row.elements_up = ledger.round_up().elements;
  row.bits_up_published = ledger.round_up().published;
  row.bits_up_entropy = ledger.round_up().entropy;
  row.bits_up = ledger.round_up().bits;
  row.bits_down = ledger.round_down_bits();
  row.residual_age = run_.round.residual_age();
  row.refused = run_.round.refused();
  row.density = static_cast<double>(row.elements_up) / (static_cast<double>(row.clients) * static_cast<double>(run_.problem.P()));
}

template <class T>
void RunMeasures<T>::evaluate(RoundRow& row) {
  if (run_.scenario.evaluate.train_loss) row.train_loss = run_.evaluator.train_loss(run_.model);
  row.f_gap = row.train_loss - run_.f_star;
  if (run_.average && row.round > 0) {
    const std::vector<T> at(run_.average->value().begin(), run_.average->value().end());
    row.average_f_gap = run_.evaluator.train_loss(at) - run_.f_star;
  }
  const Accuracy test = run_.evaluator.test(run_.model);
  row.test_accuracy = test.accuracy;
  row.test_loss = test.loss;
  if (run_.problem.train().next_token != NextToken::none) row.perplexity = std::exp(test.loss);
  row.virtual_drift = virtual_drift(static_cast<std::uint32_t>(row.round));
}

template <class T>
void RunMeasures<T>::of_gradient(RoundRow& row) {
  const GradientStatistics gradient = run_.evaluator.gradient(run_.model);
  row.global_grad_norm_sq = gradient.norm_sq;
  row.zeta_sq = gradient.zeta_sq;
  row.gradient_dissimilarity = gradient.dissimilarity();
}

template <class T>
void RunMeasures<T>::of_clients(RoundRow& row) {
  typename Evaluator<T>::Adapt adapt;  // by statistics that stay with the clients
  if (run_.scenario.server.local_statistics()) adapt = [this](std::uint32_t client, T* x) { run_.round.put_own_statistics(client, x); };
  const Spread accuracy = run_.evaluator.client_accuracy(run_.model, adapt);
  row.client_accuracy_mean = accuracy.mean;
  row.client_accuracy_p10 = accuracy.p10;
  row.client_accuracy_p50 = accuracy.p50;
  row.client_accuracy_p90 = accuracy.p90;
  row.client_accuracy_worst = accuracy.smallest;
  row.client_accuracy_deviation = accuracy.deviation;
}

template <class T>
void RunMeasures<T>::of_ranking(RoundRow& row) {
  const RankingQuality quality = run_.evaluator.ranking(run_.model, run_.scenario.seeds.data);
  row.hit_rate_10 = quality.hit_rate;
  row.ndcg_10 = quality.ndcg;
}

// Weighted as the server averages. A gradient counts as one local step, which moves a client by gamma times it.
template <class T>
void RunMeasures<T>::of_updates(RoundRow& row) const {
  const RoundPlan& plan = run_.round.plan();
  if (plan.cohort.empty()) return;
  std::vector<double> weight = plan.cohort_weight;
  double sum = 0;
  for (const double w : weight) sum += w;
  for (double& w : weight) w /= sum;
  const UpdateStatistics updates = update_statistics(run_.runner.updates(plan.cohort.size(), run_.problem.P()), weight, run_.pool);
  const double gamma = run_.step_size * run_.local.schedule().factor(static_cast<std::uint32_t>(row.round),
                                                                     static_cast<std::uint32_t>(run_.scenario.rounds));
  const double step = run_.unit == Unit::update ? 1 : gamma;
  row.update_dissimilarity = updates.dissimilarity;
  row.client_drift = step * step * updates.variance;
}

// Means over the cohort, and what was promised against what happened.
template <class T>
void RunMeasures<T>::of_messages(RoundRow& row) const {
  const std::span<const ClientMeasures> measures = run_.runner.measures().first(run_.round.plan().cohort.size());
  if (measures.empty()) return;  // a skipped round
  double error = 0, input = 0, compensated = 0, compression = 0, kappa = 0, delta = 1, omega = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < measures.size(); ++i) {
    if (run_.round.delivered()[i] == 0) continue;
    const ClientMeasures& m = measures[i];
    ++count;
    error += m.error;
    input += m.input;
    compensated += m.compensated;
    compression += m.compression_error;
    kappa = std::max(kappa, std::sqrt(m.compression_error));
    if (!(m.compensated > 0)) continue;
    delta = std::min(delta, 1 - m.compression_error / m.compensated);
    omega = std::max(omega, m.compression_error / m.compensated);
  }
  if (count == 0) return;
  const auto M = static_cast<double>(count);
  row.error_norm_sq = error / M;
  row.grad_norm_sq = input / M;
  row.compensated_norm_sq = compensated / M;
  row.compression_error_sq = compression / M;
  row.measured_kappa = kappa;
  row.measured_delta = delta;
  row.measured_omega = omega;
}

// |mean of all clients' error| after a round: how far the virtual iterate x - mean e lies from x.
template <class T>
double RunMeasures<T>::virtual_drift(std::uint32_t round) {
  const std::string slot = run_.feedback.plan().error_slot;
  if (slot.empty()) return kNotMeasured;
  const std::vector<double> mean = run_.round.memory_sum(round + 1);
  return std::sqrt(sum_of_squares(mean.data(), mean.size()));
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
