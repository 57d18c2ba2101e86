// A server that steps along messages as they arrive (FedBuff, FedAsync), in simulated time.
//
//   a place is free   -> another client receives the present model and begins
//   a message arrives -> it waits in the buffer
//   the buffer is full -> x <- x - step(sum_i weight_i s(tau_i) c_i), and the clients of the buffer move their state
// A "round" of such a run is a step of the server, and its cohort are the clients of the buffer. [participation] says how many clients are
// at work at the same time. Each of them is a wave of the clients' half, so that its state stays as it was until its message is
// acknowledged. The order of events is a function of their times and, where these are equal, of the clients' numbers.
//
// The server's sums of states (EF21's g) take every message with w_i, whatever its age; docs/maths.md says which methods allow what.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "server/async_rule.hpp"
#include "server/flights.hpp"
#include "server/round.hpp"
#include "server/round_clock.hpp"

namespace fl {

template <class T>
class AsyncRounds final : public ServerRounds<T> {
 public:
  // `rule` and `clock` outlive this object. The clients of `parts` keep as many waves as there are places.
  AsyncRounds(RoundParts<T> parts, RoundSettings settings, const AsyncRule& rule, RoundClock& clock, std::span<T> model);

  void play(std::uint32_t round, bool measure) override;
  void persist(Archive& archive) override;
  void require_nothing_after(std::uint32_t round) const override;
  [[nodiscard]] std::uint64_t last_order(std::uint32_t) const override { return events_; }

  [[nodiscard]] const Ledger& ledger() const override { return ledger_; }
  [[nodiscard]] const RoundPlan& plan() const override { return plan_; }
  [[nodiscard]] const Delivery& delivery() const override { return reducer_.delivery(); }
  [[nodiscard]] std::vector<double> memory_sum(std::uint32_t) override { return {}; }
  [[nodiscard]] double residual_age() const override { return residual_age_; }
  [[nodiscard]] std::span<const double> estimate() const override { return reducer_.estimate(); }

 private:
  void fill();
  [[nodiscard]] std::vector<std::uint32_t> free_clients();
  [[nodiscard]] bool can_begin(std::uint32_t client) const;
  void wait_for_clients();
  void begin(const std::vector<std::uint32_t>& clients);
  [[nodiscard]] RoundOrder order_of(std::uint32_t client) const;
  void start(Flight<T>& flight);
  void land(Flight<T> flight);
  void end(Flight<T>& flight, bool counts);
  void reduce();
  void weigh_buffer();
  [[nodiscard]] RoundTimeline buffer_times() const;
  [[nodiscard]] std::span<const double> mix(double factor);
  void step();
  [[nodiscard]] RoundView<T> view(const Flight<T>& flight) const { return {parts_.run, flight.order, *flight.model}; }
  void persist_flights(Archive& archive);

  RoundParts<T> parts_;
  RoundSettings settings_;
  const AsyncRule& rule_;
  RoundClock& clock_;
  ModelStep<T> model_;
  Ledger ledger_;
  Reducer<T> reducer_;
  AbsentMemory<T> absence_;
  Flights<T> flights_;
  std::vector<Flight<T>> buffer_;  // messages that have arrived since the last step, by time of arrival
  RoundPlan plan_;                 // of the last step
  std::vector<double> mixed_;      // [P] the estimate of a step that mixes models
  std::uint64_t events_ = 0;       // times that clients have begun: RoundOrder::round counts these
  std::uint32_t version_ = 0;      // steps of the server
  double residual_age_ = 0;
};

extern template class AsyncRounds<float>;
extern template class AsyncRounds<double>;

}  // namespace fl
