#include "clients/host/message_writer.hpp"

#include <algorithm>

#include "compressors/codec/finite.hpp"
#include "compressors/message_count.hpp"
#include "fl_core/ops/cuda/payload_copy.hpp"

namespace fl {

// Memory that one thread reuses from message to message.
template <class T>
struct MessageWriter<T>::Scratch {
  std::vector<MessageLevels> known;                // by channel: the levels of this round's messages that the receiver knows
  std::vector<codec::Channel<T>> active_channels;  // channels of the current message
  std::vector<std::uint64_t> channel_bits;
  std::vector<EncodedMessage> tapped;  // of the current block
};

template <class T>
MessageWriter<T>::MessageWriter(const Exchange<T>& exchange, int num_threads, MessageWriterOptions options)
    : exchange_(exchange), options_(options), is_active_(exchange.channels.size()) {
  if (options.device == Device::cuda) counter_ = codec::make_device_tally<T>();
  for (int thread = 0; thread < num_threads; ++thread) scratch_.push_back(std::make_unique<Scratch>());
}

template <class T>
MessageWriter<T>::~MessageWriter() = default;

template <class T>
void MessageWriter<T>::open_phase(const RoundView<T>& round, int phase, std::uint32_t block_size, CohortMessages<T>& into) {
  into_ = &into;
  phase_ = phase;
  block_size_ = block_size;
  for (std::size_t c = 0; c < is_active_.size(); ++c) is_active_[c] = exchange_.channels[c].is_active_in(round.order.round, phase);
}

template <class T>
void MessageWriter<T>::inspect(const Exec& exec, const ClientBlock<T>& block) {
  if (counter_ != nullptr) tally(block);
  if (options_.is_out_of_reach) fetch(exec, block);
}

template <class T>
void MessageWriter<T>::tally(const ClientBlock<T>& block) {
  const std::size_t all = is_active_.size() * block_size_;
  tallies_.assign(2 * all, {});
  std::vector<codec::Channel<T>> counted;
  std::vector<std::size_t> place;  // in tallies_
  for (std::size_t c = 0; c < is_active_.size(); ++c) {
    if (!is_active_[c]) continue;
    for (std::uint32_t k = 0; k < block.K; ++k) {
      const Payload<T>& entries = *block.messages[c][k];
      counted.push_back({&entries.on_wire(), &scope_of(c)});
      place.push_back(c * block_size_ + k);
      if (&entries.on_wire() == &entries) continue;
      counted.push_back({&entries, &scope_of(c)});
      place.push_back(all + c * block_size_ + k);
    }
  }
  counter_->count(counted);
  for (std::size_t i = 0; i < counted.size(); ++i) tallies_[place[i]] = counted[i];
}

// Copies from the GPU's own memory the messages that the host must read in addition to the counts.
template <class T>
void MessageWriter<T>::fetch(const Exec& exec, const ClientBlock<T>& block) {
  copies_.clear();
  copies_.resize(is_active_.size() * block_size_);
  for (std::size_t c = 0; c < is_active_.size(); ++c) {
    if (!is_active_[c]) continue;
    for (std::uint32_t k = 0; k < block.K; ++k) {
      const Payload<T>& entries = *block.messages[c][k];
      const bool is_read = exchange_.channels[c].compressor->published_bits_read_entries() && !entries.silent;
      if (!is_read && !codec::needs_content(entries.on_wire(), tally_of(block.first + k, c)) &&
          (&entries.on_wire() == &entries || !codec::needs_content(entries, tally_of_entries(block.first + k, c))))
        continue;
      copies_[c * block_size_ + k] = std::make_unique<Payload<T>>();
      cuda::copy_payload(entries, *copies_[c * block_size_ + k], exec.stream);
    }
  }
}

template <class T>
void MessageWriter<T>::write(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block) {
  Scratch& scratch = *scratch_[static_cast<std::size_t>(exec.thread)];
  scratch.known.clear();
  for (const ExchangeChannel<T>& channel : exchange_.channels)
    scratch.known.push_back(channel.compressor->known_levels(channel.context(round, phase_, block.clients), channel.scope));
  for (std::uint32_t k = 0; k < block.K; ++k) {
    std::uint8_t& is_refused = into_->refused[block.first + k];
    if (is_refused == 0 && !is_finite_message(block, k)) is_refused = 1;
    write_one(block, k, is_refused != 0, scratch);
  }
  if (tap_) tap(round, block, scratch);
}

template <class T>
void MessageWriter<T>::tap(const ClientRound<T>& round, const ClientBlock<T>& block, Scratch& scratch) const {
  scratch.tapped.clear();
  for (std::uint32_t i = block.first; i < block.first + block.K; ++i)
    scratch.tapped.push_back(into_->messages[i].refused ? nullptr : EncodedMessage(into_->encoded[i]));
  tap_(round, phase_, std::span<const ClientMessage<T>>(into_->messages).subspan(block.first, block.K), scratch.tapped);
  scratch.tapped.clear();
}

template <class T>
void MessageWriter<T>::write_one(const ClientBlock<T>& block, std::uint32_t k, bool is_refused, Scratch& scratch) {
  const std::uint32_t position = block.first + k;
  ClientMessage<T>& message = into_->messages[position];
  message = {.client = block.clients[k],
             .bits = {},
             .channel_bits = {},
             .averaged_bits = 0,
             .is_counted = true,
             .refused = is_refused,
             .work = block.work[k],
             .encoded = {}};
  if (phase_ == 0) into_->has_own[position] = into_->has_averaged[position] = 0;
  if (is_refused) return;
  if (!options_.counts_bits) return;
  count_channels(block, k, scratch, message.bits);
  const std::span<const codec::Channel<T>> active_channels(scratch.active_channels);
  const std::span<T> averaged = add_averaged(block, k, codec::is_silent(active_channels), message);
  scratch.channel_bits.assign(active_channels.size(), 0);
  message.bits.bits = codec::encoded_bits<T>(active_channels, scratch.channel_bits, averaged.size());
  for (std::size_t c = 0, s = 0; c < is_active_.size(); ++c)
    if (is_active_[c]) message.channel_bits[std::min(c, kMostCountedChannels - 1)] += scratch.channel_bits[s++];
  if (!options_.encodes) return;
  std::shared_ptr<std::vector<std::byte>>& encoded = into_->encoded[position];
  if (encoded == nullptr || encoded.use_count() > 1) encoded = std::make_shared<std::vector<std::byte>>();  // the last one is still kept
  codec::encode<T>(active_channels, *encoded, averaged);
  message.encoded = *encoded;
}

// Lists the active channels, and adds up the counts of each of them.
template <class T>
void MessageWriter<T>::count_channels(const ClientBlock<T>& block, std::uint32_t k, Scratch& scratch, BitCount& bits) const {
  scratch.active_channels.clear();
  for (std::size_t c = 0; c < is_active_.size(); ++c) {
    if (!is_active_[c]) continue;
    const Payload<T>& payload = readable(block, c, k);
    const codec::Tally counted = tally_of(block.first + k, c);
    scratch.active_channels.push_back({&payload.on_wire(), &scope_of(c), counted, scratch.known[c]});
    bits.elements += payload.elements();
    count_channel(exchange_.channels[c], payload, scope_of(c), counted, bits);
  }
}

// Returns whether the message of the block's client k in this phase is finite: as sent, and as decoded by its receiver if the entries are
// encoded. A norm, a sum or a narrower format may overflow although the client's vectors are finite.
template <class T>
bool MessageWriter<T>::is_finite_message(const ClientBlock<T>& block, std::uint32_t k) const {
  for (std::size_t c = 0; c < is_active_.size(); ++c) {
    if (!is_active_[c]) continue;
    const Payload<T>& entries = readable(block, c, k);
    if (!codec::is_finite(entries.on_wire(), scope_of(c), tally_of(block.first + k, c))) return false;
    if (&entries.on_wire() != &entries && !codec::is_finite(entries, scope_of(c), tally_of_entries(block.first + k, c))) return false;
  }
  return true;
}

// Returns the averaged parameters in the message of the block's client k, which travel raw in the first phase unless the client is silent.
template <class T>
std::span<T> MessageWriter<T>::add_averaged(const ClientBlock<T>& block, std::uint32_t k, bool is_silent, ClientMessage<T>& message) {
  if (phase_ > 0 || into_->num_own == 0) return {};
  into_->has_own[block.first + k] = 1;
  if (is_silent || into_->num_averaged == 0) return {};
  into_->has_averaged[block.first + k] = 1;
  message.averaged_bits = count_averaged<T>(into_->num_averaged, message.bits);
  return {block.own.row(k), into_->num_averaged};
}

template class MessageWriter<float>;
template class MessageWriter<double>;

}  // namespace fl
