// Each client takes part with probability p, by itself: the size of the cohort varies, and a round in which nobody answers is skipped.
// Unbiased: w_i / p, where a skipped round counts as an estimate of zero.
#include <algorithm>
#include <cmath>

#include "server/participation.hpp"

namespace fl {
namespace {

struct PoissonOptions {
  double p = 0.1;
  CohortEstimate estimate = CohortEstimate::normalised;
};
void describe(Schema& s, PoissonOptions& o) {
  s.field("p", o.p, "probability that a client takes part in a round").above(0).at_most(1);
  describe_estimate(s, o.estimate);
}

class PoissonParticipation final : public Participation {
 public:
  explicit PoissonParticipation(const PoissonOptions& o) : options_(o) {}
  [[nodiscard]] std::size_t cohort_size(std::size_t num_clients) const override { return num_clients; }
  // Mean and six standard deviations, exceeded in one round of 10^9 (kFew: where the binomial law is far from normal).
  [[nodiscard]] std::size_t likely_cohort_size(std::size_t num_clients) const override {
    constexpr double kDeviations = 6, kFew = 10;
    const double mean = options_.p * static_cast<double>(num_clients);
    return std::min(num_clients, static_cast<std::size_t>(mean + kDeviations * std::sqrt(mean) + kFew));
  }
  void sample(std::uint32_t round, std::uint64_t seed, std::span<const double> weights, RoundPlan& plan) const override {
    RandomSequence random(seed, Purpose::participation, 0, round);
    plan.cohort.clear();
    for (std::uint32_t i = 0; i < weights.size(); ++i)
      if (random.uniform() < options_.p) plan.cohort.push_back(i);
    weigh(weights, options_.estimate, 1 / options_.p, plan);
  }

 private:
  PoissonOptions options_;
};

FL_REGISTER_PARTICIPATION(PoissonParticipation, PoissonOptions, "poisson",
                          "each client takes part with probability p, independently; empty rounds are skipped", "");

}  // namespace
}  // namespace fl
