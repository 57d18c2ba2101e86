// M draws with replacement, client i with probability w_i (its share of the rows, unless weights = "uniform").
//
// A client that is drawn c times takes part once. Unbiased: its weight is c/M, since E[c] = M w_i. Normalised: w_i over their sum among
// those drawn, which favours large clients twice. The cohort has at most M clients.
// Source: Li, Huang, Yang, Wang, Zhang, "On the Convergence of FedAvg on Non-IID Data", ICLR 2020 (scheme I).
#include <algorithm>

#include "server/participation.hpp"

namespace fl {
namespace {

struct ByDataOptions : CohortOptions {
  CohortEstimate estimate = CohortEstimate::unbiased;
};
void describe(Schema& s, ByDataOptions& o) {
  describe(s, static_cast<CohortOptions&>(o));
  describe_estimate(s, o.estimate);
}

class ByDataParticipation final : public Participation {
 public:
  explicit ByDataParticipation(const ByDataOptions& o) : options_(o) {}
  [[nodiscard]] std::size_t cohort_size(std::size_t num_clients) const override { return size_of_cohort(options_, num_clients); }
  [[nodiscard]] bool over_select(double factor) override { return options_.factor = factor, true; }
  void sample(std::uint32_t round, std::uint64_t seed, std::span<const double> weights, RoundPlan& plan) const override {
    const std::size_t M = cohort_size(weights.size());
    RandomSequence random(seed, Purpose::participation, 0, round);
    std::vector<double> until;  // [N] w_0 + ... + w_i
    double sum = 0;
    for (const double w : weights) until.push_back(sum += w);
    std::vector<std::uint32_t> drawn;
    for (std::size_t m = 0; m < M; ++m) {
      const auto at = std::upper_bound(until.begin(), until.end(), random.uniform() * sum);
      drawn.push_back(static_cast<std::uint32_t>(std::min<std::ptrdiff_t>(at - until.begin(), std::ssize(until) - 1)));
    }
    std::ranges::sort(drawn);
    plan.cohort.clear();
    std::ranges::unique_copy(drawn, std::back_inserter(plan.cohort));
    weigh(weights, options_.estimate, 1, plan);
    if (options_.estimate == CohortEstimate::normalised) return;
    for (std::size_t k = 0; k < plan.cohort.size(); ++k)
      plan.cohort_weight[k] = static_cast<double>(std::ranges::count(drawn, plan.cohort[k])) / static_cast<double>(M);
  }

 private:
  ByDataOptions options_;
};

FL_REGISTER_PARTICIPATION(ByDataParticipation, ByDataOptions, "by_data", "clients drawn in proportion to their rows, with replacement",
                          "Li, Huang, Yang, Wang, Zhang, On the Convergence of FedAvg on Non-IID Data, ICLR 2020");

}  // namespace
}  // namespace fl
