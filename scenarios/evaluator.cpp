#include "scenarios/evaluator.hpp"

#include <algorithm>
#include <limits>

#include "fl_core/norms.hpp"

namespace fl {

namespace {
constexpr std::size_t kRowsPerPiece = 4096;    // of a test set
constexpr std::uint32_t kClientsPerPass = 32;  // gradients held at a time
}  // namespace

template <class T>
double Evaluator<T>::train_loss(std::span<const T> x) {
  const auto& shards = problem_.shards();
  client_loss_.resize(shards.size());
  pool_.parallel_for(static_cast<std::uint32_t>(shards.size()), [&](std::uint32_t i, const Exec& exec) {
    client_loss_[i] =
        problem_.model().loss_sum(exec, x.data(), problem_.train(), shards[i], nullptr) / static_cast<double>(shards[i].size());
  });
  double loss = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) loss += problem_.weights()[i] * client_loss_[i];
  return loss + problem_.model().regulariser(x.data());
}

template <class T>
Accuracy Evaluator<T>::test(std::span<const T> x) {
  const Dataset<T>* data = problem_.test();
  const bool has_classes = problem_.train().num_classes > 0;
  if (data == nullptr) return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  const Shard& rows = problem_.test_rows();
  const auto pieces = static_cast<std::uint32_t>((rows.size() + kRowsPerPiece - 1) / kRowsPerPiece);
  std::vector<double> loss(pieces);
  std::vector<std::uint64_t> correct(pieces);
  pool_.parallel_for(pieces, [&](std::uint32_t piece, const Exec& exec) {
    const std::size_t first = piece * kRowsPerPiece;
    const std::span<const std::uint32_t> part = std::span(rows).subspan(first, std::min(kRowsPerPiece, rows.size() - first));
    loss[piece] = problem_.model().loss_sum(exec, x.data(), *data, part, has_classes ? &correct[piece] : nullptr);
  });
  double total = 0, right = 0;
  for (std::uint32_t piece = 0; piece < pieces; ++piece) {
    total += loss[piece];
    right += static_cast<double>(correct[piece]);
  }
  const auto m = static_cast<double>(rows.size());
  const double labels = m * static_cast<double>(data->labels_per_row());
  return {total / m, has_classes ? right / labels : std::numeric_limits<double>::quiet_NaN()};
}

// zeta^2 as sum_i w_i |g_i - g|^2 in two passes: the first finds g, so that nothing cancels when clients are alike.
template <class T>
GradientStatistics Evaluator<T>::gradient(std::span<const T> x) {
  const auto N = static_cast<std::uint32_t>(problem_.shards().size());
  const std::size_t P = x.size();
  gradients_.resize_discard(kClientsPerPass * P);
  mean_.resize_discard(P);
  std::fill(mean_.begin(), mean_.end(), 0.0);
  double zeta_sq = 0;
  std::vector<double> distance(kClientsPerPass);
  for (int pass = 0; pass < 2; ++pass) {
    for (std::uint32_t first = 0; first < N; first += kClientsPerPass) {
      const std::uint32_t count = std::min(kClientsPerPass, N - first);
      pool_.parallel_for(count, [&](std::uint32_t k, const Exec& exec) {
        const std::span<const std::uint32_t> rows = problem_.shards()[first + k];
        T* g = gradients_.data() + k * P;
        problem_.model().gradient(exec, shared_view(x.data(), 1, P), std::span(&rows, 1), {g, nullptr, 1, P, P}, nullptr);
        if (pass == 0) return;
        double sum = 0;
        for (std::size_t j = 0; j < P; ++j) sum += (static_cast<double>(g[j]) - mean_[j]) * (static_cast<double>(g[j]) - mean_[j]);
        distance[k] = sum;
      });
      for (std::uint32_t k = 0; k < count; ++k) {
        const double w = problem_.weights()[first + k];
        const T* g = gradients_.data() + k * P;
        if (pass == 1)
          zeta_sq += w * distance[k];
        else
          for (std::size_t j = 0; j < P; ++j) mean_[j] += w * static_cast<double>(g[j]);
      }
    }
  }
  return {sum_of_squares(mean_.data(), P), zeta_sq};
}

template <class T>
Spread Evaluator<T>::client_accuracy(std::span<const T> x) {
  const ClientRows<T>& own = problem_.client_rows();
  std::vector<double> accuracy(own.shards.size());
  pool_.parallel_for(static_cast<std::uint32_t>(accuracy.size()), [&](std::uint32_t i, const Exec& exec) {
    std::uint64_t correct = 0;
    (void)problem_.model().loss_sum(exec, x.data(), *own.data, own.shards[i], &correct);
    accuracy[i] = static_cast<double>(correct) / static_cast<double>(own.shards[i].size() * own.data->labels_per_row());
  });
  return spread_of(std::move(accuracy));
}

template <class T>
RankingQuality Evaluator<T>::ranking(std::span<const T> x, std::uint64_t seed) {
  if (!ranking_ || ranking_seed_ != seed) ranking_.emplace(problem_.train(), *problem_.test(), seed);
  ranking_seed_ = seed;
  return ranking_->measure(problem_.model(), x, pool_);
}

template class Evaluator<float>;
template class Evaluator<double>;

}  // namespace fl
