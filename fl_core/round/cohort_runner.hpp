// The clients as the server sees them: simulated blocks today, remote peers tomorrow.
#pragma once

#include <cstddef>
#include <cstdint>
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
  ChannelBits channel_bits{};         // of them, by channel; the header is the rest
  std::uint64_t statistics_bits = 0;  // of them, of running statistics
  bool is_counted = true;             // false: it comes from another process, and its receiver counts what it holds
  bool refused = false;               // its vectors or its message are not finite: nothing is sent from this phase on, or kept
  double work = 1;  // what its vectors were divided by when RunSettings::normalises(); follows from rows and settings: no bits
  // The message as it travels, until the next phase. Empty where nothing travels, because server and clients share a process: then the
  // server reads CohortRunner::payload and statistics.
  std::span<const std::byte> encoded{};
};

// What the server says when a round opens, beside the order and the model.
template <class T>
struct RoundOpening {
  std::span<const T> replacement{};              // [P] takes the place of the error memory of those who come back; empty: the rule has none
  std::span<const std::uint32_t> next_cohort{};  // that of the round after, where it is known
  ModelWriter* model = nullptr;                  // writes the model for clients elsewhere; null: they share the server's process
};

template <class T>
class CohortRunner {
 public:
  virtual ~CohortRunner() = default;

  // A round opens for its cohort: clients learn the order, the model and what is shared, and those who come back settle their error memory.
  virtual void open_round(const RoundView<T>& round, const RoundOpening<T>& opening) = 0;
  // A round without clients passes.
  virtual void skip_round(std::uint32_t round) = 0;
  // Whether it is of use to say who comes next.
  [[nodiscard]] virtual bool reads_ahead() const { return false; }
  // Clients compute (phase 0) and send. Returns one message per cohort position, in order.
  virtual std::span<const ClientMessage<T>> exchange(const RoundView<T>& round, int phase) = 0;
  // The receiver refuses a message: it is none, or not the shortest of its content.
  virtual void refuse(std::uint32_t position, const std::string& why) { (void)position, (void)why; }
  // The content of a channel of a message that did not travel: null where that channel says nothing in this phase.
  [[nodiscard]] virtual const Payload<T>* payload(std::size_t channel, std::uint32_t position) const = 0;
  // The running statistics in such a message of phase 0, [S] as RunSettings::statistics; empty where it is silent, where there are none and
  // where they stay with the clients.
  [[nodiscard]] virtual std::span<const T> statistics(std::uint32_t position) const = 0;
  // The mean of a phase's messages of one channel, which everyone learns before the next phase and by which the operator's shared slot has
  // moved at the server (Compressor::absorb_mean). Clients that hold a replica of their own move it alike; those of the server's process
  // share its replica and have nothing to do.
  virtual void learn_mean(std::size_t channel, int phase, std::span<const T> mean) { (void)channel, (void)phase, (void)mean; }
  // The round closes. Which messages arrived ([M], 1 = delivered): only now does client state move.
  virtual void close_round(const RoundView<T>& round, std::span<const std::uint8_t> delivered) = 0;
  // The error memory [P] that the client at this position sends when the round has closed, where the rule of absence asks for it.
  [[nodiscard]] virtual std::span<const T> error_memory(std::uint32_t position) = 0;
  // Writes or reads what clients remember between rounds.
  virtual void persist(Archive& archive) = 0;
};

}  // namespace fl
