#include "server/message_reader.hpp"

#include <algorithm>
#include <string>

#include "compressors/codec/codec.hpp"
#include "fl_core/round/own_statistics.hpp"

namespace fl {

template <class T>
MessageReader<T>::MessageReader(const Exchange<T>& exchange, ThreadPool& pool)
    : exchange_(exchange), pool_(pool), contents_(exchange.channels.size()), decoded_(exchange.channels.size()) {}

template <class T>
void MessageReader<T>::read(const RoundView<T>& round, int phase, std::span<const ClientMessage<T>> messages,
                            const CohortRunner<T>& clients) {
  const auto M = static_cast<std::uint32_t>(messages.size());
  for (auto& channel : contents_) channel.assign(M, nullptr);
  if (phase == 0) statistics_.assign(M, {});
  bool travelled = false;
  for (std::uint32_t i = 0; i < M; ++i) {
    if (messages[i].refused) continue;
    if (!messages[i].encoded.empty()) {
      travelled = true;
      continue;
    }
    for (std::size_t c = 0; c < contents_.size(); ++c) contents_[c][i] = clients.payload(c, i);
    if (phase == 0) statistics_[i] = clients.statistics(i);
  }
  if (!travelled) return;
  for (auto& channel : decoded_)
    if (channel.size() < M) channel.resize(M);
  if (decoded_statistics_.size() < M) decoded_statistics_.resize(M);
  pool_.parallel_for(M, [&](std::uint32_t i, const Exec& exec) {
    if (!messages[i].refused && !messages[i].encoded.empty()) decode(exec, round, phase, i, messages[i]);
  });
}

template <class T>
void MessageReader<T>::decode(const Exec& exec, const RoundView<T>& round, int phase, std::uint32_t position,
                              const ClientMessage<T>& message) {
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
  const bool tells = phase == 0 && !round.run.local_statistics;
  std::vector<T>& statistics = decoded_statistics_[position];
  if (phase == 0) statistics.resize(tells ? num_statistics(round.run.statistics) : 0);
  const std::span<T> told = tells ? std::span<T>(statistics) : std::span<T>();
  const Result<std::uint64_t> read = codec::decode<T>(message.encoded, scopes, lengths, targets, known, told);
  if (!read.ok())
    throw Error("the message of client " + std::to_string(message.client) + " in round " + std::to_string(round.order.round) +
                " cannot be read: " + read.error().reason);
  const bool is_silent = std::ranges::all_of(targets, [](const Payload<T>* content) { return content->silent; });
  if (tells && !is_silent) statistics_[position] = told;
  for (std::size_t s = 0; s < active_channels.size(); ++s) {
    const ExchangeChannel<T>& channel = exchange_.channels[active_channels[s]];
    const Compressor<T>& receiver = channel.receiver != nullptr ? *channel.receiver : *channel.compressor;
    receiver.reconstruct(exec, channel.context(round, phase, client), channel.scope, std::span(&targets[s], 1));
    contents_[active_channels[s]][position] = targets[s];
  }
}

template class MessageReader<float>;
template class MessageReader<double>;

}  // namespace fl
