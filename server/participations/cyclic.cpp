// M clients at a time, in a fixed order that goes round: round r = 1, 2, ... has those at places (r-1) M .. r M - 1, counted modulo N.
//
// Every N rounds each client takes part M times. Unbiased: w_i N/M, whose mean over any N rounds is w_i; nothing is random once the order
// is.
#include <algorithm>
#include <numeric>

#include "server/participation.hpp"

namespace fl {
namespace {

enum class CyclicOrder { by_number, shuffled };
struct CyclicOptions : CohortOptions {
  CyclicOrder order = CyclicOrder::by_number;
  CohortEstimate estimate = CohortEstimate::normalised;
};
void describe(Schema& s, CyclicOptions& o) {
  describe(s, static_cast<CohortOptions&>(o));
  s.choice("order", o.order, {{CyclicOrder::by_number, "by_number"}, {CyclicOrder::shuffled, "shuffled"}},
           "by the clients' numbers, or shuffled once");
  describe_estimate(s, o.estimate);
}

class CyclicParticipation final : public Participation {
 public:
  explicit CyclicParticipation(const CyclicOptions& o) : options_(o) {}
  [[nodiscard]] std::size_t cohort_size(std::size_t num_clients) const override { return size_of_cohort(options_, num_clients); }
  [[nodiscard]] bool over_select(double factor) override { return options_.factor = factor, true; }
  void sample(std::uint32_t round, std::uint64_t seed, std::span<const double> weights, RoundPlan& plan) const override {
    const std::size_t N = weights.size(), M = cohort_size(N);
    const bool is_shuffled = options_.order == CyclicOrder::shuffled;
    if (is_shuffled) shuffle(N, seed);
    plan.cohort.clear();
    for (std::size_t place = (round - 1) * M; place < round * M; ++place)
      plan.cohort.push_back(is_shuffled ? order_[place % N] : static_cast<std::uint32_t>(place % N));
    std::ranges::sort(plan.cohort);
    weigh(weights, options_.estimate, static_cast<double>(N) / static_cast<double>(M), plan);
  }

 private:
  // Once: a round would be as long as there are clients.
  void shuffle(std::size_t N, std::uint64_t seed) const {
    if (order_.size() == N && seed_ == seed) return;
    order_.resize(N);
    std::iota(order_.begin(), order_.end(), 0u);
    RandomSequence(seed, Purpose::participation).shuffle(order_.begin(), order_.end());
    seed_ = seed;
  }
  CyclicOptions options_;
  mutable std::vector<std::uint32_t> order_;  // of seed_
  mutable std::uint64_t seed_ = 0;
};

FL_REGISTER_PARTICIPATION(CyclicParticipation, CyclicOptions, "cyclic", "the clients take turns in a fixed order", "");

}  // namespace
}  // namespace fl
