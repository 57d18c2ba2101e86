#include "server/participation.hpp"

#include <algorithm>
#include <cmath>

#include "fl_core/config/key_error.hpp"

namespace fl {

void describe_estimate(Schema& schema, CohortEstimate& estimate) {
  schema.choice(
      "estimate", estimate, {{CohortEstimate::normalised, "normalised"}, {CohortEstimate::unbiased, "unbiased"}},
      "weights of the cohort: w_i over their sum (FedAvg), or w_i over the expected number of times that the client is in it (unbiased)");
}

void describe(Schema& schema, CohortOptions& options) {
  schema.field("fraction", options.fraction, "fraction of the clients in a round, at least one client").above(0).at_most(1);
  schema.field("clients", options.clients, "clients in a round; 0 = use the fraction").at_least(0).at_most(4294967295.0);
}

namespace {

std::size_t sampled(const CohortOptions& options, std::size_t num_clients) {
  if (options.clients == 0)
    return std::max<std::size_t>(1, static_cast<std::size_t>(std::llround(options.fraction * static_cast<double>(num_clients))));
  if (static_cast<std::size_t>(options.clients) > num_clients)
    throw key_error("participation.clients", std::to_string(options.clients) + " of " + std::to_string(num_clients) +
                                                 " clients cannot be sampled without replacement");
  return static_cast<std::size_t>(options.clients);
}

}  // namespace

std::size_t size_of_cohort(const CohortOptions& options, std::size_t num_clients) {
  const std::size_t M = sampled(options, num_clients);
  if (options.factor == 1) return M;
  constexpr double kRounding = 1e-9;  // 1.1 times 10 are 11 clients
  return std::min(num_clients, static_cast<std::size_t>(std::ceil(options.factor * static_cast<double>(M) - kRounding)));
}

void keep_present(std::span<const std::uint8_t> is_here, RoundPlan& plan) {
  double all = 0, kept = 0;
  std::size_t M = 0;
  for (std::size_t i = 0; i < plan.cohort.size(); ++i) {
    all += plan.cohort_weight[i];
    if (is_here[i] == 0) continue;
    kept += plan.cohort_weight[i];
    plan.cohort[M] = plan.cohort[i];
    plan.cohort_weight[M] = plan.cohort_weight[i];
    plan.population_weight[M++] = plan.population_weight[i];
  }
  const bool is_smaller = M < plan.cohort.size();
  plan.cohort.resize(M);
  plan.cohort_weight.resize(M);
  plan.population_weight.resize(M);
  if (!is_smaller || kept == 0) return;
  for (double& weight : plan.cohort_weight) weight *= all / kept;
}

void weigh(std::span<const double> weights, CohortEstimate estimate, double factor, RoundPlan& plan) {
  plan.population_weight.clear();
  double sum = 0;
  for (const std::uint32_t i : plan.cohort) {
    plan.population_weight.push_back(weights[i]);
    sum += weights[i];
  }
  if (estimate == CohortEstimate::normalised) factor = 1 / sum;
  plan.cohort_weight.clear();
  for (const double w : plan.population_weight) plan.cohort_weight.push_back(w * factor);
}

}  // namespace fl
