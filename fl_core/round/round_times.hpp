// Time spent in the parts of a round. It is measured only on request; otherwise no clock is read.
#pragma once

#include <chrono>
#include <cstdint>

namespace fl {

struct RoundTimes {
  std::uint64_t rounds = 0;
  double total_s = 0;      // whole rounds, including evaluation
  double exchange_s = 0;   // part of the total: clients compute and send
  double train_s = 0;      // part of the exchange, summed over threads: local updates
  double compress_s = 0;   // part of the exchange, summed over threads: compression, bit counts, and norms if measured
  double aggregate_s = 0;  // weighted sums of the arrived messages
  double evaluate_s = 0;   // losses, accuracy, gradients over all rows

  // Returns the idle time per thread during the exchange.
  [[nodiscard]] double waiting_s(int threads) const { return exchange_s - (train_s + compress_s) / static_cast<double>(threads); }
  // Returns the remaining time: sampling, downlink, server step, acknowledgement, ledger.
  [[nodiscard]] double rest_s() const { return total_s - exchange_s - aggregate_s - evaluate_s; }
};

// Adds the seconds of its lifetime to `*seconds`, if it is not null.
class ScopedTimer {
 public:
  explicit ScopedTimer(double* seconds) : seconds_(seconds) {
    if (seconds_ != nullptr) start_ = Clock::now();
  }
  ~ScopedTimer() {
    if (seconds_ != nullptr) *seconds_ += std::chrono::duration<double>(Clock::now() - start_).count();
  }
  ScopedTimer(const ScopedTimer&) = delete;
  ScopedTimer& operator=(const ScopedTimer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double* seconds_;
  Clock::time_point start_;
};

// Returns the address to which a ScopedTimer adds the seconds of one kind, as in ScopedTimer(seconds_in(times, &RoundTimes::train_s)).
// Returns null if `times` is null.
[[nodiscard]] inline double* seconds_in(RoundTimes* times, double RoundTimes::*seconds) {
  return times == nullptr ? nullptr : &(times->*seconds);
}

}  // namespace fl
