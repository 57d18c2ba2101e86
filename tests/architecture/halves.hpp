// Runs a method as two halves in one process that communicate as over a network. Each half is built from the scenario separately, holds
// only the slots of its own side and a replica of the shared slots, and receives from the other half only bytes.
//
//   ClientHalf  local updates, operators, client state; no server state, participation, server's optimizer or downlink exists in it
//   Wire        the CohortRunner of the server's half: encodes data for the clients, and passes on the bytes of their messages
//   ServerHalf  the round, the server's state; no client state exists in it
// Values that were not sent are NaN in the clients' replica, so that a client that reads them too early, or at all, spoils the run.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fl_core/state/archive.hpp"
#include "scenarios/experiment/client_side.hpp"
#include "scenarios/experiment/server_side.hpp"

namespace fl::test {

using Bytes = std::vector<std::byte>;

// Writes or reads an order.
inline void persist_order(Archive& archive, RoundOrder& order) {
  archive.value(order.round);
  archive.value(order.step_size);
  archive.value(order.server_step);
  archive.value(order.coin);
  archive.value(order.measure);
  archive.list(order.cohort);
}

// Writes or reads the shared slots that travel in one way.
template <class T>
void persist_slots(Archive& archive, SharedState<T>& shared, SlotSync sync) {
  for (const SlotSpec& slot : shared.specs())
    if (slot.sync == sync) archive.array(shared.slot(slot.name));
}

template <class T>
void forget(SharedState<T>& shared, const auto& which) {
  for (const SlotSpec& slot : shared.specs())
    if (which(slot)) std::ranges::fill(shared.slot(slot.name), std::numeric_limits<T>::quiet_NaN());
}

template <class T>
class ClientHalf {
 public:
  ClientHalf(const Scenario& scenario, FederatedProblem<T>& problem, std::size_t max_cohort, const StatePaging& paging = {})
      : pool_(1),
        method_(make_method<T>(scenario, problem.layers(), problem.shards().size(), Device::cpu)),
        run_(run_settings(scenario, method_, problem)),
        shared_(run_.P) {
    declare_slots<T>(method_, run_, {.shared = &shared_});
    side_ = std::make_unique<ClientSide<T>>(scenario, problem, method_, run_, SharedReplica<T>{shared_, true},
                                            CohortSizes{max_cohort, max_cohort}, ClientPlace{.materialise = true, .paging = paging}, pool_);
    forget(shared_, [](const SlotSpec& slot) { return slot.sync == SlotSync::broadcast || slot.sync == SlotSync::initial; });
    if (method_.local->traits().needs_optimum) side_->prepare(problem.optimum(scenario.evaluate.optimum).x);
  }

  // Reads the order, the model and the shared slots that travel when a round opens.
  void open(const Bytes& bytes) {
    Archive archive(bytes);
    persist_order(archive, order_);
    reference_.resize(run_.P);
    archive.array(std::span(reference_));
    if (is_first_) persist_slots(archive, shared_, SlotSync::initial);
    is_first_ = false;
    persist_slots(archive, shared_, SlotSync::broadcast);
    std::vector<T> replacement;  // of the error memory of clients that return
    archive.list(replacement);
    archive.finish();
    side_->clients().open_round(view(), {.replacement = replacement});
    forget(shared_, [](const SlotSpec& slot) { return slot.sync == SlotSync::broadcast_at_close || slot.derive_alone_reads_it; });
  }

  // Returns the messages of all clients in a phase: the counts of the ledger, and the bytes of each message that was not refused.
  [[nodiscard]] Bytes send(int phase) {
    Archive archive;
    const MessageBatch<T> batch = side_->clients().exchange(view(), phase);
    for (const ClientMessage<T>& message : batch.messages) {
      ClientMessage<T> counted = message;
      Bytes sent(message.encoded.begin(), message.encoded.end());
      counted.encoded = {};  // an address, which is meaningless in the other half
      archive.value(counted);
      archive.list(sent);
    }
    return archive.bytes();
  }

  void learn_mean(std::size_t c, int phase, const Bytes& bytes) {
    std::vector<T> mean(method_.exchange.channels[c].length(phase));
    Archive archive(bytes);
    archive.array(std::span(mean));
    archive.finish();
    side_->clients().learn_mean(c, phase, mean);
  }

  // Reads which clients' messages arrived, and the shared slots that travel when a round closes.
  void close(const Bytes& bytes) {
    std::vector<std::uint8_t> delivered;
    Archive archive(bytes);
    archive.list(delivered);
    persist_slots(archive, shared_, SlotSync::broadcast_at_close);
    archive.finish();
    side_->clients().close_round(view(), delivered);
  }

  // Returns the error memory that a client sends when the round has closed.
  [[nodiscard]] Bytes error_memory(std::uint32_t position) {
    const std::span<const T> memory = side_->clients().error_memory(position);
    std::vector<T> values(memory.begin(), memory.end());
    Archive archive;
    archive.array(std::span(values));
    return archive.bytes();
  }
  void skip(std::uint32_t round) { side_->clients().skip_round(round); }
  void persist_state(Archive& archive) { side_->clients().persist(archive); }

