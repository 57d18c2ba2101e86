// A conversation runs an operator over one message, from its first phase to its last, for one client or many.
//
//   open                         sets the round and its step size
//   send                         clients: makes C(p) of this phase, with the raw values of excluded tensors beside it
//   receive                      all: updates the shared state by the mean of the phase's messages; the last mean is the mean of C(p)
//   hold                         runs all phases with clients on the host, who form the whole cohort
//   known_levels, reconstruct    receiver: returns the known properties of a message; turns a message that travelled as a code into entries
//
// Most operators have one phase and no shared state. The caller keeps the operator's state of each client and passes rows of it (Senders).
// The shared state [cohort_state_size] belongs to the conversation or to the run.
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

// Returns a view of [K,P] consecutive rows.
template <class T>
[[nodiscard]] BatchView<T> rows_view(T* data, std::size_t K, std::size_t P) {
  return {data, nullptr, static_cast<std::uint32_t>(K), P, P};
}

// The clients of one block: their inputs and the operator's state of each client. The rows lie on the operator's device.
template <class T>
struct Senders {
  std::span<const std::uint32_t> clients;  // [K] ids
  Affine<T> input{};                       // [K,P]
  StateWrite<T> state{};                   // [K,P], written in the last phase
  BatchView<const T> remembered{};         // [K,L], L = client_state_size
  BatchView<T> remember{};                 // [K,L], written in full; takes effect when the message arrives

  [[nodiscard]] Senders slice(std::uint32_t first, std::uint32_t count) const {
    return {clients.subspan(first, count), input.slice(first, count), state.slice(first, count), remembered.slice(first, count),
            remember.slice(first, count)};
  }
};

// The messages of all phases and the vectors that they represent.
template <class T>
struct Transcript {
  std::vector<std::vector<Payload<T>>> messages;  // [phase][K]
  std::vector<T> alone;  // [K,P] C(p): the vector that each client's last message represents if no other message arrives
  std::vector<T> mean;   // [P] mean of C(p) if all messages arrive
};

// Returns the scope in which the message of a phase is encoded: the operator's scope, or one segment of raw numbers if the operator has
// several phases.
template <class T>
[[nodiscard]] FL_API Scope message_scope(const Compressor<T>& op, const Scope& scope, int phase);

template <class T>
class FL_API Conversation {
 public:
  // `scope` is already adapted by the operator and `random_key` is that of the channel. Operator and scope must outlive the conversation.
  // The conversation owns the shared state, which starts as in a run.
  Conversation(Compressor<T>& op, const Scope& scope, std::uint64_t random_key);
  // As above, but the caller owns the shared state, which lies on the host (empty if the operator has none).
  Conversation(Compressor<T>& op, const Scope& scope, std::uint64_t random_key, std::span<T> shared);
  Conversation(const Conversation&) = delete;

  // Reads shared state that lies on the device `lies_on` and that the caller updates. receive() must then not be called.
  void read_shared(std::span<const T> shared, Device lies_on);

  // Begins the message of a round, or continues with the given phase.
  void open(std::uint32_t round, const StepSizes& steps = {}, int phase = 0);

  [[nodiscard]] int num_phases() const { return op_.num_phases(); }
  [[nodiscard]] int phase() const { return phase_; }
  [[nodiscard]] bool is_last() const { return phase_ + 1 == num_phases(); }
  [[nodiscard]] bool is_over() const { return phase_ == num_phases(); }
  [[nodiscard]] std::size_t length() const { return op_.message_length(phase_, scope_); }  // length of this phase's messages

  // Makes the messages [K] of a block in this phase.
  void send(const Exec& exec, const Senders<T>& clients, std::span<Payload<T>* const> messages) const;
  // Updates the shared state by the mean [length] of this phase's messages and moves to the next phase. After the last phase `estimate` [P]
  // is the mean of C(p).
  void receive(std::span<const T> mean, std::span<T> estimate);

  // Receives each message and its scope before the message is used.
  using Inspect = std::function<void(const Payload<T>&, const Scope&)>;
  // Runs all phases with these clients, who send in blocks of at most `block`.
  [[nodiscard]] Transcript<T> hold(const Exec& exec, const Senders<T>& clients, std::uint32_t block = ~0u, const Inspect& inspect = {});

  // Returns the properties of levels in this round's messages that the receiver knows without being told.
  [[nodiscard]] MessageLevels known_levels() const { return op_.known_levels(context({}), scope_); }
  // Turns received messages of these clients into entries.
  void reconstruct(const Exec& exec, std::span<const std::uint32_t> clients, std::span<Payload<T>* const> messages) const;

 private:
  [[nodiscard]] CompressContext<T> context(std::span<const std::uint32_t> clients) const;
  [[nodiscard]] std::vector<Payload<T>> send_in_blocks(const Exec& exec, const Senders<T>& clients, std::uint32_t block) const;
  void add_alone(const std::vector<Payload<T>>& messages, std::vector<T>& alone) const;

  Compressor<T>& op_;
  const Scope& scope_;
  const std::uint64_t random_key_;
  std::vector<T> own_;         // the shared state, if the conversation owns it
  std::span<T> moved_;         // the shared state that receive() updates (own_ or the caller's); empty if it is read-only
  std::span<const T> shared_;  // the shared state that send() reads
  Device shared_device_ = Device::cpu;
  std::uint32_t round_ = 0;
  StepSizes steps_;
  int phase_ = 0;
};

}  // namespace fl
