// The clients' end of messages: whether a message is finite, its length, and its bytes if these are requested.
//
// A message is complete when its operators have finished. Lengths are computed without encoding (codec::encoded_bits). On a GPU, kernels
// count the quantities that determine them where the messages lie, and the host reads the parts that have not been counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "clients/host/cohort_messages.hpp"
#include "compressors/codec/codec.hpp"
#include "compressors/codec/device_tally.hpp"
#include "compressors/exchange.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/round/cohort_runner.hpp"
#include "fl_core/round/round_views.hpp"

namespace fl {

struct MessageWriterOptions {
  bool encodes = false;          // messages are bytes, and not only their lengths
  bool counts_bits = true;       // false: the lengths of messages stay 0
  Device device = Device::cpu;   // where operators run, if they can
  bool is_out_of_reach = false;  // messages lie in memory that the host cannot access
};

template <class T>
class MessageWriter {
 public:
  using EncodedMessage = std::shared_ptr<const std::vector<std::byte>>;
  // Receives the messages of a block as soon as they are encoded, and their bytes, which it may keep; null for a refused one. Called from
  // any thread.
  using Tap = std::function<void(const ClientRound<T>&, int phase, std::span<const ClientMessage<T>>, std::span<const EncodedMessage>)>;

  // `exchange` outlives it. Serves threads 0 .. num_threads-1.
  MessageWriter(const Exchange<T>& exchange, int num_threads, MessageWriterOptions options);
  ~MessageWriter();

  void set_tap(Tap tap) { tap_ = std::move(tap); }

  // Begins a phase, whose blocks have up to block_size clients, and whose messages are written into `into`.
  void open_phase(const RoundView<T>& round, int phase, std::uint32_t block_size, CohortMessages<T>& into);
  // Counts on the GPU the quantities that determine the message lengths of a whole block, and copies the remaining data that the host must
  // read. Does nothing without a GPU.
  void inspect(const Exec& exec, const ClientBlock<T>& block);
  // Writes the messages of a block, or of a part of it. Clients that are refused send nothing; a message that is not finite makes its
  // client one of them.
  void write(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block);

 private:
  struct Scratch;

  void tally(const ClientBlock<T>& block);
  void fetch(const Exec& exec, const ClientBlock<T>& block);
  void write_one(const ClientBlock<T>& block, std::uint32_t k, bool is_refused, Scratch& scratch);
  void tap(const ClientRound<T>& round, const ClientBlock<T>& block, Scratch& scratch) const;
  void count_channels(const ClientBlock<T>& block, std::uint32_t k, Scratch& scratch, BitCount& bits) const;
  std::span<T> add_averaged(const ClientBlock<T>& block, std::uint32_t k, bool is_silent, ClientMessage<T>& message);
  [[nodiscard]] bool is_finite_message(const ClientBlock<T>& block, std::uint32_t k) const;
  [[nodiscard]] const Scope& scope_of(std::size_t c) const { return exchange_.channels[c].phase_scope[static_cast<std::size_t>(phase_)]; }
  [[nodiscard]] codec::Tally tally_of(std::uint32_t position, std::size_t c) const {
    return counter_ == nullptr ? codec::Tally{} : tallies_[c * block_size_ + position % block_size_].tally;
  }
  [[nodiscard]] codec::Tally tally_of_entries(std::uint32_t position, std::size_t c) const {
    return counter_ == nullptr ? codec::Tally{} : tallies_[(is_active_.size() + c) * block_size_ + position % block_size_].tally;
  }
  // Returns the message of the block's client k in memory from which the host may read the parts that it needs.
  [[nodiscard]] const Payload<T>& readable(const ClientBlock<T>& block, std::size_t c, std::uint32_t k) const {
    const Payload<T>* copy = copies_.empty() ? nullptr : copies_[c * block_size_ + (block.first + k) % block_size_].get();
    return copy == nullptr ? *block.messages[c][k] : *copy;
  }

  const Exchange<T>& exchange_;
  const MessageWriterOptions options_;
  Tap tap_;
  int phase_ = 0;
  std::uint32_t block_size_ = 1;
  std::vector<bool> is_active_;                     // by channel, in this phase
  CohortMessages<T>* into_ = nullptr;               // of this phase
  std::unique_ptr<codec::DeviceTally<T>> counter_;  // null: the host reads messages to count their bits
  std::vector<codec::Channel<T>> tallies_;          // [2,channels,K] of the block on the GPU: in the sent form, and entries if these differ
  std::vector<std::unique_ptr<Payload<T>>> copies_;  // [channels,K] of the block, on the host; null if the host reads sizes alone
  std::vector<std::unique_ptr<Scratch>> scratch_;    // per thread
};

extern template class MessageWriter<float>;
extern template class MessageWriter<double>;

}  // namespace fl
