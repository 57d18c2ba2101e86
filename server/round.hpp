// The round: sample, broadcast, exchange, receive, step, acknowledge. See docs/architecture.md for the picture.
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
#include "server/aggregator.hpp"
#include "server/delivery.hpp"
#include "server/downlink.hpp"
#include "server/message_reader.hpp"
#include "server/participation.hpp"
#include "server/server_optimizer.hpp"

namespace fl {

// The parts of a run that meet in a round; all outlive it.
template <class T>
struct RoundParts {
  const Participation& participation;
  const Feedback<T>& feedback;
  const FeedbackPlan& plan;  // of it
  const Exchange<T>& exchange;
  CohortRunner<T>& runner;
  ClientProbe<T>* probe;  // of the same clients, for measures; null where they cannot be asked
  ServerOptimizer<T>& optimizer;
  Downlink<T>& downlink;
  const RunSettings& run;
  SharedState<T>& shared;  // the replica of this process
  ServerState<T>& state;
  ThreadPool& pool;
};

// Constants of a round that the server alone needs.
struct RoundSettings {
  double step_size = 1;  // gamma
  Schedule schedule;     // of gamma, over so many rounds:
  std::uint32_t rounds = 0;
  AbsenceRule absence;
  RoundTimes* times = nullptr;  // filled where it is not null
  Device sums = Device::cpu;    // the memory of sums of messages: pinned where a GPU adds them up
};

template <class T>
class Round {
 public:
  Round(RoundParts<T> parts, RoundSettings settings, std::span<T> model);

  // Plays round r (1, 2, ...). `measure` says that norms are due. A round without clients is skipped: its estimate is zero.
  void play(std::uint32_t round, bool measure);

  // Model, states and counters between two rounds.
  void persist(Archive& archive);

  // After persist() has read what a file says of the rounds until `round`: throws ArchiveError where it refers to later ones.
  void require_nothing_after(std::uint32_t round) const;

  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] const RoundPlan& plan() const { return cohorts_.now; }
  // Whose messages of the last round arrived, by cohort position, and how many were refused because they were not finite.
  [[nodiscard]] std::span<const std::uint8_t> delivered() const { return delivery_.delivered(); }
  [[nodiscard]] std::size_t refused() const { return delivery_.refused(); }
  // Returns sum_i w_i e_i over all clients, with what each would begin `round` with: [P].
  [[nodiscard]] std::vector<double> memory_sum(std::uint32_t round);
  // Of the last round's cohort, before it (AbsentMemory::residual_age).
  [[nodiscard]] double residual_age() const { return cohorts_.residual_age; }
  // Estimate of the last round: [P].
  [[nodiscard]] std::span<const double> estimate() const { return estimate_.span(); }

 private:
  void sample(std::uint32_t round);
  void draw(std::uint32_t round, RoundPlan& plan) const;
  void open(std::uint32_t round, bool measure);
  void receive();
  void step();
  // Returns what the server's optimizer multiplies estimates by beside its own learning rate: gamma if they are gradients, else 1.
  [[nodiscard]] double step_of(double step_size) const { return parts_.run.unit == Unit::gradient ? step_size : 1.0; }
  // Messages are added up where the estimate is wanted.
  [[nodiscard]] bool sums_are_estimates() const {
    return parts_.plan.estimate_is_sum && parts_.exchange.channels.size() == 1 && parts_.exchange.num_phases() == 1;
  }
  [[nodiscard]] RoundView<T> view() const { return {parts_.run, order_, parts_.downlink.reference()}; }
  void collect(int phase);
  void aggregate(int phase, std::size_t channel);
  void absorb_mean(int phase, std::size_t channel);
  void average_statistics();
  void keep_statistics();

  // Who takes part in this round, and in the next one where clients read ahead.
  struct Cohorts {
    RoundPlan now, next;
    std::uint32_t next_round = 0;  // that `next` is of; 0 = none
    double residual_age = 0;       // of this round's cohort, before it
  };
  // What a channel's messages add up to.
  struct ChannelSums {
    Buffer<double> cohort, population;         // [L] by the weights of either
    std::vector<const Payload<T>*> arrived{};  // [M] of the last phase
  };
  // What arrived messages say beside their payloads.
  struct Reports {
    std::vector<double> work;        // [M] of each message
    std::vector<double> statistics;  // [S] of the model after this round
  };
  // The mean of a phase, and what an operator makes of it.
  struct PhaseMean {
    Buffer<T> message, estimate;
  };

  RoundParts<T> parts_;
  RoundSettings settings_;
  std::span<T> model_;  // x [P]
  Ledger ledger_;
  MessageReader<T> reader_;
  Aggregator<T> aggregator_;
  Cohorts cohorts_;
  RoundOrder order_;
  AbsentMemory<T> absence_;
  Buffer<double> estimate_;  // [P]
  std::vector<ChannelSums> channels_;
  std::vector<Aggregate> aggregates_;  // by channel
  Delivery delivery_;
  Reports reports_;
  PhaseMean phase_mean_;
};

extern template class Round<float>;
extern template class Round<double>;

}  // namespace fl
