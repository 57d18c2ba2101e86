#include "clients/learning/model_reader.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "compressors/codec/codec.hpp"
#include "compressors/conversation.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "fl_core/message/payload_segments.hpp"

namespace fl {

namespace {

Scope one_segment(std::size_t length) {
  return {.kind = ScopeKind::model, .segments = {{.begin = 0, .end = length, .rows = length, .cols = 1}}, .excluded = {}, .P = length};
}

}  // namespace

template <class T>
ModelReader<T>::ModelReader(ExchangeChannel<T> channel, std::size_t P, ParameterKinds kinds)
    : channel_(std::move(channel)), kinds_(std::move(kinds)), reference_(P) {}

template <class T>
std::string ModelReader<T>::read(std::uint32_t round, const DownMessage& message) {
  const bool is_difference = message.form == DownForm::differences;
  if (message.since > round_) return "the message is for a client that has the model of round " + std::to_string(message.since);
  if (is_difference ? message.parts.size() != message.rounds.size() : message.parts.size() != 1) return "the parts do not fit the form";
  std::string error;
  for (std::size_t i = 0; i < message.parts.size() && error.empty(); ++i) {
    const std::span<const std::byte> bytes(*message.parts[i]);
    if (!is_difference)
      error = message.form == DownForm::message   ? read_part(round, bytes, false)
              : message.form == DownForm::changes ? read_changes(bytes)
                                                  : read_dense(bytes);
    else if (message.rounds[i] > round_)
      error = read_part(message.rounds[i], bytes, true);
  }
  if (error.empty()) round_ = round;
  return error;
}

// Decodes a vector of one segment into message_.
template <class T>
std::string ModelReader<T>::decode_vector(std::span<const std::byte> bytes, const Scope& scope) {
  const Scope* scopes[] = {&scope};
  const std::size_t lengths[] = {scope.P};
  Payload<T>* targets[] = {&message_};
  const Result<std::uint64_t> read = codec::decode<T>(bytes, scopes, lengths, targets);
  if (!read.ok()) return read.error().reason;
  return message_.silent ? "a model that says nothing" : "";
}

// Reads w without kept parameters.
template <class T>
std::string ModelReader<T>::read_dense(std::span<const std::byte> bytes) {
  const Scope scope = one_segment(reference_.size() - kinds_.num_kept());
  if (std::string error = decode_vector(bytes, scope); !error.empty()) return error;
  std::vector<T> sent(scope.P);
  write_dense(message_, scope, sent.data());
  const T* from = sent.data();
  for_each_run_outside(kinds_.kept, 0, reference_.size(), [&](std::size_t begin, std::size_t end) {
    std::copy_n(from, end - begin, reference_.data() + begin);
    from += end - begin;
  });
  return {};
}

// Reads a list of new values.
template <class T>
std::string ModelReader<T>::read_changes(std::span<const std::byte> bytes) {
  const Scope scope = one_segment(reference_.size());
  if (std::string error = decode_vector(bytes, scope); !error.empty()) return error;
  if (message_.positions == Positions::all)
    write_dense(message_, scope, reference_.data());
  else
    for (std::size_t i = 0; i < message_.value.size(); ++i) reference_[message_.index[i]] = message_.value[i];
  return {};
}

// Reads the downlink operator's message, of w or of a difference, and averaged parameters. Returns why it cannot be read, or "".
template <class T>
std::string ModelReader<T>::read_part(std::uint32_t round, std::span<const std::byte> bytes, bool is_difference) {
  const Scope* scopes[] = {&channel_.scope};
  const std::size_t lengths[] = {channel_.scope.P};
  Payload<T>* targets[] = {&message_};
  Conversation<T> conversation(*channel_.compressor, channel_.scope, channel_.random_key, {});
  conversation.open(round);
  const MessageLevels known[] = {conversation.known_levels()};
  std::vector<T> averaged(kinds_.num_averaged());
  const Result<std::uint64_t> read = codec::decode<T>(bytes, scopes, lengths, targets, known, std::span<T>(averaged));
  if (!read.ok()) return read.error().reason;
  const std::uint32_t server = 0;
  conversation.reconstruct(Exec{.workspace = &workspace_}, std::span(&server, 1), std::span<Payload<T>* const>(targets));
  if (is_difference)
    add_scaled(message_, channel_.scope, T(1), reference_.data());
  else
    write_dense(message_, channel_.scope, reference_.data());
  scatter_ranges(kinds_.averaged, averaged.data(), reference_.data());
  return {};
}

template class ModelReader<float>;
template class ModelReader<double>;

}  // namespace fl
