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

// Throws Error for a number that is not finite. The sum of x_j * 0 is NaN if there is one, and needs no branch.
template <class T>
void require_finite(std::span<const T> vector, const char* what) {
  constexpr std::size_t kLanes = 64;
  T lanes[kLanes] = {};
  std::size_t j = 0;
  for (; j + kLanes <= vector.size(); j += kLanes)
    for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += vector[j + l] * T(0);
  for (; j < vector.size(); ++j) lanes[0] += vector[j] * T(0);
  if (std::ranges::all_of(lanes, [](T lane) { return lane == T(0); })) return;
  const auto first = std::ranges::find_if(vector, [](T value) { return !std::isfinite(value); });
  throw Error(std::string(what) + " is not finite at place " + std::to_string(first - vector.begin()));
}

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
std::uint64_t Sent<T>::bits() const {
  std::uint64_t sum = 0;
  for (const Phase& phase : phases) {
    const codec::Channel<T> channel = phase.channel();
    sum += codec::encoded_bits<T>({&channel, 1});
  }
  return sum;
}

template <class T>
std::uint64_t Sent<T>::elements() const {
  std::uint64_t sum = 0;
  for (const Phase& phase : phases) sum += phase.payload.elements();
  return sum;
}

template <class T>
std::vector<std::vector<std::byte>> Sent<T>::bytes() const {
  std::vector<std::vector<std::byte>> all(phases.size());
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const codec::Channel<T> channel = phases[i].channel();
    codec::encode<T>({&channel, 1}, all[i]);
  }
  return all;
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
Sent<T> Operator<T>::compress(std::span<const T> x, const MessageKey& key, std::span<T> memory, std::span<T> state, std::span<T> shared) {
  require_finite(x, "the vector");
  require_finite(std::span<const T>(memory), "the memory");
  const std::lock_guard lock(mutex_);
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
  Sent<T> sent;
  std::vector<T> estimate(num_phases() > 1 ? size() : 0);
  while (!conversation.is_over()) {
    auto& phase = sent.phases.emplace_back(Payload<T>{}, message_scope(*op_, scope_, conversation.phase()), conversation.known_levels());
    Payload<T>* messages[] = {&phase.payload};
    conversation.send(exec, {.clients = clients, .input = input, .state = write, .remembered = own, .remember = own}, messages);
    if (!codec::is_finite(phase.payload.on_wire(), phase.scope))
      throw Overflow("the message is not finite, because a norm, a sum or a narrower format overflows");
    if (num_phases() == 1) return sent;
    std::vector<T> mean(phase.scope.P);
    write_dense(phase.payload, phase.scope, mean.data());
    conversation.receive(mean, estimate);
  }
  return sent;
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
  const std::lock_guard lock(mutex_);
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

template struct Sent<float>;
template struct Sent<double>;
template class Operator<float>;
template class Operator<double>;

}  // namespace fl::python
