// A conversation: how an operator is driven over one message, from its first phase to its last, for one client or many.
//
//   open        the round and its step size
//   send        clients: C(p) as this phase has it, and the raw values of excluded tensors beside it
//   receive     everyone: the mean of the phase's messages moves the shared state; the last one gives the mean of C(p)
//   hold        all phases with clients on the host, who are all there are
//   known_levels, reconstruct    the receiver: what it knows of a message, and what it makes of one that travelled as a code
//
// Most operators have one phase and no shared state. Who drives an operator keeps what the operator remembers of each client, and gives
// rows of it (Senders); the shared state [cohort_state_size] belongs to the conversation or to the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "compressors/compressor.hpp"
#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"

namespace fl {

// [K,P] one row after another.
template <class T>
[[nodiscard]] BatchView<T> rows_view(T* data, std::size_t K, std::size_t P) {
  return {data, nullptr, static_cast<std::uint32_t>(K), P, P};
}

// Clients of one block: what they compress, and what their operator remembers of them. Rows lie where the operator runs.
template <class T>
struct Senders {
  std::span<const std::uint32_t> clients;  // [K] ids
  Affine<T> input{};                       // [K,P]
  StateWrite<T> state{};                   // [K,P], written in the last phase
  BatchView<const T> remembered{};         // [K,L], L = client_state_size
  BatchView<T> remember{};                 // [K,L], written in full; it takes effect when the message arrives

  [[nodiscard]] Senders slice(std::uint32_t first, std::uint32_t count) const {
    return {clients.subspan(first, count), input.slice(first, count), state.slice(first, count), remembered.slice(first, count),
            remember.slice(first, count)};
  }
};

// What all phases of a message sent, and what it stands for.
template <class T>
struct Transcript {
  std::vector<std::vector<Payload<T>>> messages;  // [phase][K]
  std::vector<T> alone;                           // [K,P] C(p): what each client's last message stands for if no other one arrives
  std::vector<T> mean;                            // [P] of C(p), when all arrive
};

// The vector of one phase's message, in which it is encoded: the operator's scope, or with several phases one segment of raw numbers.
template <class T>
[[nodiscard]] FL_API Scope message_scope(const Compressor<T>& op, const Scope& scope, int phase);

template <class T>
class FL_API Conversation {
 public:
  // The scope is as the operator adapted it, the key that of its channel; operator and scope outlive the conversation. The shared state is
  // the conversation's own and begins as that of a run does.
  Conversation(Compressor<T>& op, const Scope& scope, std::uint64_t random_key);
  // The same with the shared state of someone else on the host, empty without any.
  Conversation(Compressor<T>& op, const Scope& scope, std::uint64_t random_key, std::span<T> shared);
  Conversation(const Conversation&) = delete;

  // Sends from shared state that someone else moves, on the device that is named: then nobody receives here.
  void read_shared(std::span<const T> shared, Device lies_on);

  // Begins the message of a round, or goes on with one of its phases.
  void open(std::uint32_t round, double step_size = 1, int phase = 0);

  [[nodiscard]] int num_phases() const { return op_.num_phases(); }
  [[nodiscard]] int phase() const { return phase_; }
  [[nodiscard]] bool is_last() const { return phase_ + 1 == num_phases(); }
  [[nodiscard]] bool is_over() const { return phase_ == num_phases(); }
  [[nodiscard]] std::size_t length() const { return op_.message_length(phase_, scope_); }  // of this phase's messages

  // Makes the messages [K] of a block in this phase.
  void send(const Exec& exec, const Senders<T>& clients, std::span<Payload<T>* const> messages) const;
  // Moves the shared state by the mean [length] of this phase's messages, and goes on to the next phase. After the last one `estimate` [P]
  // is the mean of C(p).
  void receive(std::span<const T> mean, std::span<T> estimate);

  // Sees a message and the vector that it is of, before anyone reads it.
  using Inspect = std::function<void(const Payload<T>&, const Scope&)>;
  // Holds all phases with these clients, who send in blocks of at most `block`.
  [[nodiscard]] Transcript<T> hold(const Exec& exec, const Senders<T>& clients, std::uint32_t block = ~0u, const Inspect& inspect = {});

  // Returns what the receiver knows of levels in this round's messages without being told.
  [[nodiscard]] MessageLevels known_levels() const { return op_.known_levels(context({}), scope_); }
  // Turns messages of these clients, as they travelled, into entries.
  void reconstruct(const Exec& exec, std::span<const std::uint32_t> clients, std::span<Payload<T>* const> messages) const;

 private:
  [[nodiscard]] CompressContext<T> context(std::span<const std::uint32_t> clients) const;
  [[nodiscard]] std::vector<Payload<T>> send_in_blocks(const Exec& exec, const Senders<T>& clients, std::uint32_t block) const;
  void add_alone(const std::vector<Payload<T>>& messages, std::vector<T>& alone) const;

  Compressor<T>& op_;
  const Scope& scope_;
  const std::uint64_t random_key_;
  std::vector<T> own_;         // the shared state, where the conversation keeps it
  std::span<T> moved_;         // the same, or that of someone else; empty where it is only read
  std::span<const T> shared_;  // what is read
  Device shared_device_ = Device::cpu;
  std::uint32_t round_ = 0;
  double step_size_ = 1;
  int phase_ = 0;
};

}  // namespace fl
