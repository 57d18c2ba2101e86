// The way from the messages of a cohort to the estimate of a round: reading, delivery, sums, the feedback's half of the server.
//
// A round that has several phases ends each but the last with the mean of its messages, which everyone learns before the next one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "compressors/exchange.hpp"
#include "compressors/feedback/feedback.hpp"
#include "compressors/postprocessors/postprocessor.hpp"
#include "fl_core/memory/thread_pool.hpp"
#include "fl_core/round/cohort_runner.hpp"
#include "fl_core/round/round_times.hpp"
#include "fl_core/round/round_views.hpp"
#include "server/aggregation_rule.hpp"
#include "server/aggregator.hpp"
#include "server/delivery.hpp"
#include "server/message_reader.hpp"
#include "server/participation.hpp"

namespace fl {

// The parts of a run that a reducer uses. All outlive it.
template <class T>
struct ReducerParts {
  const RunSettings& run;
  const Feedback<T>& feedback;
  const FeedbackPlan& plan;  // of the feedback
  const Exchange<T>& exchange;
  const AggregationRule& aggregation;
  const Postprocessor<T>* postprocessor;  // of the estimate; null: it stays as it is
  ServerState<T>& state;
  SharedState<T>& shared;  // the replica of this process
  ThreadPool& pool;
};

template <class T>
class Reducer {
 public:
  // Receives the mean [L] of a phase of a channel that clients have to learn.
  using Spread = std::function<void(std::size_t channel, int phase, std::span<const T> mean)>;

  // `sums` is the memory of sums: pinned if a GPU computes them. `times` is filled if not null.
  Reducer(const ReducerParts<T>& parts, Device sums, RoundTimes* times);

  // Opens a round. The plan stays until receive(): clients whose messages do not count give their weight to the others. The estimate [P]
  // is written to `estimate`, or, if this is empty, to memory of the reducer.
  void open(RoundPlan& plan, std::span<double> estimate = {});
  // Notes a round without clients, whose estimate is zero.
  void skip();
  // Takes the messages of a phase, and spreads the means of channels that go on.
  void take(const RoundView<T>& round, int phase, MessageBatch<T> batch, CohortRunner<T>& clients, const Spread& spread);
  // Computes the estimate and the means of averaged parameters from the messages of all phases, moves the server's state by them, and gives
  // the memory of the messages back.
  void receive(const RoundView<T>& round);

  // Returns the messages [M] of the last phase, with their bits.
  [[nodiscard]] std::span<const ClientMessage<T>> messages() const { return reader_.messages(); }
  // Returns 1 for each message that arrived, by cohort position, and the counts of the round.
  [[nodiscard]] const Delivery& delivery() const { return delivery_; }
  // Returns the estimate [P].
  [[nodiscard]] std::span<const double> estimate() const { return estimate_; }
  // Returns the means of averaged parameters [A] over the messages; empty if none arrived.
  [[nodiscard]] std::span<const double> averaged() const { return reports_.averaged; }

 private:
  // The sums of a channel's messages.
  struct ChannelSums {
    Buffer<double> cohort, population;         // [L] with cohort_weight and population_weight
    std::vector<const Payload<T>*> arrived{};  // [M] of the last phase
  };
  // Data of arrived messages other than their payloads.
  struct Reports {
    std::vector<double> work;      // [M] of each message
    std::vector<double> averaged;  // [A] the means
  };
  // The mean of a phase, and the operator's estimate from it.
  struct PhaseMean {
    Buffer<T> message, estimate;
  };

  // Returns whether the message sum is the estimate itself, so that no copy is needed.
  [[nodiscard]] bool sums_are_estimates() const {
    return parts_.plan.estimate_is_sum && parts_.exchange.channels.size() == 1 && parts_.exchange.num_phases() == 1;
  }
  void aggregate(int phase, std::size_t channel, const Spread& spread);
  void absorb_mean(int phase, std::size_t channel, const Spread& spread);
  void average_values();
  void multiply_by_mean_work();

  const ReducerParts<T> parts_;
  RoundTimes* const times_;
  RoundPlan* plan_ = nullptr;  // of the open round
  MessageReader<T> reader_;
  Aggregator<T> aggregator_;
  Delivery delivery_;
  Buffer<double> own_estimate_;  // [P], or empty before it is used
  std::span<double> estimate_;   // of this round, or of the last one
  std::vector<ChannelSums> channels_;
  std::vector<Aggregate> aggregates_;  // by channel
  Reports reports_;
  PhaseMean phase_mean_;
};

extern template class Reducer<float>;
extern template class Reducer<double>;

}  // namespace fl
