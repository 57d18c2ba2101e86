// Selects the clients of a round and their weights.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fl_core/config/options.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/random/random.hpp"

namespace fl {

// The cohort of one round. Weights: f = sum_i w_i f_i over all clients.
//   cohort_weight      weights of the estimate of grad f from the cohort alone
// population_weight  w_i: weights of sums over all clients' state; only the cohort's part changes
// A round with an empty cohort is skipped: nothing is sent, and nothing changes.
struct RoundPlan {
  std::vector<std::uint32_t> cohort;  // ascending ids
  std::vector<double> cohort_weight, population_weight;
};

class FL_API Participation {
 public:
  // Returns the path of a file that a scenario names.
  using FindFile = std::function<std::string(const std::string&)>;

  virtual ~Participation() = default;
  // Prepares for N clients. Called once, before all other functions. Throws ConfigError if the options cannot be satisfied.
  virtual void open(std::size_t num_clients, const FindFile& find) {
    (void)num_clients;
    (void)find;
  }
  // Samples `factor` times the cohort, rounded up, and all clients at most. Returns false if this rule has no size to multiply.
  [[nodiscard]] virtual bool over_select(double factor) {
    (void)factor;
    return false;
  }
  // Returns the maximum cohort size.
  [[nodiscard]] virtual std::size_t cohort_size(std::size_t num_clients) const = 0;
  // Returns a cohort size that is almost never exceeded, for planning memory.
  [[nodiscard]] virtual std::size_t likely_cohort_size(std::size_t num_clients) const { return cohort_size(num_clients); }
  // Fills plan for a round; weights are w_i [N] and sum to 1.
  virtual void sample(std::uint32_t round, std::uint64_t seed, std::span<const double> weights, RoundPlan& plan) const = 0;
};

// The weights with which a cohort S represents all clients:
//   normalised  w_i over their sum in S, as in FedAvg: weights sum to 1, but rounds are biased towards the participants
//   unbiased    w_i / (expected number of times that i is in S): sum_S cohort_weight_i g_i has the mean sum_i w_i g_i
enum class CohortEstimate { normalised, unbiased };
FL_API void describe_estimate(Schema& schema, CohortEstimate& estimate);

// M of N clients, as a number or a fraction.
struct CohortOptions {
  double fraction = 0.1;
  std::int64_t clients = 0;
  double factor = 1;  // of over-selection, which no scenario states
};
FL_API void describe(Schema& schema, CohortOptions& options);
// Returns the cohort size, at least 1. Throws ConfigError if it exceeds N.
[[nodiscard]] FL_API std::size_t size_of_cohort(const CohortOptions& options, std::size_t num_clients);

// Removes the members of the cohort whose entry in is_here [M] is 0. The others share their cohort weight in proportion.
FL_API void keep_present(std::span<const std::uint8_t> is_here, RoundPlan& plan);

// Fills population_weight, and cohort_weight with w_i over their sum, or w_i times `factor`.
FL_API void weigh(std::span<const double> weights, CohortEstimate estimate, double factor, RoundPlan& plan);

// Registers a participation. Participations have no device and no precision.
//   FL_REGISTER_PARTICIPATION(Uniform, UniformOptions, "uniform", "summary", "source");
#define FL_REGISTER_PARTICIPATION(Class, OptionsStruct, name, summary, source)                                           \
  static const bool FL_JOIN(participation_, __COUNTER__) = [] {                                                          \
    auto& registry = ::fl::Registry::instance();                                                                         \
    registry.describe({"participation", name, summary, source}, ::fl::Options::of<OptionsStruct>());                     \
    registry.add("participation", name, ::fl::Device::cpu, ::fl::Precision::float64,                                     \
                 ::fl::Factory<::fl::Participation>([](const ::fl::Options& o) -> std::unique_ptr<::fl::Participation> { \
                   return std::make_unique<Class>(o.as<OptionsStruct>());                                                \
                 }));                                                                                                    \
    return true;                                                                                                         \
  }()

}  // namespace fl
