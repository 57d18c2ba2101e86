#include "compressors/conversation.hpp"

#include <algorithm>
#include <optional>

#include "fl_core/memory/buffer.hpp"
#include "fl_core/memory/workspace.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "fl_core/ops/excluded.hpp"

namespace fl {

template <class T>
Scope message_scope(const Compressor<T>& op, const Scope& scope, int phase) {
  if (op.num_phases() == 1) return scope;
  const std::size_t length = op.message_length(phase, scope);
  return {.kind = ScopeKind::model, .segments = {{0, length, length, 1}}, .excluded = {}, .P = length};
}

template <class T>
Conversation<T>::Conversation(Compressor<T>& op, const Scope& scope, std::uint64_t random_key)
    : op_(op), scope_(scope), random_key_(random_key), own_(op.cohort_state_size(scope)), moved_(own_), shared_(own_) {
  if (!own_.empty()) op.init_cohort_state(random_key, scope, own_.data());
}

template <class T>
Conversation<T>::Conversation(Compressor<T>& op, const Scope& scope, std::uint64_t random_key, std::span<T> shared)
    : op_(op), scope_(scope), random_key_(random_key), moved_(shared), shared_(shared) {}

template <class T>
void Conversation<T>::read_shared(std::span<const T> shared, Device lies_on) {
  moved_ = {};
  shared_ = shared;
  shared_device_ = lies_on;
}

template <class T>
void Conversation<T>::open(std::uint32_t round, const StepSizes& steps, int phase) {
  round_ = round;
  steps_ = steps;
  phase_ = phase;
}

template <class T>
CompressContext<T> Conversation<T>::context(std::span<const std::uint32_t> clients) const {
  return {.round = round_, .phase = phase_, .steps = steps_, .random_key = random_key_, .clients = clients};
}

// Copies shared state from the host to the GPU first, because kernels read it repeatedly.
template <class T>
void Conversation<T>::send(const Exec& exec, const Senders<T>& clients, std::span<Payload<T>* const> messages) const {
  std::optional<Workspace::Frame> frame;
  CompressContext<T> context = this->context(clients.clients);
  context.remembered = clients.remembered;
  context.remember = clients.remember;
  context.shared = shared_.empty() ? nullptr : shared_.data();
  if (!shared_.empty() && exec.device == Device::cuda && shared_device_ != Device::managed && shared_device_ != Device::cuda) {
    T* there = frame.emplace(*exec.workspace).template take<T>(shared_.size());
    copy_bytes(there, Device::cuda, shared_.data(), shared_device_, shared_.size_bytes(), exec.stream);
    context.shared = there;
  }
  for (Payload<T>* message : messages) message->clear(length());
  const StateWrite<T> state = is_last() ? clients.state : StateWrite<T>{};
  op_.compress(exec, context, clients.input, scope_, state, messages);
  if (num_phases() == 1 && !scope_.excluded.empty()) send_excluded(exec, clients.input, scope_, state, messages);
}

template <class T>
void Conversation<T>::receive(std::span<const T> mean, std::span<T> estimate) {
  op_.absorb_mean(phase_, scope_, mean, moved_.data(), estimate.data());
  ++phase_;
}

template <class T>
Transcript<T> Conversation<T>::hold(const Exec& exec, const Senders<T>& clients, std::uint32_t block, const Inspect& inspect) {
  Transcript<T> transcript;
  transcript.mean.resize(scope_.P);
  while (!is_over()) {
    const Scope vector = message_scope(op_, scope_, phase_);
    const std::vector<Payload<T>>& messages = transcript.messages.emplace_back(send_in_blocks(exec, clients, block));
    for (std::size_t k = 0; inspect && k < messages.size(); ++k) inspect(messages[k], vector);
    if (is_last()) add_alone(messages, transcript.alone);
    std::vector<double> sum(vector.P, 0.0);
    for (const Payload<T>& message : messages)
      accumulate(message, vector, 1.0 / static_cast<double>(messages.size()), 0, sum.size(), sum.data());
    receive(std::vector<T>(sum.begin(), sum.end()), transcript.mean);
  }
  return transcript;
}

template <class T>
std::vector<Payload<T>> Conversation<T>::send_in_blocks(const Exec& exec, const Senders<T>& clients, std::uint32_t block) const {
  const auto K = static_cast<std::uint32_t>(clients.clients.size());
  std::vector<Payload<T>> messages(K);
  std::vector<Payload<T>*> pointers;
  for (Payload<T>& message : messages) pointers.push_back(&message);
  for (std::uint32_t first = 0, count = 0; first < K; first += count) {
    count = std::min(block, K - first);
    send(exec, clients.slice(first, count), {pointers.data() + first, count});
  }
  return messages;
}

// Receives every message of the last phase as if it were the mean. The shared state that results is discarded.
template <class T>
void Conversation<T>::add_alone(const std::vector<Payload<T>>& messages, std::vector<T>& alone) const {
  alone.assign(messages.size() * scope_.P, T(0));
  const Scope vector = message_scope(op_, scope_, phase_);
  for (std::size_t k = 0; k < messages.size(); ++k) {
    T* c = alone.data() + k * scope_.P;
    if (num_phases() == 1) {
      write_dense(messages[k], scope_, c);
      continue;
    }
    std::vector<T> shared(shared_.begin(), shared_.end()), mean(vector.P);
    write_dense(messages[k], vector, mean.data());
    op_.absorb_mean(phase_, scope_, mean, shared.data(), c);
  }
}

template <class T>
void Conversation<T>::reconstruct(const Exec& exec, std::span<const std::uint32_t> clients, std::span<Payload<T>* const> messages) const {
  op_.reconstruct(exec, context(clients), scope_, messages);
}

template class Conversation<float>;
template class Conversation<double>;
template Scope message_scope<float>(const Compressor<float>&, const Scope&, int);
template Scope message_scope<double>(const Compressor<double>&, const Scope&, int);

}  // namespace fl
