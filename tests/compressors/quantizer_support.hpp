// Passes one vector through one operator, for the tests of single operators.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compressors/codec/codec.hpp"
#include "compressors/conversation.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"

namespace fl::test {

template <class T>
std::unique_ptr<Compressor<T>> make_operator(const std::string& name, const std::vector<std::pair<std::string, Value>>& settings = {}) {
  Options options = Registry::instance().default_options("compressor", name);
  for (const auto& [key, value] : settings) {
    Schema schema = options.schema();
    if (const auto refused = schema.find(key)->assign(value)) throw ConfigError(key + " " + *refused);
  }
  Problems problems;
  options.validate(problems);
  if (!problems.empty()) throw ConfigError(problems);
  return make_part<Compressor<T>>("compressor", name, options, Device::cpu, kPrecisionOf<T>);
}

inline Scope whole_vector(std::size_t P) { return {ScopeKind::model, {{0, P, P, 1}}, {}, P}; }

// Sends x once; the message is kept for a look inside.
template <class T>
struct Sent {
  Sent(Compressor<T>& op, const std::vector<T>& x, const Scope& scope, std::uint32_t client = 1, std::uint32_t round = 1) {
    Workspace workspace;
    Exec exec;
    exec.workspace = &workspace;
    Senders<T> sender{.clients = {&client, 1}};
    sender.input.add(T(1), rows_view<const T>(x.data(), 1, x.size()));
    Conversation<T> conversation(op, scope, 99);
    conversation.open(round);
    Transcript<T> transcript = conversation.hold(exec, sender);
    message = std::move(transcript.messages.back()[0]);
    c = std::move(transcript.alone);
  }
  Payload<T> message;
  std::vector<T> c;
};

// The length of the message on the wire.
template <class T>
std::uint64_t wire_bits(Compressor<T>& op, const Payload<T>& message, const Scope& scope) {
  Conversation<T> conversation(op, scope, 99);
  conversation.open(1);
  const codec::Channel<T> channel{&message.on_wire(), &scope, {}, conversation.known_levels()};
  return codec::encoded_bits<T>(std::span(&channel, 1));
}

// |C(x) - x|^2 / |x|^2, mean over `draws` rounds.
template <class T>
double relative_error(Compressor<T>& op, const std::vector<T>& x, std::uint32_t draws) {
  const Scope scope = whole_vector(x.size());
  double norm = 0, error = 0;
  for (const T v : x) norm += static_cast<double>(v) * static_cast<double>(v);
  for (std::uint32_t round = 0; round < draws; ++round) {
    const Sent<T> sent(op, x, scope, 1, round);
    for (std::size_t j = 0; j < x.size(); ++j) {
      const double e = static_cast<double>(sent.c[j]) - static_cast<double>(x[j]);
      error += e * e / norm / draws;
    }
  }
  return error;
}

}  // namespace fl::test
