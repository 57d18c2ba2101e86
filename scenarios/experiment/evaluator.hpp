// What is reported of a model: losses, accuracy, the global gradient and heterogeneity. In double, in a fixed order over clients.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "clients/device_evaluation.hpp"
#include "clients/device_training.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/memory/thread_pool.hpp"
#include "fl_core/ops/row_sums.hpp"
#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/measures/measure_statistics.hpp"

namespace fl {

template <class T>
class Evaluator {
 public:
  // On `device` where the model and the data have a form for it.
  Evaluator(const FederatedProblem<T>& problem, ThreadPool& pool, Device device = Device::cpu);
  ~Evaluator();

  // f(x), regulariser included.
  [[nodiscard]] double train_loss(std::span<const T> x);
  // Mean loss on the test set without regulariser, and the fraction classified right; of the training set when there is no test set.
  [[nodiscard]] Accuracy test(std::span<const T> x);
  [[nodiscard]] GradientStatistics gradient(std::span<const T> x);
  // Accuracy on each client's own rows (FederatedProblem::client_rows), over the clients that have some; where `adapt` is given, of each
  // client's own model, which adapt(client, a copy of x) makes of x.
  using Adapt = std::function<void(std::uint32_t client, T* x)>;
  [[nodiscard]] Spread client_accuracy(std::span<const T> x, const Adapt& adapt = {});
  // On the test set. Throws ConfigError when there are no ratings to rank, or the model gives no single score.
  [[nodiscard]] RankingQuality ranking(std::span<const T> x, std::uint64_t seed);
  // What measuring takes of a GPU, data not included, if at all; a prediction where there is none.
  [[nodiscard]] std::uint64_t most_bytes_on_device(bool with_gradients) const;

 private:
  struct OnDevice;
  using Rows = std::span<const std::uint32_t>;
  struct Sums {
    double loss = 0;
    std::uint64_t correct = 0;
  };
  // Of each of the lists, at x.
  [[nodiscard]] std::vector<Sums> sums_of(const Dataset<T>& data, std::span<const Rows> lists, std::span<const T> x, bool counts);
  // The same of the clients' own models.
  [[nodiscard]] std::vector<Sums> sums_of_own(const ClientRows<T>& own, std::span<const Rows> lists, std::span<const T> x,
                                              const Adapt& adapt);
  void sum_on_device(DeviceEvaluation<T>& evaluation, std::span<const Rows> lists, std::span<const T> x, std::vector<Sums>& sums);
  // gradients_ [count,P] of clients from `first` on.
  void compute_gradients(std::span<const T> x, std::uint32_t first, std::uint32_t count);
  [[nodiscard]] const T* gradients_here(std::size_t entries);

  const FederatedProblem<T>& problem_;
  ThreadPool& pool_;
  RowSums<T> row_sums_;
  std::unique_ptr<OnDevice> on_device_;  // null on the CPU
  Buffer<T> gradients_;                  // [block,P] where they are computed
  Buffer<T> copied_gradients_;           // [block,P] on the host, where those are a GPU's
  Buffer<double> mean_, spread_;         // [P]
  std::optional<RankingTask<T>> ranking_;
  std::uint64_t ranking_seed_ = 0;
};

extern template class Evaluator<float>;
extern template class Evaluator<double>;

}  // namespace fl
