// The server's end of messages: what each channel of a message says, by cohort position.
//
// A message that travelled is bytes (ClientMessage::encoded): it is decoded here, by the server's own operators, which then make entries of
// it. One that did not travel is read where the clients have it, which is the same content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
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

  // Reads the messages [M] of a phase; those that were refused say nothing. Throws Error for bytes that are no message.
  void read(const RoundView<T>& round, int phase, std::span<const ClientMessage<T>> messages, const CohortRunner<T>& clients);

  // The content of a channel: null where it said nothing in the phase that was read last.
  [[nodiscard]] const Payload<T>* payload(std::size_t channel, std::uint32_t position) const { return contents_[channel][position]; }
  // The running statistics in a client's message of phase 0, [S] as RunSettings::statistics; empty where it is silent, where there are none
  // and where they stay with the clients.
  [[nodiscard]] std::span<const T> statistics(std::uint32_t position) const { return statistics_[position]; }

 private:
  void decode(const Exec& exec, const RoundView<T>& round, int phase, std::uint32_t position, const ClientMessage<T>& message);

  const Exchange<T>& exchange_;
  ThreadPool& pool_;
  std::vector<std::vector<const Payload<T>*>> contents_;  // by channel: [M]
  std::vector<std::span<const T>> statistics_;            // [M]
  std::vector<std::vector<Payload<T>>> decoded_;          // by channel: [M] of messages that travelled
  std::vector<std::vector<T>> decoded_statistics_;        // [M] likewise
};

extern template class MessageReader<float>;
extern template class MessageReader<double>;

}  // namespace fl
