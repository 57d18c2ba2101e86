#include "server/message_reader.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "compressors/codec/codec.hpp"
#include "compressors/message_count.hpp"

namespace fl {

template <class T>
MessageReader<T>::MessageReader(const Exchange<T>& exchange, ThreadPool& pool)
    : exchange_(exchange), pool_(pool), contents_(exchange.channels.size()), decoded_(exchange.channels.size()) {}

template <class T>
void MessageReader<T>::read(const RoundView<T>& round, int phase, MessageBatch<T> batch, CohortRunner<T>& clients) {
  batch_ = std::move(batch);
  const std::span<const ClientMessage<T>> messages = batch_.messages;
  messages_.assign(messages.begin(), messages.end());
  const auto M = static_cast<std::uint32_t>(messages.size());
  for (auto& channel : contents_) channel.assign(M, nullptr);
  if (phase == 0) averaged_.assign(M, {});
  bool travelled = false;
  for (std::uint32_t i = 0; i < M; ++i) {
    if (messages[i].refused) continue;
    if (!messages[i].encoded.empty()) {
      travelled = true;
      continue;
    }
    for (std::size_t c = 0; c < contents_.size(); ++c) contents_[c][i] = batch_.contents[c][i];
    if (phase == 0) averaged_[i] = batch_.averaged[i];
  }
  if (!travelled) return;
  for (auto& channel : decoded_)
    if (channel.size() < M) channel.resize(M);
  if (decoded_averaged_.size() < M) decoded_averaged_.resize(M);
  errors_.assign(M, {});
  pool_.parallel_for(M, [&](std::uint32_t i, const Exec& exec) {
    if (!messages[i].refused && !messages[i].encoded.empty()) errors_[i] = decode(exec, round, phase, messages_[i], i);
  });
  for (std::uint32_t i = 0; i < M; ++i) {
    if (errors_[i].empty()) continue;
    if (messages[i].is_counted)
      throw Error("the message of client " + std::to_string(messages[i].client) + " in round " + std::to_string(round.order.round) +
                  " cannot be read: " + errors_[i]);
    clients.refuse(i, errors_[i]);
    messages_[i] = {.client = messages[i].client, .is_counted = false, .refused = true, .encoded = {}};
    for (auto& channel : contents_) channel[i] = nullptr;
    if (phase == 0) averaged_[i] = {};
  }
}

template <class T>
void MessageReader<T>::release() {
  batch_ = {};
  for (auto& channel : contents_) channel.clear();
  averaged_.clear();
}

template <class T>
std::string MessageReader<T>::decode(const Exec& exec, const RoundView<T>& round, int phase, ClientMessage<T>& message,
                                     std::uint32_t position) {
  const std::span<const std::uint32_t> client(&message.client, 1);
  std::vector<std::size_t> active_channels;
  std::vector<const Scope*> scopes;
  std::vector<std::size_t> lengths;
  std::vector<MessageLevels> known;
  std::vector<Payload<T>*> targets;
  for (std::size_t c = 0; c < exchange_.channels.size(); ++c) {
    const ExchangeChannel<T>& channel = exchange_.channels[c];
    if (!channel.is_active_in(round.order.round, phase)) continue;
    active_channels.push_back(c);
    scopes.push_back(&channel.phase_scope[static_cast<std::size_t>(phase)]);
    lengths.push_back(channel.length(phase));
    known.push_back(channel.compressor->known_levels(channel.context(round, phase, client), channel.scope));
    targets.push_back(&decoded_[c][position]);
  }
  std::vector<T>& averaged = decoded_averaged_[position];
  if (phase == 0) averaged.resize(round.run.kinds.num_averaged());
  const std::span<T> told = phase == 0 ? std::span<T>(averaged) : std::span<T>();
  const Result<std::uint64_t> read = codec::decode<T>(message.encoded, scopes, lengths, targets, known, told);
  if (!read.ok()) return read.error().reason;
  const bool is_silent = std::ranges::all_of(targets, [](const Payload<T>* content) { return content->silent; });
  if (phase == 0 && !is_silent) averaged_[position] = told;
  std::string error;
  if (!message.is_counted) error = count_wire(phase, active_channels, targets, known, is_silent ? 0 : told.size(), message);
  for (std::size_t s = 0; s < active_channels.size() && error.empty(); ++s) {
    const ExchangeChannel<T>& channel = exchange_.channels[active_channels[s]];
    const Compressor<T>& receiver = channel.receiver != nullptr ? *channel.receiver : *channel.compressor;
    receiver.reconstruct(exec, channel.context(round, phase, client), channel.scope, std::span(&targets[s], 1));
    if (!message.is_counted) message.bits.elements += targets[s]->elements();
    contents_[active_channels[s]][position] = targets[s];
  }
  return error;
}

// Counts what travelled, before entries are made of it. The length of a message follows from its content; one of another length was not
// written by the codec.
template <class T>
std::string MessageReader<T>::count_wire(int phase, std::span<const std::size_t> active_channels, std::span<Payload<T>* const> contents,
                                         std::span<const MessageLevels> known, std::size_t num_averaged, ClientMessage<T>& message) const {
  std::vector<codec::Channel<T>> wire;
  for (std::size_t s = 0; s < active_channels.size(); ++s) {
    const ExchangeChannel<T>& channel = exchange_.channels[active_channels[s]];
    const Scope& scope = channel.phase_scope[static_cast<std::size_t>(phase)];
    wire.push_back({contents[s], &scope, {}, known[s]});
    count_channel(channel, *contents[s], scope, {}, message.bits);
  }
  message.averaged_bits = count_averaged<T>(num_averaged, message.bits);
  std::vector<std::uint64_t> bits(wire.size());
  message.bits.bits = codec::encoded_bits<T>(wire, bits, num_averaged);
  count_by_channel(active_channels, bits, message.channel_bits);
  if (message.bits.bits == 8 * message.encoded.size()) return {};
  return "it takes " + std::to_string(8 * message.encoded.size()) + " bits, and what it says " + std::to_string(message.bits.bits);
}

template class MessageReader<float>;
template class MessageReader<double>;

}  // namespace fl
