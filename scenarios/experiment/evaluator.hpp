// Evaluates a model: losses, accuracy, the global gradient and heterogeneity. It computes in double, in a fixed order over clients.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "clients/learning/device_evaluation.hpp"
#include "clients/learning/device_training.hpp"
#include "clients/learning/loss_with_gradient.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/memory/thread_pool.hpp"
#include "fl_core/ops/row_sums.hpp"
#include "scenarios/experiment/client_sums.hpp"
#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/measures/measure_statistics.hpp"

namespace fl {

template <class T>
class Evaluator {
 public:
  // Evaluates on `device` if the model and the data support it.
  Evaluator(const FederatedProblem<T>& problem, ThreadPool& pool, Device device = Device::cpu);
  ~Evaluator();
  // Takes the sums of training rows from their clients from now on. `remote` outlives it.
  void ask(ClientSums<T>& remote) { remote_ = &remote; }
  // Leaves these parameters out of gradients from now on: those that clients keep.
  void leave_out(std::vector<ParameterRange> ranges) { left_out_ = std::move(ranges); }

  // Returns f(x), regulariser included.
  [[nodiscard]] double train_loss(std::span<const T> x);
  // Returns whether the last train_loss() has the rows of every client. If not, it is NaN.
  [[nodiscard]] bool knows_loss() const { return knows_loss_; }
  // Returns the mean loss without regulariser and the fraction classified right, on the test set, or on the training set without a test
  // set.
  [[nodiscard]] Accuracy test(std::span<const T> x);
  [[nodiscard]] GradientStatistics gradient(std::span<const T> x);
  // Returns the numbers of train_loss(x) and gradient(x) from one pass over the rows, or no value if this evaluator cannot share a pass.
  struct LossAndGradient {
    double loss = 0;
    GradientStatistics gradient;
  };
  [[nodiscard]] std::optional<LossAndGradient> loss_and_gradient(std::span<const T> x);
  // Returns the accuracy on each client's own rows (FederatedProblem::client_rows), over the clients that have rows. With `adapt`, each
  // client is judged with its own model: adapt(client, x) turns a copy of x into it.
  using Adapt = std::function<void(std::uint32_t client, T* x)>;
  [[nodiscard]] Spread client_accuracy(std::span<const T> x, const Adapt& adapt = {});
  // Evaluates on the test set. Throws ConfigError if there are no ratings to rank, or if the model gives no single score.
  [[nodiscard]] RankingQuality ranking(std::span<const T> x, std::uint64_t seed);
  // Returns the GPU bytes of evaluation, without data: 0 without a GPU form, and a prediction on machines without a GPU.
  [[nodiscard]] std::uint64_t most_bytes_on_device(bool with_gradients) const;

 private:
  struct OnDevice;
  using Rows = std::span<const std::uint32_t>;
  struct Sums {
    double loss = 0;
    std::uint64_t correct = 0;
  };
  // Returns the sums over each list of rows, at x.
  [[nodiscard]] std::vector<Sums> sums_of(const Dataset<T>& data, std::span<const Rows> lists, std::span<const T> x, bool counts);
  // Does the same with each client's own model.
  [[nodiscard]] std::vector<Sums> sums_of_own(const ClientRows<T>& own, std::span<const Rows> lists, std::span<const T> x,
                                              const Adapt& adapt);
  [[nodiscard]] std::vector<double> loss_sums(std::span<const T> x);
  // Returns f(x) from the sums of all clients' losses.
  [[nodiscard]] double loss_of(std::span<const double> sums, std::span<const T> x);
  // Returns the model as one that computes losses along with gradients, or null if it is none, or if one of them comes from elsewhere.
  [[nodiscard]] const LossWithGradient<T>* shared_pass() const;
  // Does the work of gradient(). `losses` [N], unless empty, receives the sums of the clients' losses, by shared_pass().
  [[nodiscard]] GradientStatistics gradient_with_losses(std::span<const T> x, std::span<double> losses);
  [[nodiscard]] Spread remote_accuracy(std::span<const T> x);
  void sum_on_device(DeviceEvaluation<T>& evaluation, std::span<const Rows> lists, std::span<const T> x, std::vector<Sums>& sums);
  // Fills `gradients` [count,P], a part of gradients_, with the gradients of clients `first` to first + count - 1, and `losses` [count]
  // unless empty.
  void compute_gradients(std::span<const T> x, std::uint32_t first, std::uint32_t count, T* gradients, std::span<double> losses);
  void compute_whole_gradients(std::span<const T> x, std::uint32_t first, std::uint32_t count, T* gradients, std::span<double> losses);
  [[nodiscard]] const T* gradients_here(const T* gradients, std::size_t entries);

  const FederatedProblem<T>& problem_;
  ThreadPool& pool_;
  ClientSums<T>* remote_ = nullptr;       // null: the rows are in this process
  std::vector<ParameterRange> left_out_;  // whose entries of gradients are 0
  bool knows_loss_ = true;
  RowSums<T> row_sums_;
  std::unique_ptr<OnDevice> on_device_;  // null on the CPU
  Buffer<T> gradients_;                  // [block,P] or [N,P] on the device that computes them
  Buffer<T> copied_gradients_;           // [block,P] on the host, a copy of gradients_ if those are on a GPU
  Buffer<double> mean_, spread_;         // [P]
  std::optional<RankingTask<T>> ranking_;
  std::uint64_t ranking_seed_ = 0;
};

extern template class Evaluator<float>;
extern template class Evaluator<double>;

}  // namespace fl
