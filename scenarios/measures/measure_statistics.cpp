#include "scenarios/measures/measure_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fl_core/config/key_error.hpp"
#include "fl_core/data/interactions.hpp"

namespace fl {

namespace {

constexpr std::size_t kPieceOfUpdate = 4096;  // entries

// `sorted` at place p (n - 1).
double percentile(const std::vector<double>& sorted, double p) {
  const double place = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

// R. W. Floyd's sample of `count` numbers below `bound`, without repetition.
std::vector<std::size_t> sample_below(std::size_t bound, std::size_t count, RandomSequence& random) {
  std::vector<std::size_t> chosen;
  for (std::size_t last = bound - count; last < bound; ++last) {
    const auto candidate = static_cast<std::size_t>(random.below(last + 1));
    chosen.push_back(std::ranges::find(chosen, candidate) == chosen.end() ? candidate : last);
  }
  return chosen;
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  const auto n = static_cast<double>(values.size());
  Spread spread{.mean = std::accumulate(values.begin(), values.end(), 0.0) / n,
                .p10 = percentile(values, 0.1),
                .p50 = percentile(values, 0.5),
                .p90 = percentile(values, 0.9),
                .smallest = values.front(),
                .deviation = 0};
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.deviation = std::sqrt(squares / n);
  return spread;
}

RankingQuality quality_of(std::span<const std::size_t> ranks) {
  RankingQuality sum;
  for (const std::size_t rank : ranks) {
    if (rank > kRankingDepth) continue;
    sum.hit_rate += 1;
    sum.ndcg += 1 / std::log2(1 + static_cast<double>(rank));
  }
  const auto n = static_cast<double>(ranks.size());
  return {sum.hit_rate / n, sum.ndcg / n};
}

template <class T>
RankingTask<T>::RankingTask(const Dataset<T>& train, const Dataset<T>& test, std::uint64_t seed) : begin_{0} {
  if (train.vocabulary.num_users == 0 || test.vocabulary.num_users != train.vocabulary.num_users ||
      test.vocabulary.size != train.vocabulary.size)
    throw key_error("evaluate.ranking_every", "data set \"" + train.name + "\" holds no ratings of items by users");
  Interactions met(train.vocabulary.num_users, train.num_items());
  met.add(train);
  met.add(test);
  std::vector<std::int32_t> tokens;
  const auto add = [&tokens](std::int32_t user, std::int32_t item) { tokens.insert(tokens.end(), {user, item}); };
  for (std::uint32_t row = 0; row < test.num_rows; ++row) {
    const std::int32_t user = test.tokens[2 * row];
    add(user, test.tokens[2 * row + 1]);
    RandomSequence random(seed, Purpose::ranking, row);
    const std::size_t unmet = met.num_unmet(static_cast<std::size_t>(user));
    for (const std::size_t k : sample_below(unmet, std::min(unmet, kRankingNegatives), random))
      add(user, static_cast<std::int32_t>(train.vocabulary.num_users) + met.unmet(static_cast<std::size_t>(user), k));
    begin_.push_back(tokens.size() / 2);
  }
  candidates_.name = test.name;
  candidates_.num_rows = begin_.back();
  candidates_.num_features = 2;
  candidates_.vocabulary.num_users = train.vocabulary.num_users;
  candidates_.vocabulary.size = train.vocabulary.size;
  candidates_.tokens.resize_discard(tokens.size());
  std::ranges::copy(tokens, candidates_.tokens.begin());
}

template <class T>
RankingQuality RankingTask<T>::measure(const Model<T>& model, std::span<const T> x, ThreadPool& pool) const {
  if (model.num_outputs() != 1)
    throw key_error("evaluate.ranking_every", "the model gives " + std::to_string(model.num_outputs()) +
                                                  " numbers for a row where one score is needed; use ncf, or a network with one output");
  std::vector<std::size_t> ranks(begin_.size() - 1);
  pool.parallel_for(static_cast<std::uint32_t>(ranks.size()), [&](std::uint32_t i, const Exec& exec) {
    std::vector<std::uint32_t> rows(begin_[i + 1] - begin_[i]);
    std::iota(rows.begin(), rows.end(), static_cast<std::uint32_t>(begin_[i]));
    std::vector<T> score(rows.size());
    model.outputs(exec, x.data(), candidates_, rows, score.data());
    ranks[i] = 1 + static_cast<std::size_t>(std::count_if(score.begin() + 1, score.end(), [&](T other) { return !(other < score[0]); }));
  });
  return quality_of(ranks);
}

template <class T>
UpdateStatistics update_statistics(BatchView<const T> updates, std::span<const double> weights, ThreadPool& pool) {
  struct Sums {
    double squares = 0, of_mean = 0, variance = 0;
  };
  const std::size_t P = updates.P;
  std::vector<Sums> sums((P + kPieceOfUpdate - 1) / kPieceOfUpdate);
  pool.parallel_for(static_cast<std::uint32_t>(sums.size()), [&](std::uint32_t piece, const Exec&) {
    const std::size_t first = piece * kPieceOfUpdate, count = std::min(kPieceOfUpdate, P - first);
    std::vector<double> mean(count, 0.0);
    for (std::uint32_t i = 0; i < updates.K; ++i)
      for (std::size_t j = 0; j < count; ++j) mean[j] += weights[i] * static_cast<double>(updates.row(i)[first + j]);
    Sums& sum = sums[piece];
    for (const double d : mean) sum.of_mean += d * d;
    for (std::uint32_t i = 0; i < updates.K; ++i) {
      double squares = 0, variance = 0;
      for (std::size_t j = 0; j < count; ++j) {
        const auto d = static_cast<double>(updates.row(i)[first + j]);
        squares += d * d;
        variance += (d - mean[j]) * (d - mean[j]);
      }
      sum.squares += weights[i] * squares;
      sum.variance += weights[i] * variance;
    }
  });
  Sums total;
  for (const Sums& sum : sums) {
    total.squares += sum.squares;
    total.of_mean += sum.of_mean;
    total.variance += sum.variance;
  }
  return {total.squares / total.of_mean, total.variance};
}

template UpdateStatistics update_statistics(BatchView<const float>, std::span<const double>, ThreadPool&);
template UpdateStatistics update_statistics(BatchView<const double>, std::span<const double>, ThreadPool&);
template class RankingTask<float>;
template class RankingTask<double>;

}  // namespace fl
