// M of N clients without replacement, every subset alike. Unbiased: a client is in M/N of the rounds, so its weight is w_i N/M.
// Source: McMahan, Moore, Ramage, Hampson, Aguera y Arcas, "Communication-Efficient Learning of Deep Networks from Decentralized Data",
// AISTATS 2017 (normalised by the rows of the cohort).
#include <algorithm>

#include "server/participation.hpp"

namespace fl {
namespace {

struct UniformOptions : CohortOptions {
  CohortEstimate estimate = CohortEstimate::normalised;
};
void describe(Schema& s, UniformOptions& o) {
  describe(s, static_cast<CohortOptions&>(o));
  describe_estimate(s, o.estimate);
}

class UniformParticipation final : public Participation {
 public:
  explicit UniformParticipation(const UniformOptions& o) : options_(o) {}
  [[nodiscard]] std::size_t cohort_size(std::size_t num_clients) const override { return size_of_cohort(options_, num_clients); }
  [[nodiscard]] bool over_select(double factor) override { return options_.factor = factor, true; }
  void sample(std::uint32_t round, std::uint64_t seed, std::span<const double> weights, RoundPlan& plan) const override {
    const std::size_t N = weights.size(), M = cohort_size(N);
    RandomSequence random(seed, Purpose::participation, 0, round);
    // Floyd's algorithm with a sorted set: O(M log M), independent of N.
    plan.cohort.clear();
    for (std::size_t last = N - M; last < N; ++last) {
      auto candidate = static_cast<std::uint32_t>(random.below(last + 1));
      auto at = std::lower_bound(plan.cohort.begin(), plan.cohort.end(), candidate);
      if (at != plan.cohort.end() && *at == candidate) {
        candidate = static_cast<std::uint32_t>(last);
        at = plan.cohort.end();
      }
      plan.cohort.insert(at, candidate);
    }
    weigh(weights, options_.estimate, static_cast<double>(N) / static_cast<double>(M), plan);
  }

 private:
  UniformOptions options_;
};

FL_REGISTER_PARTICIPATION(UniformParticipation, UniformOptions, "uniform", "a uniform sample without replacement",
                          "McMahan et al., AISTATS 2017");

}  // namespace
}  // namespace fl
