#include "python/src/operator.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "compressors/codec/finite.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "fl_core/random/random.hpp"
#include "python/src/require_finite.hpp"

namespace fl::python {

namespace {

constexpr std::size_t kMostNumbers = std::numeric_limits<std::uint32_t>::max();  // of a vector
constexpr std::size_t kMostBuckets = std::size_t{1} << 24;                       // which take 40 bytes each

Scope made_scope(const Shape& shape) {
  const LayerTable layers = layers_of(shape.tensors);
  require_few_buckets(layers.size(), shape.scope, shape.bucket);
  return make_scope(layers, shape.scope, shape.bucket, {});
}

std::vector<std::string> names_of(Schema& schema) {
  std::vector<std::string> names;
  for (const Field& field : schema.fields()) names.push_back(field.name);
  return names;
}

}  // namespace

std::uint64_t random_key(std::uint64_t seed) { return hash64(hash64(seed, static_cast<std::uint64_t>(Purpose::compressor)), 0); }

StepSizes steps_of(const MessageKey& key) { return {.in_input = key.step_size, .local = key.step_size, .local_total = key.step_size}; }

LayerTable layers_of(const std::vector<std::vector<std::size_t>>& tensors) {
  LayerTable table;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::vector<std::size_t>& tensor = tensors[i];
    std::size_t rows = tensor.empty() ? 1 : tensor[0], cols = 1, size = 0;
    bool is_too_large = false;
    for (std::size_t d = 1; d < tensor.size(); ++d) is_too_large |= __builtin_mul_overflow(cols, tensor[d], &cols);
    is_too_large |= __builtin_mul_overflow(rows, cols, &size) || size > kMostNumbers - std::min(kMostNumbers, table.size());
    if (is_too_large) throw ConfigError("the shapes have more than " + std::to_string(kMostNumbers) + " numbers");
    table.layers.push_back({.name = std::to_string(i), .begin = table.size(), .rows = rows, .cols = cols});
  }
  return table;
}

void require_few_buckets(std::size_t size, ScopeKind scope, std::size_t bucket) {
  if (scope != ScopeKind::bucket || bucket == 0 || size / bucket < kMostBuckets) return;
  throw ConfigError("bucket is " + std::to_string(bucket) + ", and " + std::to_string(size) + " numbers would have " +
                    std::to_string(size / bucket) + " buckets; there may be " + std::to_string(kMostBuckets));
}

Options options_of(const std::string& role, const std::string& kind, const Value::Table& given) {
  static_cast<void>(Registry::instance().info(role, kind));
  Options options = Registry::instance().default_options(role, kind);
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
bool Sent<T>::Part::is_finite() const {
  const Payload<T>& wire = payload->on_wire();
  return codec::is_finite(wire, scope) && (&wire == payload.get() || codec::is_finite(*payload, scope));
}

template <class T>
std::vector<std::vector<codec::Channel<T>>> Sent<T>::messages() const {
  std::vector<std::vector<codec::Channel<T>>> all(are_channels ? 1 : parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) all[are_channels ? 0 : i].push_back(parts[i].channel());
  return all;
}

template <class T>
std::uint64_t Sent<T>::bits() const {
  std::uint64_t sum = 0;
  for (const std::vector<codec::Channel<T>>& channels : messages()) sum += codec::encoded_bits<T>(channels);
  return sum;
}

template <class T>
std::uint64_t Sent<T>::elements() const {
  std::uint64_t sum = 0;
  for (const Part& part : parts) sum += part.payload->elements();
  return sum;
}

template <class T>
std::vector<std::vector<std::byte>> Sent<T>::bytes() const {
  std::vector<std::vector<std::byte>> all;
  for (const std::vector<codec::Channel<T>>& channels : messages()) codec::encode<T>(channels, all.emplace_back());
  return all;
}

template <class T>
void Sent<T>::write_vector(std::size_t part, std::span<T> out) const {
  std::ranges::fill(out, T(0));
  if (!parts[part].payload->silent) write_dense(*parts[part].payload, parts[part].scope, out.data());
}

template <class T>
Operator<T>::Operator(const std::string& kind, const Options& options, const Shape& shape)
    : op_(make_part<Compressor<T>>("compressor", kind, options, Device::cpu, kPrecisionOf<T>)), scope_(op_->adapt(made_scope(shape))) {
  op_->check(scope_);
}

template <class T>
std::vector<T> Operator<T>::initial_shared(std::uint64_t seed) const {
  std::vector<T> shared(shared_size());
  if (!shared.empty()) op_->init_cohort_state(random_key(seed), scope_, shared.data());
  return shared;
}

template <class T>
Sent<T> Operator<T>::compress(std::span<const T> x, const MessageKey& key, std::span<T> memory, std::span<T> state, std::span<T> shared,
                              Input known) {
  if (known == Input::unknown) require_finite(x, "the vector");
  const std::lock_guard lock(mutex_);
  Conversation<T> conversation(*op_, scope_, random_key(key.seed), shared);
  conversation.open(key.round, steps_of(key));
  Sent<T> sent;
  std::vector<T> estimate(num_phases() > 1 ? size() : 0);
  while (!conversation.is_over()) {
    const auto& phase = sent.parts.emplace_back(send_phase(conversation, x, key.client, memory, state));
    if (num_phases() == 1) return sent;
    std::vector<T> mean(phase.scope.P);
    write_dense(*phase.payload, phase.scope, mean.data());
    conversation.receive(mean, estimate);
  }
  return sent;
}

template <class T>
typename Sent<T>::Part Operator<T>::send_phase(const Conversation<T>& conversation, std::span<const T> x, std::uint32_t client,
                                               std::span<T> memory, std::span<T> state) {
  Affine<T> input;
  StateWrite<T> write;
  if (!memory.empty()) {
    input.add(T(1), rows_view<const T>(memory.data(), 1, size()));
    write = {StateRule::residual, rows_view(memory.data(), 1, size())};
  }
  input.add(T(1), rows_view(x.data(), 1, size()));
  const std::uint32_t clients[] = {client};
  const BatchView<T> own = rows_view(state.data(), 1, state.size());
  const std::shared_ptr<Payload<T>> payload = pool_->take();
  Payload<T>* const messages[] = {payload.get()};
  conversation.send(Exec{.workspace = &workspace_},
                    {.clients = clients, .input = input, .state = write, .remembered = own, .remember = own}, messages);
  typename Sent<T>::Part part{payload, message_scope(*op_, scope_, conversation.phase()), conversation.known_levels()};
  if (!part.is_finite()) throw Overflow(kNotFinite);
  return part;
}

// Reads the message of the conversation's phase and makes entries of it.
template <class T>
void Operator<T>::read_phase(const Conversation<T>& conversation, std::span<const std::byte> bytes, std::uint32_t client,
                             Payload<T>& message) {
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
  conversation.open(key.round, steps_of(key));
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
