// One round: sample, broadcast, exchange, receive, step, acknowledge. docs/architecture.md has a diagram.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compressors/exchange.hpp"
#include "compressors/feedback/feedback.hpp"
#include "fl_core/config/schedule.hpp"
#include "fl_core/memory/thread_pool.hpp"
#include "fl_core/message/ledger.hpp"
#include "fl_core/round/client_probe.hpp"
#include "fl_core/round/cohort_runner.hpp"
#include "fl_core/round/round_times.hpp"
#include "fl_core/round/round_views.hpp"
#include "server/absent_memory.hpp"
#include "server/downlink.hpp"
#include "server/model_step.hpp"
#include "server/participation.hpp"
#include "server/reducer.hpp"
#include "server/server_optimizer.hpp"
#include "server/server_rounds.hpp"

namespace fl {

// The parts of a run that a round uses. All must outlive it.
template <class T>
struct RoundParts {
  const Participation& participation;
  const Feedback<T>& feedback;
  const FeedbackPlan& plan;  // of the feedback
  const Exchange<T>& exchange;
  const AggregationRule& aggregation;
  const Postprocessor<T>* postprocessor;  // of the estimate; null: it stays as it is
  CohortRunner<T>& runner;
  ClientProbe<T>* probe;  // of the same clients, for measures; null if they cannot be probed
  ServerOptimizer<T>& optimizer;
  Downlink<T>& downlink;
  const RunSettings& run;
  SharedState<T>& shared;  // this process's replica
  ServerState<T>& state;
  ThreadPool& pool;
};

// Constants of a round that only the server needs.
struct RoundSettings {
  double step_size = 1;  // gamma
  Schedule schedule;     // of gamma, over this many rounds:
  std::uint32_t rounds = 0;
  AbsenceRule absence;
  RoundTimes* times = nullptr;  // filled if not null
  Device sums = Device::cpu;    // memory of message sums: pinned if a GPU computes them
};

template <class T>
class Round final : public ServerRounds<T> {
 public:
  Round(RoundParts<T> parts, RoundSettings settings, std::span<T> model);

  void play(std::uint32_t round, bool measure) override;
  void persist(Archive& archive) override;
  void require_nothing_after(std::uint32_t round) const override;

  [[nodiscard]] const Ledger& ledger() const override { return ledger_; }
  [[nodiscard]] const RoundPlan& plan() const override { return cohorts_.now; }
  [[nodiscard]] const Delivery& delivery() const override { return reducer_.delivery(); }
  [[nodiscard]] std::vector<double> memory_sum(std::uint32_t round) override;
  [[nodiscard]] double residual_age() const override { return cohorts_.residual_age; }
  [[nodiscard]] std::span<const double> estimate() const override { return reducer_.estimate(); }

 private:
  void sample(std::uint32_t round);
  void draw(std::uint32_t round, RoundPlan& plan) const;
  void open(std::uint32_t round, bool measure);
  void step();
  [[nodiscard]] RoundView<T> view() const { return {parts_.run, order_, parts_.downlink.reference()}; }
  void collect(int phase);
  void note_kept();

  // The clients of this round, and those of the next one if clients read ahead.
  struct Cohorts {
    RoundPlan now, next;
    std::uint32_t next_round = 0;  // the round of `next`; 0 = none
    double residual_age = 0;       // of this round's cohort, before the round
  };
  RoundParts<T> parts_;
  RoundSettings settings_;
  ModelStep<T> model_;
  Ledger ledger_;
  Reducer<T> reducer_;
  Cohorts cohorts_;
  RoundOrder order_;
  AbsentMemory<T> absence_;
};

extern template class Round<float>;
extern template class Round<double>;

}  // namespace fl
