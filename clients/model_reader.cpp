#include "clients/model_reader.hpp"

#include <algorithm>
#include <vector>

#include "compressors/codec/codec.hpp"
#include "compressors/conversation.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "fl_core/message/payload_segments.hpp"

namespace fl {

template <class T>
ModelReader<T>::ModelReader(ExchangeChannel<T> channel, std::size_t P)
    : channel_(std::move(channel)),
      whole_{.kind = ScopeKind::model, .segments = {{.begin = 0, .end = P, .rows = P, .cols = 1}}, .excluded = {}, .P = P},
      reference_(P) {}

template <class T>
std::string ModelReader<T>::read(std::uint32_t round, const DownMessage& message) {
  const bool is_difference = message.form == DownForm::differences;
  if (message.since > round_) return "the message is for a client that has the model of round " + std::to_string(message.since);
  if (is_difference ? message.parts.size() != message.rounds.size() : message.parts.size() != 1) return "the parts do not fit the form";
  std::string error;
  for (std::size_t i = 0; i < message.parts.size() && error.empty(); ++i) {
    const std::span<const std::byte> bytes(*message.parts[i]);
    if (!is_difference)
      error = message.form == DownForm::message ? read_part(round, bytes, false) : read_whole(bytes, whole_);
    else if (message.rounds[i] > round_)
      error = read_part(message.rounds[i], bytes, true);
  }
  if (error.empty()) round_ = round;
  return error;
}

// A dense model, or a list of new values.
template <class T>
std::string ModelReader<T>::read_whole(std::span<const std::byte> bytes, const Scope& scope) {
  const Scope* scopes[] = {&scope};
  const std::size_t lengths[] = {scope.P};
  Payload<T>* targets[] = {&message_};
  const Result<std::uint64_t> read = codec::decode<T>(bytes, scopes, lengths, targets);
  if (!read.ok()) return read.error().reason;
  if (message_.silent) return "a model that says nothing";
  if (message_.positions == Positions::all)
    write_dense(message_, scope, reference_.data());
  else
    for (std::size_t i = 0; i < message_.value.size(); ++i) reference_[message_.index[i]] = message_.value[i];
  return {};
}

// What the downlink's operator made of w, or of a difference; and the statistics, which are the model's.
template <class T>
std::string ModelReader<T>::read_part(std::uint32_t round, std::span<const std::byte> bytes, bool is_difference) {
  const Scope* scopes[] = {&channel_.scope};
  const std::size_t lengths[] = {channel_.scope.P};
  Payload<T>* targets[] = {&message_};
  Conversation<T> conversation(*channel_.compressor, channel_.scope, channel_.random_key, {});
  conversation.open(round);
  const MessageLevels known[] = {conversation.known_levels()};
  std::vector<T> statistics(num_statistics(channel_.scope));
  const Result<std::uint64_t> read = codec::decode<T>(bytes, scopes, lengths, targets, known, std::span<T>(statistics));
  if (!read.ok()) return read.error().reason;
  const std::uint32_t server = 0;
  conversation.reconstruct(Exec{.workspace = &workspace_}, std::span(&server, 1), std::span<Payload<T>* const>(targets));
  if (is_difference)
    add_scaled(message_, channel_.scope, T(1), reference_.data());
  else
    write_dense(message_, channel_.scope, reference_.data());
  const T* from = statistics.data();
  for (const Segment& statistic : channel_.scope.statistics) {
    std::copy_n(from, statistic.end - statistic.begin, reference_.data() + statistic.begin);
    from += statistic.end - statistic.begin;
  }
  return {};
}

template class ModelReader<float>;
template class ModelReader<double>;

}  // namespace fl
