// Where the seconds of rounds go. Filled only where it is asked for: without, no clock is read.
#pragma once

#include <chrono>
#include <cstdint>

namespace fl {

struct RoundTimes {
  std::uint64_t rounds = 0;
  double total_s = 0;      // rounds from begin to end, with what was evaluated
  double exchange_s = 0;   // of it: clients compute and send
  double train_s = 0;      // of the exchange, added over threads: local updates
  double compress_s = 0;   // of the exchange, added over threads: compression, bits, and norms where they are due
  double aggregate_s = 0;  // weighted sums of what arrived
  double evaluate_s = 0;   // losses, accuracy, gradients over all rows

  // Of the exchange, per thread: no client's work.
  [[nodiscard]] double waiting_s(int threads) const { return exchange_s - (train_s + compress_s) / static_cast<double>(threads); }
  // What no name above accounts for: sampling, the downlink, the server's step, acknowledgement, the ledger.
  [[nodiscard]] double rest_s() const { return total_s - exchange_s - aggregate_s - evaluate_s; }
};

// Adds the seconds of its life to `*seconds`; to nothing where that is null.
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

// Returns where a ScopedTimer adds the seconds of one kind, as in ScopedTimer(seconds_in(times, &RoundTimes::train_s)); null where `times`
// is.
[[nodiscard]] inline double* seconds_in(RoundTimes* times, double RoundTimes::*seconds) {
  return times == nullptr ? nullptr : &(times->*seconds);
}

}  // namespace fl
