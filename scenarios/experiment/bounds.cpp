#include "scenarios/experiment/bounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fl {
namespace {

double constant(const RunRecord& record, const char* name) {
  const auto found = std::ranges::find(record.constants, name, &ResolvedConstant::name);
  return found == record.constants.end() ? kNotMeasured : found->value;
}

// M and sigma^2 from a record, and sigma^2 / n of the clients' mean; zeros for full gradients.
struct Noise {
  double M = 0, sigma_sq = 0, mean_sigma_sq = 0, largest_weight = 0;
  // Returns M value, and 0 for M = 0 even if the value is not finite.
  [[nodiscard]] double relative_part(double value) const { return M > 0 ? M * value : 0; }
};

Noise noise_of(const RunRecord& record) {
  if (std::isnan(constant(record, "theorem_M"))) return {};
  return {constant(record, "theorem_M"), constant(record, "theorem_sigma_sq"), constant(record, "theorem_mean_sigma_sq"),
          constant(record, "theorem_largest_weight")};
}

bool is_in_expectation(const RunRecord& record) { return constant(record, "theorem_in_expectation") == 1; }

}  // namespace

bool measures_every_gradient(std::span<const RoundRow> rows) {
  const auto lacks_gradient = [](const RoundRow& row) { return std::isnan(row.global_grad_norm_sq); };
  return rows.size() > 1 && std::ranges::none_of(rows.first(rows.size() - 1), lacks_gradient);
}

BoundedMean bounded_mean(const RunRecord& record, std::span<const RoundRow> rows) {
  BoundedMean mean;
  const double theorem = constant(record, "theorem"), L = constant(record, "theorem_L"), gamma = constant(record, "gamma");
  if (std::isnan(theorem) || !measures_every_gradient(rows)) return mean;
  const double gap = rows.front().train_loss - record.f_star, delta = constant(record, "theorem_delta");
  if (!std::isfinite(gap)) return mean;
  const Noise noise = noise_of(record);
  mean.theorem = static_cast<int>(theorem);
  mean.in_expectation = is_in_expectation(record);
  double sum = 0, zeta_sq = 0;
  for (std::size_t T = 1; T < rows.size(); ++T) {
    const double far = 2 * gap / (gamma * static_cast<double>(T)), step_sq = gamma * gamma * L * L;
    sum += rows[T - 1].global_grad_norm_sq;
    zeta_sq = std::max(zeta_sq, std::isnan(rows[T - 1].zeta_sq) ? std::numeric_limits<double>::infinity() : rows[T - 1].zeta_sq);
    const double of_mean = gamma * L * (noise.mean_sigma_sq + noise.relative_part(noise.largest_weight * zeta_sq));
    mean.measured.push_back(sum / static_cast<double>(T));
    if (mean.theorem == 8) mean.bound.push_back(far + of_mean);
    if (mean.theorem == 6) mean.bound.push_back(2 * far + 2 * of_mean + 2 * step_sq * std::pow(constant(record, "theorem_kappa"), 2));
    if (mean.theorem == 7)
      mean.bound.push_back(4 * far + 4 * of_mean + 16 * step_sq * zeta_sq * (1 - delta) / (delta * delta) +
                           8 * step_sq * (noise.sigma_sq + noise.relative_part(zeta_sq)) * (1 - delta) / delta);
  }
  return mean;
}

BoundedAverage bounded_average(const RunRecord& record, std::span<const RoundRow> rows) {
  BoundedAverage average;
  const double theorem = constant(record, "average_theorem"), gamma = constant(record, "gamma"), mu = constant(record, "average_mu");
  if (std::isnan(theorem)) return average;
  const Noise noise = noise_of(record);
  average.theorem = static_cast<int>(theorem);
  average.in_expectation = is_in_expectation(record);
  const double start = constant(record, "average_R0_sq") / gamma;
  const double lost = constant(record, "average_L") * std::pow(constant(record, "average_kappa") * gamma, 2);
  const double of_mean =
      gamma * (noise.mean_sigma_sq + 2 * noise.relative_part(noise.largest_weight * constant(record, "zeta_sq_at_optimum")));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (std::isnan(rows[r].average_f_gap)) continue;
    const auto T = static_cast<double>(rows[r].round);
    average.row.push_back(r);
    average.measured.push_back(rows[r].average_f_gap);
    average.bound.push_back(average.theorem == 4 ? 2 * (start * std::exp(-gamma * mu * T / 2) + of_mean + 3 * lost)
                                                 : 2 * (start / T + of_mean + 2 * lost));
  }
  return average;
}

PredictedRate predicted_rate(const RunRecord& record, std::span<const RoundRow> rows) {
  PredictedRate found;
  const double rate = constant(record, "tight_rate");
  if (std::isnan(rate) || rows.empty() || !(rows.front().f_gap > 0)) return found;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].round == 0 || std::isnan(rows[r].f_gap)) continue;
    found.row.push_back(r);
    found.measured.push_back(rows[r].f_gap);
    found.predicted.push_back(rows.front().f_gap * std::pow(rate, 2 * static_cast<double>(rows[r].round)));
  }
  return found;
}

}  // namespace fl