  [[nodiscard]] SharedState<T>& shared() { return shared_; }
  [[nodiscard]] ClientState<T>& state() { return side_->state(); }
  [[nodiscard]] const RunMethod<T>& method() const { return method_; }

 private:
  [[nodiscard]] RoundView<T> view() const { return {run_, order_, reference_}; }

  ThreadPool pool_;
  RunMethod<T> method_;
  RunSettings run_;
  SharedState<T> shared_;
  std::unique_ptr<ClientSide<T>> side_;
  RoundOrder order_;
  std::vector<T> reference_;
  bool is_first_ = true;
};

// The clients as seen by the server's half: all inputs and outputs are bytes.
template <class T>
class Wire final : public CohortRunner<T> {
 public:
  // `shared` is the server's state.
  Wire(ClientHalf<T>& clients, SharedState<T>& shared) : clients_(clients), shared_(shared) {}

  void open_round(const RoundView<T>& round, const RoundOpening<T>& known) override { clients_.open(opening(round, known.replacement)); }
  void skip_round(std::uint32_t round) override { clients_.skip(round); }
  MessageBatch<T> exchange(const RoundView<T>& round, int phase) override {
    const Bytes bytes = clients_.send(phase);
    Archive archive(bytes);
    messages_.resize(round.order.cohort.size());
    sent_.resize(messages_.size());
    for (std::uint32_t i = 0; i < messages_.size(); ++i) {
      archive.value(messages_[i]);
      archive.list(sent_[i]);
      EXPECT_EQ(messages_[i].client, round.order.cohort[i]);
      EXPECT_EQ(messages_[i].refused, sent_[i].empty());
      messages_[i].encoded = sent_[i];
    }
    archive.finish();
    return {.messages = messages_};
  }
  void learn_mean(std::size_t channel, int phase, std::span<const T> mean) override {
    std::vector<T> values(mean.begin(), mean.end());
    Archive archive;
    archive.array(std::span(values));
    clients_.learn_mean(channel, phase, archive.bytes());
  }
  void close_round(const RoundView<T>&, std::span<const std::uint8_t> delivered) override {
    std::vector<std::uint8_t> arrived(delivered.begin(), delivered.end());
    Archive archive;
    archive.list(arrived);
    persist_slots(archive, shared_, SlotSync::broadcast_at_close);
    clients_.close(archive.bytes());
  }
  [[nodiscard]] std::span<const T> error_memory(std::uint32_t position) override {
    memory_.resize(round_length_);
    const Bytes bytes = clients_.error_memory(position);
    Archive archive(bytes);
    archive.array(std::span(memory_));
    return memory_;
  }
  void persist(Archive& archive) override { clients_.persist_state(archive); }

 private:
  Bytes opening(const RoundView<T>& round, std::span<const T> replacement) {
    round_length_ = round.P();
    Archive archive;
    RoundOrder order = round.order;
    std::vector<T> reference(round.reference.begin(), round.reference.end());
    persist_order(archive, order);
    archive.array(std::span(reference));
    if (is_first_) persist_slots(archive, shared_, SlotSync::initial);
    is_first_ = false;
    persist_slots(archive, shared_, SlotSync::broadcast);
    std::vector<T> values(replacement.begin(), replacement.end());
    archive.list(values);
    return archive.bytes();
  }

  ClientHalf<T>& clients_;
  SharedState<T>& shared_;
  std::vector<ClientMessage<T>> messages_;
  std::vector<Bytes> sent_;  // [M]
  std::vector<T> memory_;    // [P] of the last requested client
  std::size_t round_length_ = 0;
  bool is_first_ = true;
};

template <class T>
class ServerHalf {
 public:
  // Starts from x_1 [P].
  ServerHalf(const Scenario& scenario, const FederatedProblem<T>& problem, ClientHalf<T>& clients, double step_size, std::vector<T> start)
      : pool_(1),
        model_(std::move(start)),
        method_(make_method<T>(scenario, problem.layers(), problem.shards().size(), Device::cpu)),
        run_(run_settings(scenario, method_, problem)),
        shared_(run_.P),
        wire_(clients, shared_) {
    declare_slots<T>(method_, run_, {.shared = &shared_});
    side_ = make_server_side<T>(scenario, problem.layers(), make_server_parts<T>(scenario, problem), method_, run_, shared_, {wire_},
                                {.step_size = step_size}, std::span(model_), pool_);
    start_kept<T>(run_, model_, shared_, *side_.state);
  }

  void play(std::uint32_t round) { side_.round->play(round, false); }
  [[nodiscard]] std::span<const T> model() const { return model_; }
  [[nodiscard]] SharedState<T>& shared() { return shared_; }
  [[nodiscard]] ServerState<T>& state() { return *side_.state; }
  [[nodiscard]] const ServerRounds<T>& round() const { return *side_.round; }
  [[nodiscard]] const RunSettings& run() const { return run_; }
  [[nodiscard]] const Ledger& ledger() const { return side_.round->ledger(); }

 private:
  ThreadPool pool_;
  std::vector<T> model_;
  RunMethod<T> method_;
  RunSettings run_;
  SharedState<T> shared_;
  Wire<T> wire_;
  ServerSide<T> side_;
};

}  // namespace fl::test
