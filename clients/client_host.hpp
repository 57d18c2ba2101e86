// The clients of this process: their state, and the block runner that computes them.
//
// This class makes every move of client state between two rounds. It brings rows into memory when a round opens, settles the error memory
// of clients that were absent, and moves state when the round closes and messages are acknowledged. The server sees the clients only
// through CohortRunner, measures only through ClientProbe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "clients/absence.hpp"
#include "clients/block_runner.hpp"
#include "clients/memory_sum.hpp"
#include "fl_core/round/client_probe.hpp"
#include "fl_core/round/cohort_runner.hpp"

namespace fl {

template <class T>
class ClientHost final : public CohortRunner<T> {
 public:
  // All arguments outlive the host; `state` and `shared` are the runner's.
  ClientHost(const RunSettings& run, AbsenceRule absence, bool runs_memory_sum, ClientState<T>& state, const SharedState<T>& shared,
             BlockRunner<T>& runner, ThreadPool& pool);

  void open_round(const RoundView<T>& round, const RoundOpening<T>& opening) override;
  void skip_round(std::uint32_t round) override;
  [[nodiscard]] bool reads_ahead() const override { return state_.reads_ahead(); }
  std::span<const ClientMessage<T>> exchange(const RoundView<T>& round, int phase) override;
  [[nodiscard]] const Payload<T>* payload(std::size_t channel, std::uint32_t position) const override {
    return runner_.payload(channel, position);
  }
  [[nodiscard]] std::span<const T> statistics(std::uint32_t position) const override;
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
    explicit Probe(ClientHost& host) : host_(host) {}
    void keep_updates(bool keep) override { host_.runner_.keep_updates(keep); }
    [[nodiscard]] BatchView<const T> updates(std::size_t cohort, std::size_t P) const override { return host_.runner_.updates(cohort, P); }
    [[nodiscard]] std::span<const ClientMeasures> measures() const override { return host_.runner_.measures(); }
    [[nodiscard]] std::span<const OperatorError> operator_errors() const override { return host_.runner_.operator_errors(); }
    [[nodiscard]] std::vector<double> error_memory_sum(std::uint32_t round, std::span<const double> replacement) override {
      return host_.memory_sum_.value(round, replacement);
    }
    void add_statistics_moves(std::span<const std::uint8_t> delivered, std::span<double> mean) override;
    void read_statistics_move(std::uint32_t position, std::span<double> move) override;
    void put_own_statistics(std::uint32_t client, T* x) override;

   private:
    ClientHost& host_;
  };

  const RunSettings& run_;
  ClientState<T>& state_;
  const SharedState<T>& shared_;
  BlockRunner<T>& runner_;
  Absence<T> absence_;
  MemorySum<T> memory_sum_;
  std::vector<std::uint32_t> cohort_;  // of the round that is open, or was open last
  std::vector<T> received_;            // [P] w without statistics, if these stay with the clients
  Probe probe_{*this};
};

extern template class ClientHost<float>;
extern template class ClientHost<double>;

}  // namespace fl
