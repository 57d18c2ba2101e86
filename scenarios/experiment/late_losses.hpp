// The losses of a tuning run, measured late: in the rounds of its end point alone.
//
// A candidate of tuning is judged by the mean of its loss over the last fifth of its bits or rounds (scenarios/results/end_point.hpp), and
// where they begin is known when it ends. So the run keeps its models of the rounds in which losses are due, drops those that lie before
// the window of any end that is still possible, and measures the others at its end. The losses are those that it would have measured in
// their rounds. For convex models with small messages, losses are most of a run's work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/file/scenario.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

// The progress of a run, by everything that an end point may be compared at.
struct RunPlace {
  double rounds = 0, bits_up = 0, bits = 0;  // bits: up and down
};

template <class T>
class LateLosses {
 public:
  using Loss = std::function<double(std::span<const T>)>;  // f(x), x [P]
  // `stop` holds the bits at which the run ends, if it ends there.
  LateLosses(StopOptions stop, Loss loss, double f_star) : stop_(std::move(stop)), loss_(std::move(loss)), f_star_(f_star) {}

  // Keeps the model of a round whose row is the latest one of `rows`, and drops models that no end point needs any more. Measures all that
  // are kept if they take too much memory.
  void keep(std::vector<RoundRow>& rows, const RunPlace& place, std::span<const T> model);
  // Measures the models that are kept, in the order of their rounds, and puts the losses into their rows.
  void measure(std::vector<RoundRow>& rows);
  // Does so at the end of the run. Returns why it diverged ("train_loss is not finite in round 7"), or "".
  [[nodiscard]] std::string measure_all(std::vector<RoundRow>& rows);

 private:
  struct Kept {
    std::size_t row;
    RunPlace place;
    std::vector<T> model;
  };
  void drop_before_the_window(const RunPlace& now);

  StopOptions stop_;
  Loss loss_;
  double f_star_;
  std::vector<Kept> kept_;
  std::uint64_t not_finite_ = 0;
};

extern template class LateLosses<float>;
extern template class LateLosses<double>;

}  // namespace fl
