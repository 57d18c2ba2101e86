// A run between two rounds, as its measures see it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "clients/learning/local_update.hpp"
#include "fl_core/round/client_probe.hpp"
#include "scenarios/experiment/evaluator.hpp"
#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/experiment/model_average.hpp"
#include "scenarios/experiment/run_clock.hpp"
#include "scenarios/file/measure_set.hpp"
#include "scenarios/results/run_record.hpp"
#include "server/round.hpp"

namespace fl {

// The parts of a run that measures read. All of them outlive RunMeasures.
template <class T>
struct MeasuredRun {
  const Scenario& scenario;
  FederatedProblem<T>& problem;
  ThreadPool& pool;
  Evaluator<T>& evaluator;
  ServerRounds<T>& round;
  ClientProbe<T>& probe;
  const Feedback<T>& feedback;
  const LocalUpdate<T>& local;
  std::span<const T> model;                    // x [P]
  const std::optional<ModelAverage>& average;  // set if it is measured
  double f_star;                               // NaN if not known
  double step_size;                            // gamma
  Unit unit;
  const RunClock<T>* clock = nullptr;  // null: the run knows no time
};

// Returns the problem as measures see it.
template <class T>
[[nodiscard]] MeasureProblem<T> measured_problem(const FederatedProblem<T>& problem, bool has_optimum, bool has_clock) {
  return {problem.model(),   problem.layers(), problem.train(), problem.test(),    problem.shards(),
          problem.weights(), has_optimum,      has_clock,       problem.has_rows()};
}

template <class T>
class RunMeasures {
 public:
  // The measure set outlives this object.
  RunMeasures(const MeasuredRun<T>& run, MeasureSet<T>& measures)
      : run_(run),
        measures_(measures),
        evaluation_(run),
        problem_(measured_problem(run.problem, run.f_star == run.f_star, run.scenario.has_clock())) {}

  // Takes the due measures of x_r, the current model, and of round r, which was just played; row.round is r.
  void measure(RoundRow& row, const DueMeasures& due);

  [[nodiscard]] double zeta_sq_at_optimum();

 private:
  // The evaluator with the state of the round that it needs.
  class Evaluation final : public ModelEvaluation<T> {
   public:
    explicit Evaluation(const MeasuredRun<T>& run) : run_(run) {}
    // Forgets what is known of the model, which has moved. `needs_gradient`: its gradient will be requested too.
    void open(std::uint32_t round, bool needs_gradient) {
      round_played_ = round;
      needs_gradient_ = needs_gradient;
      gradient_.reset();
    }
    double train_loss(std::span<const T> x) override;
    Accuracy test(std::span<const T> x) override { return run_.evaluator.test(x); }
    GradientStatistics gradient(std::span<const T> x) override;
    Spread client_accuracy(std::span<const T> x) override;
    RankingQuality ranking(std::span<const T> x) override { return run_.evaluator.ranking(x, run_.scenario.seeds.data); }
    std::vector<double> mean_memory() override;

   private:
    [[nodiscard]] bool is_model(std::span<const T> x) const { return x.data() == run_.model.data(); }

    MeasuredRun<T> run_;
    std::uint32_t round_played_ = 0;
    bool needs_gradient_ = false;
    std::optional<GradientStatistics> gradient_;  // of the model, if it was computed along with the loss
  };
  void describe_round(MeasureView<T>& view, const DueMeasures& due) const;

  MeasuredRun<T> run_;
  MeasureSet<T>& measures_;
  Evaluation evaluation_;
  MeasureProblem<T> problem_;
};

extern template class RunMeasures<float>;
extern template class RunMeasures<double>;

}  // namespace fl
