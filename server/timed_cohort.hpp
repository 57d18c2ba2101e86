// The clients of a run with a clock of simulated time: a CohortRunner around that of the clients, which says when their messages arrive.
//
// A message that the run's delivery policy does not count is marked as one that did not come in time, as a network's runner does, and its
// client learns it when the round closes. Its bits were sent all the same and are counted, unless the client left before it sent them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fl_core/message/ledger.hpp"
#include "fl_core/round/cohort_runner.hpp"
#include "server/round_clock.hpp"

namespace fl {

template <class T>
class TimedCohort final : public CohortRunner<T> {
 public:
  // `by_ratio` is a second clock with the same parts, which knows no messages (RoundTimeline::by_ratio_s). `awaited`: the number of
  // messages that a round is made for; 0 = those of the cohort.
  TimedCohort(CohortRunner<T>& clients, RoundClock& clock, RoundClock& by_ratio, std::size_t awaited)
      : clients_(clients), clock_(clock), by_ratio_(by_ratio), awaited_(awaited) {}
  // Names the ledger of the rounds, which tells what was sent to whom. Call it before the first round.
  void read(const Ledger& ledger) { ledger_ = &ledger; }
  // Times what the clients of the last round sent after it had closed, and returns the time. Call it when a round has been played.
  double settle();
  // Returns the last round that settle() has ended.
  [[nodiscard]] const RoundTimeline& timeline() const { return timeline_; }

  [[nodiscard]] std::vector<std::uint8_t> present(std::uint32_t round, std::span<const std::uint32_t> cohort) override;
  void open_round(const RoundView<T>& round, const RoundOpening<T>& opening) override;
  void skip_round(std::uint32_t round) override;
  [[nodiscard]] bool reads_ahead() const override { return clients_.reads_ahead(); }
  [[nodiscard]] MessageBatch<T> exchange(const RoundView<T>& round, int phase) override;
  void refuse(std::uint32_t position, const std::string& why) override { clients_.refuse(position, why); }
  void learn_mean(std::size_t channel, int phase, std::span<const T> mean) override;
  void close_round(const RoundView<T>& round, std::span<const std::uint8_t> delivered) override;
  [[nodiscard]] std::span<const T> error_memory(std::uint32_t position) override;
  void persist(Archive& archive) override;

 private:
  // The bits of each client that the ledger had counted when they were last looked at.
  struct Counted {
    std::vector<std::uint64_t> of_client{};  // [N]
    // Returns what was counted for each client since then, and sets the members to now.
    [[nodiscard]] std::vector<std::uint64_t> take(std::span<const std::uint32_t> cohort, const std::vector<std::uint64_t>& now);
  };

  CohortRunner<T>& clients_;
  RoundClock &clock_, &by_ratio_;
  const std::size_t awaited_;
  const Ledger* ledger_ = nullptr;
  Counted down_, up_;
  RoundTimeline timeline_;
  bool knows_values_ = true;                // how many values messages have; the bytes of other processes do not say it here
  std::vector<ClientMessage<T>> messages_;  // of this phase, as the server sees them
};

extern template class TimedCohort<float>;
extern template class TimedCohort<double>;

}  // namespace fl
