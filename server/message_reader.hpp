// The server's receiver of messages: the content of each channel, by cohort position.
//
// An encoded message (ClientMessage::encoded) is decoded here by the server's own operators, which then compute its entries. A message
// that was not encoded brings its content along, which is the same.
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
  // Both arguments must outlive this object.
  MessageReader(const Exchange<T>& exchange, ThreadPool& pool);

  // Reads the messages [M] of a phase; refused messages are silent. Messages of other processes are counted here and refused if their
  // bytes are invalid or not the shortest encoding. Throws Error for invalid bytes of this process.
  void read(const RoundView<T>& round, int phase, MessageBatch<T> batch, CohortRunner<T>& clients);
  // Gives the memory of the messages back. Their bits stay.
  void release();

  // Returns the messages [M] of the last phase read, with their bits.
  [[nodiscard]] std::span<const ClientMessage<T>> messages() const { return messages_; }

  // Returns the content of a channel, or null if it was silent in the last phase read.
  [[nodiscard]] const Payload<T>* payload(std::size_t channel, std::uint32_t position) const { return contents_[channel][position]; }
  // Returns the values of averaged parameters in a client's message of phase 0, in the order of ParameterKinds::averaged. The result is
  // empty if the message is silent, or if no parameter is averaged.
  [[nodiscard]] std::span<const T> averaged(std::uint32_t position) const { return averaged_[position]; }

 private:
  // Returns the reason why the bytes are invalid, or "".
  [[nodiscard]] std::string decode(const Exec& exec, const RoundView<T>& round, int phase, ClientMessage<T>& message,
                                   std::uint32_t position);
  [[nodiscard]] std::string count_wire(int phase, std::span<const std::size_t> active_channels, std::span<Payload<T>* const> contents,
                                       std::span<const MessageLevels> known, std::size_t num_averaged, ClientMessage<T>& message) const;

  const Exchange<T>& exchange_;
  ThreadPool& pool_;
  MessageBatch<T> batch_;                                 // that was read last
  std::vector<ClientMessage<T>> messages_;                // [M]
  std::vector<std::string> errors_;                       // [M] "" = none
  std::vector<std::vector<const Payload<T>*>> contents_;  // by channel: [M]
  std::vector<std::span<const T>> averaged_;              // [M]
  std::vector<std::vector<Payload<T>>> decoded_;          // by channel: [M] of encoded messages
  std::vector<std::vector<T>> decoded_averaged_;          // [M] of encoded messages
};

extern template class MessageReader<float>;
extern template class MessageReader<double>;

}  // namespace fl
