// Simulated clients, computed in blocks of K: one small block at a time per thread on a CPU.
//
// On a GPU (BlockRunnerOptions::device) a block holds as much of the cohort as fits into memory, and blocks run one after another. Vectors,
// state and messages lie in managed memory. Operators run on the GPU. Work without a GPU form runs on the CPU's threads, which share the
// block: training, feedbacks that move state themselves, operators without a CUDA half, and message lengths computed from the GPU's counts.
// If no part of a run makes the host walk vectors (FeedbackPlan::host_walks and its kin), vectors, state and messages may lie in the GPU's
// own memory instead (BlockRunnerOptions::memory). Vectors that the host computes, and messages that the GPU has not counted completely,
// are then copied; everything else stays in place.
//
// With one phase, a block's vectors are computed, compressed and discarded while they are in the cache. Only messages and new state in a
// shadow slot stay until the round ends. K affects speed alone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "clients/host/block_vectors.hpp"
#include "clients/host/local_training.hpp"
#include "clients/host/message_measures.hpp"
#include "clients/host/message_writer.hpp"
#include "clients/host/runner_parts.hpp"
#include "clients/host/wave_messages.hpp"
#include "compressors/conversation.hpp"
#include "fl_core/round/cohort_runner.hpp"

namespace fl {

template <class T>
class BlockRunner final {
 public:
  // Receives the messages of each block as soon as they are encoded, if materialise is set.
  using Tap = typename MessageWriter<T>::Tap;

  BlockRunner(const BlockRunnerParts<T>& parts, std::size_t max_cohort, BlockRunnerOptions options);

  // Rounds that are open at the same time are waves 0, 1, ...; the state of the clients has the same one selected.
  [[nodiscard]] MessageBatch<T> exchange(const RoundView<T>& view, int phase, std::size_t wave = 0);
  void acknowledge(const RoundView<T>& view, std::span<const std::uint8_t> delivered, std::size_t wave = 0);
  // Return the content of a channel, null if it was silent; the averaged parameters in the client's message and the kept parameters after
  // its work, empty if there are none: of the wave that was used last.
  [[nodiscard]] const Payload<T>* payload(std::size_t channel, std::uint32_t position) const;
  [[nodiscard]] std::span<const T> averaged(std::uint32_t position) const;
  [[nodiscard]] std::span<const T> kept(std::uint32_t position) const;
  [[nodiscard]] std::span<const ClientMeasures> measures() const { return measuring_.values(); }
  // Returns the errors of the measured channel's operator in this round, [M]. Valid if RoundOrder::measure was set.
  [[nodiscard]] std::span<const OperatorError> operator_errors() const { return measuring_.operator_errors(); }

  void set_tap(Tap tap) { writer_.set_tap(std::move(tap)); }
  // Sets whether later rounds keep each client's first vector [M,P] before feedback and compression, not divided by the client's work.
  // keep_updates(false) frees that memory.
  void keep_updates(bool keep);
  [[nodiscard]] BatchView<const T> updates(std::size_t cohort, std::size_t P) const {
    return {kept_.rows.data(), nullptr, static_cast<std::uint32_t>(cohort), P, P};
  }
  // Returns the bytes held for vectors, messages and scratch.
  [[nodiscard]] std::size_t size_bytes() const;
  // Returns an upper bound on the GPU bytes used per round with vectors of P entries, excluding data and client state: vectors, messages
  // that send everything, training, and scratch of operators. Without a GPU the bound is a prediction. most_pinned_bytes() returns the
  // bound on pinned host memory.
  [[nodiscard]] std::uint64_t most_bytes_on_device(std::size_t P) const;
  [[nodiscard]] std::uint64_t most_pinned_bytes() const;

 private:
  template <class Work>
  void for_each_block(const Work& work);
  [[nodiscard]] const Exec& host_exec(const Exec& exec) const { return exec.device == Device::cpu ? exec : parts_.pool.exec(0); }
  [[nodiscard]] BlockForm form_of_blocks() const;
  // Returns whether operators read given vectors where they are. Otherwise these are copied, because the host walks the block's vectors or
  // they have to outlive a phase.
  [[nodiscard]] bool reads_given() const {
    return parts_.given != nullptr && plan_.host_walks.empty() && parts_.exchange.num_phases() == 1;
  }
  void send_block(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block, int phase);
  // `has_vector`: the first vector is in the block's memory, or the new state that replaces it there.
  void send_channel(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block, int phase, std::size_t channel,
                    bool& has_vector);
  void open_memory(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block, const std::string& slot, bool runs,
                   Senders<T>& senders);
  void compress(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block, int phase, std::size_t channel,
                const Send<T>& send);
  void move_state(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block, const StateMove& move,
                  std::span<const std::uint8_t> delivered);
  void add_times(RoundTimes& times);
  void keep_updates_of(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block);
  void clear_unshared(const Exec& exec, const ClientRound<T>& round, const BatchView<T>& rows);

  [[nodiscard]] MessageBatch<T> batch(std::size_t cohort) const;
  struct KeptUpdates {
    bool are_wanted = false;
    Buffer<T> rows;  // [M,P]
  };
  // The GPU that operators run on.
  struct OnDevice {
    explicit OnDevice(Device device) : stream(device), workspace(device), exec{.device = device} {
      exec.stream = stream.get();
      exec.workspace = &workspace;
    }
    DeviceStream stream;
    Workspace workspace;
    Exec exec;
  };

  BlockRunnerParts<T> parts_;
  const FeedbackPlan plan_;
  BlockRunnerOptions options_;
  MessageMeasures<T> measuring_;
  MessageWriter<T> writer_;
  LocalTraining<T> training_;
  OnDevice on_device_;
  WaveMessages<T> messages_;
  BlockVectors<T> vectors_;
  std::vector<RoundTimes> times_;     // by thread, of this phase, if times are measured
  std::vector<std::string> swapped_;  // double-buffered slots of the local update
  KeptUpdates kept_;
};

}  // namespace fl
