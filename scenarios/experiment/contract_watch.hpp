// Checks the messages of a run against the contract of their operator. It sees only rounds whose messages are measured.
//
//   one message    A claim that holds for every draw is broken by one message: |C(p)-p| > sqrt(1-delta) |p| + r |p| or > kappa + r |p|,
//                  where r = 64 epsilon + 1e-12 allows for rounding in C(p), in the difference and in the norms. An omega of 0 is such a
//                  claim, because a mean of squares is 0 only if all of them are 0.
//   expectation    A claim in expectation is broken by evidence. With x_r = sum_i |C(p_i)-p_i|^2 / (B sum_i |p_i|^2) over the cohort of
//                  round r, B = omega or 1 - delta (for kappa x_r = mean_i |C(p_i)-p_i|^2 / kappa^2), the claim says E[x_r | p] <= 1.
//                  The inputs p are known before the round's draws. So for every bet b in [0,1] and every first round s the product of
//                  1 + b (x_r - 1) over r = s, s+1, ... is a nonnegative supermartingale that begins at 1, and so is the mean of these
//                  products over three bets and over s with weights 1/(s (s+1)). By Ville's inequality the probability that it ever
//                  exceeds 10^6 is at most 10^-6, for any distribution of the draws, even if all clients of a round draw alike. The
//                  claim counts as broken when the mean exceeds 10^6. Sources: J. Ville, "Etude critique de la notion de collectif",
//                  1939; I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting", J. R. Stat. Soc. B, 2024.
//
// The bias, which omega rules out, is not measured. The check leaves out messages that the operator did not make (dense ones) and inputs
// whose entries are close to subnormal numbers. Messages that the feedback silenced afterwards are checked as the operator made them.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "clients/host/message_measures.hpp"
#include "compressors/compressor.hpp"
#include "fl_core/state/archive.hpp"
#include "scenarios/results/broken_contracts.hpp"

namespace fl {

// Collects evidence that a nonnegative quantity has a conditional mean above 1.
class BettingTest {
 public:
  static constexpr double kEvidence = 1e6;  // inverse of the probability of a false accusation

  // Adds x of a round, whose measured value is `value`. Returns true when the evidence suffices.
  bool add(double x, double value, std::uint64_t round);
  // The period in which the evidence grew: its first round, and the mean of the values measured since then.
  struct Period {
    std::uint64_t since = 0;
    double mean = 0;
  };
  [[nodiscard]] Period period() const;
  void persist(Archive& archive);

 private:
  static constexpr std::array kBets = {1.0 / 16, 1.0 / 4, 1.0};
  struct Bet {
    double wealth = 0;  // mixture over all first rounds
    double growth = 1;  // since round `since`; restarts when it falls to 1 or below
    std::uint64_t since = 0, rounds = 0;
    double sum = 0;  // of the values since round `since`
  };
  std::array<Bet, kBets.size()> bets_{};
  std::uint64_t rounds_ = 0;
};

struct ContractWatchSettings {
  Contract contract{};
  std::function<double(const StepSizes&)> kappa_at;
  double rounding = 0;    // r in the head comment
  double least_norm = 0;  // smaller inputs are not checked against delta and omega
};

// Returns the settings for an operator on numbers of type T.
template <class T>
[[nodiscard]] ContractWatchSettings watch_of(const Compressor<T>& compressor, const Scope& scope) {
  using Limits = std::numeric_limits<T>;
  return {.contract = compressor.contract(scope),
          .kappa_at = [&compressor, &scope](const StepSizes& steps) { return compressor.kappa_at(scope, steps); },
          .rounding = 64 * static_cast<double>(Limits::epsilon()) + 1e-12,
          .least_norm = 1e6 * static_cast<double>(Limits::min()) * std::sqrt(static_cast<double>(scope.P))};
}

class FL_API ContractWatch {
 public:
  explicit ContractWatch(ContractWatchSettings settings) : settings_(std::move(settings)) {}

  // Checks the messages of a round with these step sizes.
  void see(std::uint64_t round, const StepSizes& steps, std::span<const OperatorError> messages);
  // Returns the broken claims, each once, in the order of Claim.
  [[nodiscard]] std::vector<BrokenContract> broken() const;
  void persist(Archive& archive);

 private:
  // Sums and maxima over a round's messages. The `relative` sums leave out inputs below the least norm.
  struct Seen {
    std::size_t count = 0;
    double error_sq = 0, relative_error_sq = 0, relative_input_sq = 0, input_sq = 0;
    double largest_error = 0, largest_ratio = 0;  // |C(p)-p|, |C(p)-p|^2 / |p|^2
    double excess_kappa = 0;                      // largest |C(p)-p| - r |p|
  };
  [[nodiscard]] Seen summary(std::span<const OperatorError> messages) const;
  void see_kappa(std::uint64_t round, const StepSizes& steps, const Seen& seen);
  void see_ratio(Claim claim, std::uint64_t round, double bound, double stated, bool in_expectation, const Seen& seen);
  void found(Claim claim, std::uint64_t round, std::uint64_t since, double measured, double stated);
  [[nodiscard]] bool is_broken(Claim claim) const { return broken_[static_cast<std::size_t>(claim)].has_value(); }

  ContractWatchSettings settings_;
  std::array<BettingTest, kNumClaims> tests_{};
  std::array<std::optional<BrokenContract>, kNumClaims> broken_{};
};

}  // namespace fl
