// Full and uniform participation.
#include "server/participation.hpp"

#include <algorithm>
#include <cmath>

#include "fl_core/registry.hpp"

namespace fl {

namespace {

class FullParticipation final : public Participation {
 public:
  explicit FullParticipation(const NoOptions&) {}
  [[nodiscard]] std::size_t cohort_size(std::size_t num_clients) const override { return num_clients; }
  void sample(std::uint32_t, std::uint64_t, std::span<const double> weights, RoundPlan& plan) const override {
    if (plan.cohort.size() == weights.size()) return;  // the same every round
    plan.cohort.resize(weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) plan.cohort[i] = static_cast<std::uint32_t>(i);
    plan.cohort_weight.assign(weights.begin(), weights.end());
    plan.population_weight = plan.cohort_weight;
  }
};

struct UniformOptions {
  double fraction = 0.1;
  std::int64_t clients = 0;
  enum class Estimate { normalised, unbiased } estimate = Estimate::normalised;
};
void describe(Schema& s, UniformOptions& o) {
  s.field("fraction", o.fraction, "fraction of the clients in a round, at least one client").above(0).at_most(1);
  s.field("clients", o.clients, "clients in a round; 0 takes the fraction").at_least(0);
  s.choice("estimate", o.estimate, {{UniformOptions::Estimate::normalised, "normalised"}, {UniformOptions::Estimate::unbiased, "unbiased"}},
           "weights of the cohort: w_i over their sum (FedAvg), or w_i N/M (unbiased)");
}

// M of N clients without replacement, every subset alike.
class UniformParticipation final : public Participation {
 public:
  explicit UniformParticipation(const UniformOptions& o) : options_(o) {}
  [[nodiscard]] std::size_t cohort_size(std::size_t num_clients) const override {
    if (options_.clients > 0) {
      if (static_cast<std::size_t>(options_.clients) > num_clients)
        throw ConfigError("participation.clients: " + std::to_string(options_.clients) + " of " + std::to_string(num_clients) +
                          " clients cannot be sampled without replacement");
      return static_cast<std::size_t>(options_.clients);
    }
    return std::max<std::size_t>(1, static_cast<std::size_t>(std::llround(options_.fraction * static_cast<double>(num_clients))));
  }
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
    plan.population_weight.clear();
    double sum = 0;
    for (const std::uint32_t i : plan.cohort) {
      plan.population_weight.push_back(weights[i]);
      sum += weights[i];
    }
    const double factor =
        options_.estimate == UniformOptions::Estimate::normalised ? 1 / sum : static_cast<double>(N) / static_cast<double>(M);
    plan.cohort_weight.clear();
    for (const double w : plan.population_weight) plan.cohort_weight.push_back(w * factor);
  }

 private:
  UniformOptions options_;
};

template <class Part, class OptionsStruct>
bool register_participation(const char* name, const char* summary) {
  auto& registry = Registry::instance();
  registry.describe({"participation", name, summary, ""}, Options::of<OptionsStruct>());
  registry.add("participation", name, Device::cpu, Precision::float64,
               Factory<Participation>(
                   [](const Options& o) -> std::unique_ptr<Participation> { return std::make_unique<Part>(o.as<OptionsStruct>()); }));
  return true;
}
const bool kFull = register_participation<FullParticipation, NoOptions>("full", "every client in every round");
const bool kUniform = register_participation<UniformParticipation, UniformOptions>("uniform", "a uniform sample without replacement");

}  // namespace
}  // namespace fl
