#include "python/src/operator.hpp"

#include <algorithm>
#include <cmath>

#include "compressors/codec/finite.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "fl_core/random/random.hpp"

namespace fl::python {

namespace {

LayerTable layers_of(const Shape& shape) {
  LayerTable table;
  for (std::size_t i = 0; i < shape.tensors.size(); ++i) {
    const std::vector<std::size_t>& tensor = shape.tensors[i];
    std::size_t cols = 1;
    for (std::size_t d = 1; d < tensor.size(); ++d) cols *= tensor[d];
    table.layers.push_back({.name = std::to_string(i), .begin = table.size(), .rows = tensor.empty() ? 1 : tensor[0], .cols = cols});
  }
  return table;
}

// Returns the key of a scenario's first uplink channel.
std::uint64_t random_key(std::uint64_t seed) { return hash64(hash64(seed, static_cast<std::uint64_t>(Purpose::compressor)), 0); }

std::vector<std::string> names_of(Schema& schema) {
  std::vector<std::string> names;
  for (const Field& field : schema.fields()) names.push_back(field.name);
  return names;
}

}  // namespace

Options options_of(const std::string& kind, const Value::Table& given) {
  static_cast<void>(Registry::instance().info("compressor", kind));
  Options options = Registry::instance().default_options("compressor", kind);
  Problems problems;
  Schema schema = options.schema();
  for (const auto& [name, value] : given) {
    Field* field = schema.find(name);
    if (field == nullptr) {
      const std::string near = nearest_name(name, names_of(schema));
      problems.push_back({kind, "has no option '" + name + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?")});
    } else if (const auto refused = field->assign(value)) {
      problems.push_back({kind + "." + name, *refused});
    }
  }
  for (const Field& field : schema.fields())
    if (field.is_required && !field.is_set()) problems.push_back({kind + "." + field.name, "is required"});
  if (problems.empty()) options.validate(problems);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return options;
}

template <class T>
Operator<T>::Operator(const std::string& kind, const Options& options, const Shape& shape)
    : op_(make_part<Compressor<T>>("compressor", kind, options, Device::cpu, kPrecisionOf<T>)),
      scope_(op_->adapt(make_scope(layers_of(shape), shape.scope, shape.bucket, {}))) {
  op_->check(scope_);
}

template <class T>
std::vector<T> Operator<T>::initial_shared(std::uint64_t seed) const {
  std::vector<T> shared(shared_size());
  if (!shared.empty()) op_->init_cohort_state(random_key(seed), scope_, shared.data());
  return shared;
}

template <class T>
Encoded<T> Operator<T>::compress(std::span<const T> x, const MessageKey& key, std::span<T> memory, std::span<T> state,
                                 std::span<T> shared) {
  Conversation<T> conversation(*op_, scope_, random_key(key.seed), shared);
  conversation.open(key.round, key.step_size);
  Affine<T> input;
  StateWrite<T> write;
  if (!memory.empty()) {
    input.add(T(1), rows_view<const T>(memory.data(), 1, size()));
    write = {StateRule::residual, rows_view(memory.data(), 1, size())};
  }
  input.add(T(1), rows_view(x.data(), 1, size()));
  const std::uint32_t clients[] = {key.client};
  const BatchView<T> own = rows_view(state.data(), 1, state.size());
  const Exec exec{.workspace = &workspace_};
  Encoded<T> encoded;
  for (std::vector<T> estimate(num_phases() > 1 ? size() : 0);;) {
    Payload<T> message;
    Payload<T>* messages[] = {&message};
    const Scope vector = message_scope(*op_, scope_, conversation.phase());
    conversation.send(exec, {.clients = clients, .input = input, .state = write, .remembered = own, .remember = own}, messages);
    if (!codec::is_finite(message.on_wire(), vector))
      throw Error("the message is not finite: the vector holds a NaN, or a number that is too large");
    const codec::Channel<T> channel{.payload = &message.on_wire(), .scope = &vector, .levels = conversation.known_levels()};
    codec::encode<T>({&channel, 1}, encoded.phases.emplace_back());
    encoded.bits.push_back(codec::encoded_bits<T>({&channel, 1}));
    encoded.elements += message.elements();
    if (num_phases() == 1) return encoded;
    const bool is_last = conversation.is_last();
    std::vector<T> mean(vector.P);
    write_dense(message, vector, mean.data());
    conversation.receive(mean, estimate);
    if (is_last) return encoded;
  }
}

// Reads the message of the conversation's phase and makes entries of it.
template <class T>
void Operator<T>::read_phase(Conversation<T>& conversation, std::span<const std::byte> bytes, std::uint32_t client, Payload<T>& message) {
  const Scope vector = message_scope(*op_, scope_, conversation.phase());
  const Scope* const scopes[] = {&vector};
  const std::size_t lengths[] = {conversation.length()};
  Payload<T>* const messages[] = {&message};
  const MessageLevels known[] = {conversation.known_levels()};
  const Result<std::uint64_t> read = codec::decode<T>(bytes, scopes, lengths, messages, known);
  if (!read.ok()) throw Error("these bytes are no message of this operator: " + read.error().reason);
  const std::uint32_t clients[] = {client};
  conversation.reconstruct(Exec{.workspace = &workspace_}, clients, messages);
}

template <class T>
void Operator<T>::decode(std::span<const std::vector<std::byte>> phases, const MessageKey& key, std::span<T> shared, std::span<T> out) {
  if (phases.size() != static_cast<std::size_t>(num_phases()))
    throw Error("a message of this operator has " + std::to_string(num_phases()) + " parts, not " + std::to_string(phases.size()));
  Conversation<T> conversation(*op_, scope_, random_key(key.seed), shared);
  conversation.open(key.round, key.step_size);
  std::fill(out.begin(), out.end(), T(0));
  for (const std::vector<std::byte>& bytes : phases) {
    Payload<T> message;
    const Scope vector = message_scope(*op_, scope_, conversation.phase());
    read_phase(conversation, bytes, key.client, message);
    if (num_phases() == 1) return write_dense(message, scope_, out.data());
    std::vector<T> mean(vector.P);
    write_dense(message, vector, mean.data());
    conversation.receive(mean, out);
  }
}

template class Operator<float>;
template class Operator<double>;

}  // namespace fl::python
