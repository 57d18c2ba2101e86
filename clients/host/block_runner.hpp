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

#include "clients/host/cohort_messages.hpp"
#include "clients/host/message_measures.hpp"
#include "clients/host/message_writer.hpp"
#include "clients/learning/device_training.hpp"
#include "clients/learning/local_update.hpp"
#include "clients/learning/oracle.hpp"
#include "compressors/conversation.hpp"
#include "compressors/exchange.hpp"
#include "compressors/feedback/feedback.hpp"
#include "compressors/postprocessors/postprocessor.hpp"
#include "fl_core/memory/thread_pool.hpp"
#include "fl_core/ops/matrix_products.hpp"
#include "fl_core/round/cohort_runner.hpp"
#include "fl_core/round/round_times.hpp"

namespace fl {

struct BlockRunnerOptions {
  std::uint32_t block = 0;   // clients per block; 0 = as many as keep the block's vectors in cache
  bool materialise = false;  // messages are encoded, and their receiver decodes the bytes
  bool counts_bits = true;   // false: the bits of messages stay 0, because their owner counts them when it needs them
  PublishedMetrics published_metrics = PublishedMetrics::none;
  Device device = Device::cpu;                     // where clients train and operators run, if they can
  Device memory = Device::managed;                 // of vectors, state and messages with a GPU; cuda: the host follows no pointer to them
  bool trains_on_cpu = false;                      // all clients train on the CPU whatever the device, with the CPU's bytes
  MatrixProducts products = MatrixProducts::full;  // values other than full need clients that train on a GPU
  ParameterKinds kinds;                            // of the model
  RoundTimes* times = nullptr;                     // filled unless null
};

// The first local vectors of clients that something else than a simulation computed. They lie on the host.
template <class T>
class GivenVectors {
 public:
  virtual ~GivenVectors() = default;
  // Returns the finite vectors [K,P] of a block. They stay as they are until the exchange has ended.
  [[nodiscard]] virtual BatchView<const T> of(const ClientBlock<T>& block) const = 0;
};

// The parts of a run that make up simulated clients. All of them outlive the runner.
template <class T>
struct BlockRunnerParts {
  const LocalUpdate<T>& local_update;
  const Feedback<T>& feedback;
  const Exchange<T>& exchange;
  const GradientOracle<T>* oracle;  // null if vectors are given
  ThreadPool& pool;
  ClientState<T>& state;         // of the clients that the runner computes
  const SharedState<T>& shared;  // the replica of the runner's process
  ClientPostprocessor<T> postprocessor{};
  const GivenVectors<T>* given = nullptr;  // these take the place of the local update's vectors; for a runner on the CPU
};

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
  // Memory that one thread reuses from block to block.
  struct Scratch {
    std::vector<Buffer<T>> vectors;  // [K,P] of each local vector without an in-place slot
    RoundTimes times;                // of this thread in this phase, if times are measured
  };
  template <class Work>
  void for_each_block(const Work& work);
  template <class Work>
  void on_host(const Exec& exec, const ClientBlock<T>& block, const Work& work);
  [[nodiscard]] const Exec& host_exec(const Exec& exec) const { return exec.device == Device::cpu ? exec : parts_.pool.exec(0); }
  [[nodiscard]] ClientBlock<T> open_block(const Exec& exec, const ClientRound<T>& round, std::uint32_t index);
  void train(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block);
  // Returns whether operators read given vectors where they are. Otherwise these are copied, because the host walks the block's vectors or
  // they have to outlive a phase.
  [[nodiscard]] bool reads_given() const {
    return parts_.given != nullptr && plan_.host_walks.empty() && parts_.exchange.num_phases() == 1;
  }
  void take_given(const ClientBlock<T>& block);
  // Returns the models at which the clients of a block begin: w, or, in `room` [K,P] unless it is null, their own models, w - offset_factor
  // m_i with the weights that they keep. Entries of running averages are those of w.
  [[nodiscard]] BatchView<const T> start_of(const ClientRound<T>& round, const ClientBlock<T>& block, T* room) const;
  // Runs the local updates of the block on the CPU.
  void train_on_cpu(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block);
  // Runs the local updates into rows on the host and copies these to the block's rows.
  void train_and_upload(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block);
  [[nodiscard]] bool is_plain() const { return options_.device != Device::cpu && options_.memory == Device::cuda; }
  void refuse_non_finite(const ClientBlock<T>& block);
  void postprocess(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block);
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
  void resize_blocks(const ClientRound<T>& round);
  void keep_updates_of(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block);
  void open_own(const ClientRound<T>& round, const ClientBlock<T>& block);
  void clear_unshared(const Exec& exec, const ClientRound<T>& round, const BatchView<T>& rows);

  // A local vector: the client slot that receives it, or memory of its own.
  struct LocalVector {
    std::string in_place_slot{};  // or ""
    Buffer<T> trained{};          // [K,P] of a block that was trained on the host
  };
  // A round that is open.
  struct Wave {
    std::shared_ptr<CohortMessages<T>> sent;
    std::vector<Buffer<T>> vectors;  // [M,P] of each local vector that must outlive its block (several phases)
  };
  void select(std::size_t wave, bool begins);
  [[nodiscard]] MessageBatch<T> batch(std::size_t cohort) const;
  struct KeptUpdates {
    bool are_wanted = false;
    Buffer<T> rows;  // [M,P]
  };
  // The division of a cohort into blocks.
  struct Blocks {
    std::uint32_t size = 1, count = 0;
    std::size_t stride = 0;  // between the vectors of a block that have no slot
  };
  struct OnDevice {
    explicit OnDevice(Device device) : stream(device), workspace(device), exec{.device = device} {
      exec.stream = stream.get();
      exec.workspace = &workspace;
    }
    std::unique_ptr<DeviceTraining<T>> training{};  // null: clients train on the CPU
    DeviceStream stream;
    Workspace workspace;
    Exec exec;
  };

  BlockRunnerParts<T> parts_;
  const FeedbackPlan plan_;
  BlockRunnerOptions options_;
  MessageMeasures<T> measuring_;
  MessageWriter<T> writer_;
  OnDevice on_device_;
  std::vector<LocalVector> vectors_;
  std::vector<std::string> swapped_;  // double-buffered slots of the local update
  const std::size_t max_cohort_;
  std::vector<Wave> waves_;
  Wave* now_ = nullptr;                                   // that is used, or was used last
  std::vector<std::shared_ptr<CohortMessages<T>>> held_;  // of rounds that ended while a batch had them; used again when it is gone
  std::vector<Scratch> scratch_;                          // per thread
  KeptUpdates kept_;
  Blocks blocks_;
};

}  // namespace fl
