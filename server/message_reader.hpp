// The server's end of messages: what each channel of a message says, by cohort position.
//
// A message that travelled is bytes (ClientMessage::encoded): it is decoded here, by the server's own operators, which then make entries of
// it. One that did not travel is read where the clients have it, which is the same content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compressors/exchange.hpp"
#include "fl_core/memory/thread_pool.hpp"
#include "fl_core/round/cohort_runner.hpp"
#include "fl_core/round/round_views.hpp"

namespace fl {

template <class T>
class MessageReader {
 public:
  // Both outlive it.
  MessageReader(const Exchange<T>& exchange, ThreadPool& pool);

  // Reads the messages [M] of a phase; those that were refused say nothing. Counts those that come from other processes, and refuses them
  // where their bytes are no message, or not the shortest of its content. Throws Error for bytes of this process that are no message.
  void read(const RoundView<T>& round, int phase, std::span<const ClientMessage<T>> messages, CohortRunner<T>& clients);

  // The messages [M] of the phase that was read last, counted.
  [[nodiscard]] std::span<const ClientMessage<T>> messages() const { return messages_; }

  // The content of a channel: null where it said nothing in the phase that was read last.
  [[nodiscard]] const Payload<T>* payload(std::size_t channel, std::uint32_t position) const { return contents_[channel][position]; }
  // The running statistics in a client's message of phase 0, [S] as RunSettings::statistics; empty where it is silent, where there are none
  // and where they stay with the clients.
  [[nodiscard]] std::span<const T> statistics(std::uint32_t position) const { return statistics_[position]; }

 private:
  // Returns why the bytes are no message, or "".
  [[nodiscard]] std::string decode(const Exec& exec, const RoundView<T>& round, int phase, ClientMessage<T>& message,
                                   std::uint32_t position);
  [[nodiscard]] std::string count_wire(int phase, std::span<const std::size_t> active_channels, std::span<Payload<T>* const> contents,
                                       std::span<const MessageLevels> known, std::size_t num_statistics, ClientMessage<T>& message) const;

  const Exchange<T>& exchange_;
  ThreadPool& pool_;
  std::vector<ClientMessage<T>> messages_;                // [M]
  std::vector<std::string> errors_;                       // [M] "" = none
  std::vector<std::vector<const Payload<T>*>> contents_;  // by channel: [M]
  std::vector<std::span<const T>> statistics_;            // [M]
  std::vector<std::vector<Payload<T>>> decoded_;          // by channel: [M] of messages that travelled
  std::vector<std::vector<T>> decoded_statistics_;        // [M] likewise
};

extern template class MessageReader<float>;
extern template class MessageReader<double>;

}  // namespace fl
