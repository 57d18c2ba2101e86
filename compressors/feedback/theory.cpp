#include "compressors/feedback/theory.hpp"

#include <algorithm>
#include <cmath>

namespace fl {

double TheoryFacts::L_max() const { return L_i.empty() ? L : *std::max_element(L_i.begin(), L_i.end()); }

double TheoryFacts::L_quadratic_mean() const {
  double sum = 0;
  for (std::size_t i = 0; i < L_i.size(); ++i) sum += weights[i] * L_i[i] * L_i[i];
  return std::sqrt(sum);
}

double weight_of_errors(const Contract& contract, double largest_weight) {
  if (contract.errors_are_shared) return 1;
  if (contract.errors_are_dealt && contract.omega && *contract.omega > 0) return (1 + 1 / *contract.omega) * largest_weight;
  return largest_weight;
}

double TheoryFacts::largest_weight() const {
  const double largest = weights.empty() ? 1 : *std::max_element(weights.begin(), weights.end());
  double weight = largest;
  for (const Contract& contract : contracts) weight = std::max(weight, weight_of_errors(contract, largest));
  return weight;
}

namespace theory {

std::string unmet_by_the_round(const TheoryFacts& facts) {
  if (!facts.round.full_participation)
    return "the theorem needs every client in every round: use participation.kind = \"full\", and leave [delivery], "
           "[availability] and [asynchronous] out";
  if (!facts.round.constant_step) return "the theorem needs a constant step size: use local.schedule = \"constant\" and no warm-up";
  if (!facts.round.averages_by_weight)
    return "the theorem needs a server that averages with the weights of f: use server.average = \"weighted\", or model.weights = "
           "\"uniform\", and aggregation.kind = \"mean\"";
  if (!facts.round.plain_server)
    return "the theorem needs plain steps of the server: use server.kind = \"sgd\" with learning_rate = 1 and no momentum or weight decay";
  if (!facts.round.exact_downlink)
    return "the theorem needs clients that receive the model as it is: use compressor.down.kind = \"identity\"";
  if (!facts.round.no_postprocessor) return "the theorem needs vectors and an estimate that nothing changes: leave [postprocessor] out";
  return "";
}

std::string unmet(const TheoryFacts& facts, Gradients gradients) {
  if (const std::string why = unmet_by_the_round(facts); !why.empty()) return why;
  if (!facts.sends_one_gradient)
    return "the theorem needs one gradient of each client a round, local.kind = \"gradient\"; \"" + facts.local_update +
           (facts.local_steps == 1 ? "\" sends something else" : "\" takes local steps");
  if (facts.batch == 0) return "";
  if (gradients == Gradients::full) return "the theorem needs full gradients: local.batch must be 0, is " + std::to_string(facts.batch);
  if (!facts.has_bounded_noise)
    return "the theorem needs minibatches whose noise has a known bound, which this model does not offer: use local.batch = 0";
  return "";
}

std::optional<double> contraction(const Contract& contract) {
  if (contract.delta) return contract.delta;
  if (contract.omega && *contract.omega < 1) return 1 - *contract.omega;
  return std::nullopt;
}

bool is_lossless(const Contract& contract) { return contract.kappa == 0.0 && contract.delta == 1.0; }

double three_point_step(const TheoryFacts& facts, double A, double B) {
  return 1 / (facts.L + facts.L_quadratic_mean() * std::sqrt(B / A));
}

ThreePoints ef21_points(double delta) {
  if (delta >= 1) return {};
  const double A = 1 - std::sqrt(1 - delta);
  return {A, (1 - delta) / A};
}

TheoryStep ef21(const TheoryFacts& facts, double momentum) {
  const std::optional<double> delta = contraction(facts.contracts.front());
  if (!delta) return TheoryStep::none("the theorem needs a contraction, an operator with a constant delta such as top_k");
  if (const std::string why = unmet(facts, momentum < 1 ? Gradients::bounded_noise : Gradients::full); !why.empty())
    return TheoryStep::none(why);
  if (momentum < 1)
    return TheoryStep::of(std::min(*delta / (20 * facts.L_quadratic_mean()), momentum / (7 * facts.L)),
                          "EF21-SGDM, Fatkhullin et al. 2023, theorem 3");
  const ThreePoints points = ef21_points(*delta);
  return TheoryStep::of(three_point_step(facts, points.A, points.B), "EF21, Richtarik et al. 2021, theorem 1");
}

TheoryStep ef_bv(const TheoryFacts& facts, double lambda, double nu) {
  const Contract& contract = facts.contracts.front();
  if (const std::string why = unmet(facts, Gradients::full); !why.empty()) return TheoryStep::none(why);
  // E|x - s C(x)|^2 <= rate(s)|x|^2, and the same rate for the mean of n messages, because a random bias may be equal for all.
  double r = 1, r_av = 1;
  if (contract.omega) {
    r = (1 - lambda) * (1 - lambda) + lambda * lambda * *contract.omega;
    r_av = (1 - nu) * (1 - nu) + nu * nu * *contract.omega * facts.largest_weight();
  } else if (contract.delta) {
    const double eta = std::sqrt(1 - *contract.delta);
    r = std::pow(1 - lambda + lambda * eta, 2);
    r_av = std::pow(std::abs(1 - nu) + nu * eta, 2);
  } else {
    return TheoryStep::none("the theorem needs a contraction or an unbiased operator");
  }
  if (r >= 1)
    return TheoryStep::none("the theorem needs a lambda with which the shifts come nearer to the gradients: it must be below 2/(1+omega)");
  const char* theorem = "EF-BV, Condat et al. 2022, theorem 1";
  if (r_av == 0) return TheoryStep::of(1 / facts.L, theorem);
  // sqrt(r) s tends to sqrt(1/2) for r -> 0.
  const double root_r_s = std::sqrt((1 + r) / 2) - std::sqrt(r);
  return TheoryStep::of(1 / (facts.L + facts.L_quadratic_mean() * std::sqrt(r_av) / root_r_s), theorem);
}

TheoryStep error_feedback(const TheoryFacts& facts) {
  if (const std::string why = unmet(facts, Gradients::bounded_noise); !why.empty()) return TheoryStep::none(why);
  double rest = 1;  // product of 1 - delta over all operators in sequence
  bool is_contraction = true;
  for (const Contract& contract : facts.contracts) {
    if (is_lossless(contract)) return TheoryStep::of(1 / facts.L, "gradient descent: nothing is lost");
    is_contraction = is_contraction && contract.delta.has_value();
    rest *= 1 - contract.delta.value_or(0);
  }
  const bool is_absolute = std::ranges::all_of(facts.contracts, [](const Contract& contract) { return contract.kappa.has_value(); });
  if (is_absolute && facts.clients_are_convex)
    return TheoryStep::of(1 / (4 * facts.L_max()), "error feedback, absolute operator, Sahu et al. 2021, theorems 4 and 5");
  if (is_absolute) return TheoryStep::of(1 / (2 * facts.L_max()), "error feedback, absolute operator, Sahu et al. 2021, theorem 6");
  if (!is_contraction || rest >= 1)
    return TheoryStep::none("the theorem needs an operator that is absolute (kappa) or a contraction (delta)");
  const double share = rest > 0 ? std::min(1.0, (1 - rest) / (2 * std::sqrt(rest))) : 1.0;
  return TheoryStep::of(share / (2 * facts.L_max()), "error feedback, contraction, Sahu et al. 2021, theorem 7");
}

TheoryStep tight(const TheoryFacts& facts) {
  if (const std::string why = unmet(facts, Gradients::full); !why.empty()) return TheoryStep::none(why);
  const Contract& contract = facts.contracts.front();
  if (!contract.delta || contract.delta_holds != Contract::Holds::pointwise)
    return TheoryStep::none("the tight step needs a contraction that holds for every message, such as top_k");
  if (!(facts.client_mu > 0)) return TheoryStep::none("the tight step needs strongly convex clients: use model.l2 > 0");
  double sum = 0, difference = 0;
  for (std::size_t i = 0; i < facts.L_i.size(); ++i) {
    sum += facts.weights[i] * (facts.L_i[i] + facts.client_mu);
    difference += facts.weights[i] * (facts.L_i[i] - facts.client_mu);
  }
  const double s = std::sqrt(1 - *contract.delta), slow = difference / sum * (1 - s);
  TheoryStep step = TheoryStep::of(2 * (1 - s) / ((1 + s) * sum), "tight step of EF and EF21, Thomsen, Taylor, Dieuleveut 2025 and 2026");
  step.rate = (slow + std::sqrt(slow * slow + 4 * s)) / 2;
  return step;
}

}  // namespace theory
}  // namespace fl
