// The clients' half of a round, for all clients of a process: beside the server that simulates them, or apart from it.
//
// This class makes every move of client state between two rounds. It brings rows into memory when a round opens, settles the error memory
// of clients that were absent, and moves state when the round closes and messages are acknowledged. The server sees the clients only
// through CohortRunner, measures only through ClientProbe.
//
// Clients read shared slots, which both halves hold. Beside the server they read its own, which it moves. Apart from it they have a
// replica, whose slots are read from what the server sends or computed here from models and means, in the order in which the server does.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "clients/host/absence.hpp"
#include "clients/host/block_runner.hpp"
#include "clients/host/memory_sum.hpp"
#include "compressors/exchange.hpp"
#include "compressors/feedback/feedback.hpp"
#include "fl_core/round/client_probe.hpp"
#include "fl_core/round/cohort_runner.hpp"

namespace fl {

// The shared slots that the clients of a process read.
template <class T>
struct SharedReplica {
  SharedState<T>& slots;
  bool is_own = false;  // the process has no server, which would move them
};

// The parts of a clients' half. All outlive it; `state` and the slots of `shared` are the runner's.
template <class T>
struct ClientParts {
  const RunSettings& run;
  const Feedback<T>& feedback;
  const Exchange<T>& exchange;
  ClientState<T>& state;
  SharedReplica<T> shared;
  BlockRunner<T>& runner;
  ThreadPool& pool;
};

template <class T>
class ClientProcess final : public CohortRunner<T> {
 public:
  // Up to `waves` rounds, or parts of a round, may be open at the same time, each with clients of its own. When another one opens, the
  // oldest is given up: its messages do not count.
  ClientProcess(const ClientParts<T>& parts, AbsenceRule absence, bool runs_memory_sum, std::size_t waves = 1);

  // Slots that the server sends have been read into a replica before.
  void open_round(const RoundView<T>& round, const RoundOpening<T>& opening) override;
  void skip_round(std::uint32_t round) override;
  [[nodiscard]] bool reads_ahead() const override { return parts_.state.reads_ahead(); }
  [[nodiscard]] MessageBatch<T> exchange(const RoundView<T>& round, int phase) override;
  void learn_mean(std::size_t channel, int phase, std::span<const T> mean) override;
  void close_round(const RoundView<T>& round, std::span<const std::uint8_t> delivered) override;
  // Returns a view that is valid until the next call.
  [[nodiscard]] std::span<const T> error_memory(std::uint32_t position) override;
  void persist(Archive& archive) override;

  // Returns the interface through which measures query these clients.
  [[nodiscard]] ClientProbe<T>& probe() { return probe_; }
  [[nodiscard]] std::size_t size_bytes() const { return memory_sum_.size_bytes(); }

 private:
  class Probe final : public ClientProbe<T> {
   public:
    explicit Probe(ClientProcess& process) : process_(process) {}
    void keep_updates(bool keep) override { process_.parts_.runner.keep_updates(keep); }
    [[nodiscard]] BatchView<const T> updates(std::size_t cohort, std::size_t P) const override {
      return process_.parts_.runner.updates(cohort, P);
    }
    [[nodiscard]] std::span<const ClientMeasures> measures() const override { return process_.parts_.runner.measures(); }
    [[nodiscard]] std::span<const OperatorError> operator_errors() const override { return process_.parts_.runner.operator_errors(); }
    [[nodiscard]] std::vector<double> error_memory_sum(std::uint32_t round, std::span<const double> replacement) override {
      return process_.memory_sum_.value(round, replacement);
    }
    void add_kept_moves(std::span<const std::uint8_t> delivered, std::span<double> mean) override;
    void read_kept_move(std::uint32_t position, std::span<double> move) override;
    void put_kept(std::uint32_t client, T* x) override;

   private:
    ClientProcess& process_;
  };

  // A round that is open, or was open last, for the clients of a cohort.
  struct Wave {
    std::vector<std::uint32_t> cohort;
    std::vector<T> received;  // [P] w without the parameters that clients keep, if there are any
  };
  // The round of a wave and its first client, which no other open wave has.
  using WaveKey = std::pair<std::uint32_t, std::uint32_t>;
  static WaveKey key_of(const RoundOrder& order) { return {order.round, order.cohort.empty() ? 0 : order.cohort.front()}; }
  Wave& select(std::size_t wave);
  Wave& open_wave(const RoundOrder& order);
  Wave& wave_of(const RoundOrder& order);

  const ClientParts<T> parts_;
  Absence<T> absence_;
  MemorySum<T> memory_sum_;
  const std::size_t most_waves_;
  std::vector<Wave> waves_{1};           // those that have been used, and the first one
  std::map<WaveKey, std::size_t> open_;  // their numbers
  std::vector<std::size_t> closed_{0};   // the others' numbers
  std::size_t now_ = 0;                  // the wave that is used, or was used last
  Probe probe_{*this};
};

extern template class ClientProcess<float>;
extern template class ClientProcess<double>;

}  // namespace fl
