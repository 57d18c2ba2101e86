// Every client in every round, with its weight w_i.
#include "server/participation.hpp"

namespace fl {
namespace {

class FullParticipation final : public Participation {
 public:
  explicit FullParticipation(const NoOptions&) {}
  [[nodiscard]] std::size_t cohort_size(std::size_t num_clients) const override { return num_clients; }
  void sample(std::uint32_t, std::uint64_t, std::span<const double> weights, RoundPlan& plan) const override {
    if (plan.cohort.size() != weights.size()) {
      plan.cohort.resize(weights.size());
      for (std::size_t i = 0; i < weights.size(); ++i) plan.cohort[i] = static_cast<std::uint32_t>(i);
    }
    // The last round has moved the weights of clients whose messages did not count to the others.
    plan.cohort_weight.assign(weights.begin(), weights.end());
    plan.population_weight = plan.cohort_weight;
  }
};

FL_REGISTER_PARTICIPATION(FullParticipation, NoOptions, "full", "every client in every round", "");

}  // namespace
}  // namespace fl
