#include "python/src/exchange.hpp"

#include <algorithm>
#include <cstdint>

#include "fl_core/config/error.hpp"
#include "fl_core/message/payload_ops.hpp"

namespace fl::python {

namespace {

// Whether value[j] is entry j for all j.
template <class T>
bool is_plain_vector(const Payload<T>& message) {
  return !message.silent && message.positions == Positions::all && message.values != WireValue::levels && message.excluded.empty() &&
         message.num_sent == message.length && message.rest == nullptr;
}

// Computes out[j] = the mean of the messages' entries j, summed in double and in their order, as a run does. `sum` is memory for that.
template <class T>
void write_mean(const std::vector<const Payload<T>*>& messages, const Scope& scope, std::vector<double>& sum, std::span<T> out) {
  const double weight = 1.0 / static_cast<double>(messages.size());
  if (std::ranges::all_of(messages, [](const Payload<T>* one) { return is_plain_vector(*one); })) {
    for (std::size_t j = 0; j < out.size(); ++j) {
      double total = 0.0;
      for (const Payload<T>* one : messages) total += weight * static_cast<double>(one->value[j]);
      out[j] = static_cast<T>(total);
    }
    return;
  }
  sum.assign(out.size(), 0.0);
  accumulate<T>(messages, scope, std::vector<double>(messages.size(), weight), 0, sum.size(), sum.data());
  std::ranges::transform(sum, out.begin(), [](double one) { return static_cast<T>(one); });
}

}  // namespace

template <class T>
Exchange<T>::Exchange(Operator<T>& op, const MessageKey& key, const Kept<T>& kept)
    : op_(op), key_(key), kept_(kept), conversation_(*op.op_, op.scope_, random_key(key.seed), kept.shared) {
  conversation_.open(key.round, steps_of(key));
}

template <class T>
std::span<std::byte> Exchange<T>::send(std::span<const T> x) {
  if (is_over() || own_) throw Error("this phase has been sent");
  const std::lock_guard lock(op_.mutex_);
  own_ = op_.send_phase(conversation_, x, key_.client, kept_.error, kept_.state);
  const codec::Channel<T> channel[] = {own_->channel()};
  codec::encode<T>(channel, op_.bytes_);
  return op_.bytes_;
}

template <class T>
void Exchange<T>::receive(std::span<const std::span<const std::byte>> messages, std::span<T> out) {
  if (!own_) throw Error("this phase has not been sent");
  if (key_.client >= messages.size()) throw Error("the message of this client is missing");
  const std::lock_guard lock(op_.mutex_);
  std::vector<std::shared_ptr<const Payload<T>>> kept;
  std::vector<const Payload<T>*> all;
  const Scope& scope = own_->scope;
  for (std::uint32_t client = 0; client < messages.size(); ++client) {
    if (client == key_.client) {
      kept.push_back(own_->payload);
    } else {
      const std::shared_ptr<Payload<T>> read = op_.pool_->take();
      op_.read_phase(conversation_, messages[client], client, *read);
      kept.push_back(read);
    }
    all.push_back(kept.back().get());
  }
  if (conversation_.num_phases() == 1) {
    write_mean(all, scope, op_.sums_, out);
    conversation_.receive({}, out);
  } else {
    std::vector<T> mean(scope.P);
    write_mean<T>(all, scope, op_.sums_, mean);
    conversation_.receive(mean, out);
  }
  own_.reset();
}

template class Exchange<float>;
template class Exchange<double>;

}  // namespace fl::python
