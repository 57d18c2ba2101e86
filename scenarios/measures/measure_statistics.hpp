// Measures of federated learning beyond losses: spread over clients, quality of rankings, and how unlike updates are.
// docs/maths.md has their formulas and sources.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "clients/learning/model.hpp"
#include "fl_core/memory/thread_pool.hpp"
#include "scenarios/measures/measure.hpp"

namespace fl {

// The spread of one number per client. At least one value.
[[nodiscard]] FL_API Spread spread_of(std::vector<double> values);

inline constexpr std::size_t kRankingNegatives = 99, kRankingDepth = 10;

// Returns the ranking quality for these ranks, 1 = first.
[[nodiscard]] FL_API RankingQuality quality_of(std::span<const std::size_t> ranks);

// Each test row's item among 99 others that its user has met neither in the training nor in the test set (all of them when there are
// fewer), drawn by (seed, test row): the same for every model. An item with an equal score comes before the row's own, so that a model
// that tells nothing apart finds nothing; so does a score that is not a number.
template <class T>
class RankingTask {
 public:
  // Throws ConfigError when the data are no ratings.
  RankingTask(const Dataset<T>& train, const Dataset<T>& test, std::uint64_t seed);
  // Throws ConfigError for a model that does not give one number per row.
  [[nodiscard]] RankingQuality measure(const Model<T>& model, std::span<const T> x, ThreadPool& pool) const;
  // For tests: the pairs that are scored, and where those of each test row begin, its own first.
  [[nodiscard]] const Dataset<T>& candidates() const { return candidates_; }
  [[nodiscard]] std::span<const std::size_t> begins() const { return begin_; }

 private:
  Dataset<T> candidates_;
  std::vector<std::size_t> begin_;  // [test rows + 1]
};

// Statistics of updates d_i with weights p_i that sum to 1, where d = sum p_i d_i.
struct UpdateStatistics {
  double dissimilarity = 0;  // sum p_i |d_i|^2 / |d|^2
  double variance = 0;       // sum p_i |d_i - d|^2
};
// updates [M,P]. In double, over pieces of fixed size, so that threads do not matter; the variance from differences, so that nothing
// cancels when clients are alike.
template <class T>
[[nodiscard]] UpdateStatistics update_statistics(BatchView<const T> updates, std::span<const double> weights, ThreadPool& pool);

extern template class RankingTask<float>;
extern template class RankingTask<double>;

}  // namespace fl
