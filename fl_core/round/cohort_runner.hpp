// The server's interface to the clients: simulated blocks or remote peers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fl_core/message/down_message.hpp"
#include "fl_core/message/ledger.hpp"
#include "fl_core/message/payload.hpp"
#include "fl_core/round/client_measures.hpp"
#include "fl_core/round/round_views.hpp"

namespace fl {

// One message: all channels of one client in one phase.
template <class T>
struct ClientMessage {
  std::uint32_t client = 0;
  BitCount bits{};
  ChannelBits channel_bits{};       // part of `bits`, by channel; the remaining bits are the header
  std::uint64_t averaged_bits = 0;  // part of `bits`, for averaged parameters
  bool is_counted = true;           // false: the message comes from another process, and its receiver counts its bits
  bool refused = false;             // its vectors or its message are not finite: from this phase on nothing is sent, and no state is kept
  bool is_absent = false;           // no message arrived in time; it is refused too
  double work = 1;  // divisor of its vectors when RunSettings::normalises(); it follows from rows and settings and needs no bits
  // The encoded message. It is empty if server and clients share a process: the server then reads the batch's contents and averages.
  std::span<const std::byte> encoded{};
};

// The messages of a cohort in one phase. A batch is a value: what it refers to stays as it is until the next phase of its round, and after
// that for as long as a copy of the batch exists.
template <class T>
struct MessageBatch {
  std::span<const ClientMessage<T>> messages{};  // [M] by cohort position
  // Contents of messages that were not encoded, by channel: [M]; null if the channel is silent in this phase.
  std::vector<std::vector<const Payload<T>*>> contents{};
  // Values of averaged parameters in such messages of phase 0: [M], each in the order of ParameterKinds::averaged; empty if the message is
  // silent, or if no parameter is averaged.
  std::vector<std::span<const T>> averaged{};
  std::shared_ptr<const void> memory{};  // holds all of these; null: the clients hold them until the next phase
};

// The data that the server sends when a round opens, in addition to the order and the model.
template <class T>
struct RoundOpening {
  std::span<const T> replacement{};              // [P] replaces the error memory of returning clients; empty: not used by the rule
  std::span<const std::uint32_t> next_cohort{};  // the cohort of the following round, if known
  bool derived_is_known = false;                 // the clients' replica has the derived slots of this round, because they missed others
  ModelWriter* model = nullptr;                  // encodes the model for remote clients; null: clients share the server's process
};

template <class T>
class CohortRunner {
 public:
  virtual ~CohortRunner() = default;

  // Returns 1 for each member of a cohort that can take part in the round, by position, or an empty vector if all can. The others are not
  // asked.
  [[nodiscard]] virtual std::vector<std::uint8_t> present(std::uint32_t round, std::span<const std::uint32_t> cohort) {
    (void)round, (void)cohort;
    return {};
  }
  // Opens a round for its cohort: clients receive the order, the model and shared state, and returning clients adjust their error memory.
  virtual void open_round(const RoundView<T>& round, const RoundOpening<T>& opening) = 0;
  // Notes a round without clients.
  virtual void skip_round(std::uint32_t round) = 0;
  // Returns whether the runner makes use of the next cohort.
  [[nodiscard]] virtual bool reads_ahead() const { return false; }
  // Lets clients compute (phase 0) and send. Returns one message per cohort position, in order.
  [[nodiscard]] virtual MessageBatch<T> exchange(const RoundView<T>& round, int phase) = 0;
  // Rejects a message that is invalid or not the shortest encoding of its content.
  virtual void refuse(std::uint32_t position, const std::string& why) { (void)position, (void)why; }
  // Distributes the mean of a phase's messages of one channel. All clients receive it before the next phase; at the server it has already
  // changed the operator's shared slot (Compressor::absorb_mean). Clients with a replica of their own change it in the same way.
  virtual void learn_mean(std::size_t channel, int phase, std::span<const T> mean) { (void)channel, (void)phase, (void)mean; }
  // Closes the round. `delivered` [M] is 1 for each message that arrived. Client state changes only now.
  virtual void close_round(const RoundView<T>& round, std::span<const std::uint8_t> delivered) = 0;
  // Returns the error memory [P] that the client at this position sends after the round has closed, if the absence rule requires it.
  [[nodiscard]] virtual std::span<const T> error_memory(std::uint32_t position) = 0;
  // Returns whether that memory has arrived in time.
  [[nodiscard]] bool has_error_memory(std::uint32_t position) const { return lost_memories_.empty() || lost_memories_[position] == 0; }
  // Writes or reads the clients' state between rounds.
  virtual void persist(Archive& archive) = 0;

 protected:
  std::vector<std::uint8_t> lost_memories_;  // [M] 1 = the client's error memory of the last round did not arrive in time; empty = none
};

}  // namespace fl
