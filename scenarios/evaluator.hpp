// What is reported of a model: losses, accuracy, the global gradient and heterogeneity. In double, in a fixed order over clients.
#pragma once

#include <span>
#include <vector>

#include "fl_core/thread_pool.hpp"
#include "scenarios/federated_problem.hpp"

namespace fl {

struct GradientStatistics {
  double norm_sq = 0;  // |grad f(x)|^2
  double zeta_sq = 0;  // sum_i w_i |grad f_i(x) - grad f(x)|^2
};

template <class T>
class Evaluator {
 public:
  Evaluator(const FederatedProblem<T>& problem, ThreadPool& pool) : problem_(problem), pool_(pool) {}

  // f(x), regulariser included.
  [[nodiscard]] double train_loss(std::span<const T> x);
  // Mean loss on the test set without regulariser, and the fraction classified right; of the training set when there is no test set.
  [[nodiscard]] Accuracy test(std::span<const T> x);
  [[nodiscard]] GradientStatistics gradient(std::span<const T> x);

 private:
  const FederatedProblem<T>& problem_;
  ThreadPool& pool_;
  std::vector<double> client_loss_;  // [N]
  Buffer<T> gradients_;              // [block,P]
  Buffer<double> mean_, spread_;     // [P]
};

extern template class Evaluator<float>;
extern template class Evaluator<double>;

}  // namespace fl
