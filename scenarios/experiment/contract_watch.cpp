#include "scenarios/experiment/contract_watch.hpp"

#include <algorithm>
#include <cmath>

namespace fl {

bool BettingTest::add(double x, double value, std::uint64_t round) {
  ++rounds_;
  const auto s = static_cast<double>(rounds_);
  double evidence = 0;
  for (std::size_t b = 0; b < kBets.size(); ++b) {
    const double factor = 1 + kBets[b] * (x - 1);
    Bet& bet = bets_[b];
    bet.wealth = (bet.wealth + 1 / (s * (s + 1))) * factor;
    evidence += bet.wealth / static_cast<double>(kBets.size());
    if (bet.rounds == 0 || bet.growth <= 1) bet = {.wealth = bet.wealth, .growth = 1, .since = round, .rounds = 0, .sum = 0};
    bet.growth *= factor;
    ++bet.rounds;
    bet.sum += value;
  }
  return evidence >= kEvidence;
}

BettingTest::Period BettingTest::period() const {
  const Bet& best = *std::ranges::max_element(bets_, {}, &Bet::wealth);
  return {best.since, best.sum / static_cast<double>(std::max<std::uint64_t>(best.rounds, 1))};
}

void BettingTest::persist(Archive& archive) {
  archive.value(rounds_);
  for (Bet& bet : bets_) {
    archive.value(bet.wealth);
    archive.value(bet.growth);
    archive.value(bet.since);
    archive.value(bet.rounds);
    archive.value(bet.sum);
  }
}

ContractWatch::Seen ContractWatch::summary(std::span<const OperatorError> messages) const {
  Seen seen;
  for (const OperatorError& message : messages) {
    if (!std::isfinite(message.input) || !std::isfinite(message.error)) continue;
    ++seen.count;
    seen.error_sq += message.error;
    seen.input_sq += message.input;
    const double error = std::sqrt(message.error), input = std::sqrt(message.input);
    seen.largest_error = std::max(seen.largest_error, error);
    seen.excess_kappa = std::max(seen.excess_kappa, error - settings_.rounding * input);
    if (!(input > settings_.least_norm)) continue;
    seen.relative_error_sq += message.error;
    seen.relative_input_sq += message.input;
    seen.largest_ratio = std::max(seen.largest_ratio, message.error / message.input);
  }
  return seen;
}

void ContractWatch::see(std::uint64_t round, const StepSizes& steps, std::span<const OperatorError> messages) {
  const Contract& contract = settings_.contract;
  if (!contract.kappa && !contract.delta && !contract.omega) return;
  const Seen seen = summary(messages);
  if (seen.count == 0) return;
  if (contract.kappa) see_kappa(round, steps, seen);
  if (!(seen.relative_input_sq > 0)) return;
  if (contract.delta)
    see_ratio(Claim::delta, round, std::max(0.0, 1 - *contract.delta), *contract.delta,
              contract.delta_holds == Contract::Holds::in_expectation, seen);
  if (contract.omega) see_ratio(Claim::omega, round, *contract.omega, *contract.omega, *contract.omega > 0, seen);
}

void ContractWatch::see_kappa(std::uint64_t round, const StepSizes& steps, const Seen& seen) {
  if (is_broken(Claim::kappa)) return;
  const double kappa = settings_.kappa_at(steps);
  const auto count = static_cast<double>(seen.count);
  if (settings_.contract.kappa_holds == Contract::Holds::pointwise || kappa <= 0) {
    if (seen.excess_kappa > kappa) found(Claim::kappa, round, 0, seen.largest_error, kappa);
    return;
  }
  BettingTest& test = tests_[static_cast<std::size_t>(Claim::kappa)];
  const double bound = kappa + settings_.rounding * std::sqrt(seen.input_sq / count), mean = seen.error_sq / count;
  if (!test.add(mean / (bound * bound), mean, round)) return;
  const BettingTest::Period period = test.period();
  found(Claim::kappa, round, period.since, std::sqrt(period.mean), kappa);
}

// Checks |C(p)-p|^2 <= bound |p|^2.
void ContractWatch::see_ratio(Claim claim, std::uint64_t round, double bound, double stated, bool in_expectation, const Seen& seen) {
  if (is_broken(claim)) return;
  const double root = std::sqrt(bound) + settings_.rounding;
  const auto value_of = [claim](double ratio) { return claim == Claim::delta ? 1 - ratio : ratio; };
  if (!in_expectation) {
    if (seen.largest_ratio > root * root) found(claim, round, 0, value_of(seen.largest_ratio), stated);
    return;
  }
  BettingTest& test = tests_[static_cast<std::size_t>(claim)];
  const double ratio = seen.relative_error_sq / seen.relative_input_sq;
  if (!test.add(ratio / (root * root), ratio, round)) return;
  const BettingTest::Period period = test.period();
  found(claim, round, period.since, value_of(period.mean), stated);
}

void ContractWatch::found(Claim claim, std::uint64_t round, std::uint64_t since, double measured, double stated) {
  broken_[static_cast<std::size_t>(claim)] = BrokenContract{.claim = claim,
                                                            .round = round,
                                                            .since = since,
                                                            .measured = measured,
                                                            .stated = stated,
                                                            .has_domain = !settings_.contract.domain.is_everywhere()};
}

std::vector<BrokenContract> ContractWatch::broken() const {
  std::vector<BrokenContract> all;
  for (const std::optional<BrokenContract>& one : broken_)
    if (one) all.push_back(*one);
  return all;
}

void ContractWatch::persist(Archive& archive) {
  archive.section("contract");
  for (BettingTest& test : tests_) test.persist(archive);
  for (std::uint32_t c = 0; c < kNumClaims; ++c) {
    bool is_broken = broken_[c].has_value();
    archive.value(is_broken);
    if (!is_broken) {
      broken_[c].reset();
      continue;
    }
    if (!broken_[c]) broken_[c] = BrokenContract{.claim = static_cast<Claim>(c)};
    BrokenContract& broken = *broken_[c];
    archive.value(broken.round);
    archive.value(broken.since);
    archive.value(broken.measured);
    archive.value(broken.stated);
    archive.value(broken.has_domain);
  }
}

}  // namespace fl
