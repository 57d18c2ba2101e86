// Methods as plain loops over std::vector<double>: the specification with which a run is compared. Only gradients come from the library.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "clients/learning/oracle.hpp"
#include "tests/support/run_scenario.hpp"

namespace fl::test {

using Vector = std::vector<double>;

inline Vector copy(std::span<const double> v) { return {v.begin(), v.end()}; }

// Computes y += a x.
inline void add(double a, const Vector& x, Vector& y) {
  for (std::size_t j = 0; j < y.size(); ++j) y[j] += a * x[j];
}
inline Vector minus(Vector a, const Vector& b) {
  add(-1, b, a);
  return a;
}
inline double norm_sq(const Vector& v) { return std::inner_product(v.begin(), v.end(), v.begin(), 0.0); }
inline double distance_sq(const Vector& a, const Vector& b) { return norm_sq(minus(a, b)); }

// Returns the largest difference over the largest entry of b; infinite if a difference is not a number.
inline double relative_distance(const Vector& a, const Vector& b) {
  double difference = 0, largest = 0;
  for (std::size_t j = 0; j < b.size(); ++j) {
    if (std::isnan(a[j] - b[j])) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, std::fabs(a[j] - b[j]));
    largest = std::max(largest, std::fabs(b[j]));
  }
  return difference == 0 ? 0 : difference / largest;
}

// Returns the k entries of largest magnitude; among equal entries the lower index comes first.
inline Vector top_k(const Vector& v, std::size_t k) {
  std::vector<std::size_t> order(v.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&v](std::size_t a, std::size_t b) { return std::fabs(v[a]) > std::fabs(v[b]); });
  Vector kept(v.size(), 0.0);
  for (std::size_t i = 0; i < k; ++i) kept[order[i]] = v[order[i]];
  return kept;
}

// Computes clients' gradients of a run's problem, on the samples that the run itself takes (seed 1).
class ClientGradients {
 public:
  explicit ClientGradients(OneRun<double>& run, std::int64_t batch = 0)
      : exec_(run.pool().exec(0)),
        oracle_(run.problem().model(), run.problem().shards(), SamplingOptions{.batch = batch, .replacement = true, .sample_file = ""}, 1,
                1) {}

  Vector operator()(const Vector& x, std::uint32_t client, const Sample& sample = {.full = true}) const {
    Vector g(x.size());
    oracle_.gradient(exec_, {x.data(), nullptr, 1, x.size(), x.size()}, std::span(&client, 1), sample,
                     {g.data(), nullptr, 1, x.size(), x.size()}, nullptr);
    return g;
  }

 private:
  const Exec& exec_;
  GradientOracle<double> oracle_;
};

// Returns client `i`'s state in a slot.
inline Vector state_of(OneRun<double>& run, const std::string& slot, std::uint32_t i) { return copy(run->clients().of_client(slot, i)); }

// Returns sum_i w_i v_i over all clients' vectors of a slot.
inline Vector mean_state(OneRun<double>& run, const std::string& slot) {
  const std::vector<double>& weights = run.problem().weights();
  Vector mean(run.problem().P(), 0.0);
  for (std::uint32_t i = 0; i < weights.size(); ++i) add(weights[i], state_of(run, slot, i), mean);
  return mean;
}

}  // namespace fl::test
