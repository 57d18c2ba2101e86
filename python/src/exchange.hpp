// An exchange is one round of several processes, and each process holds one client. It has the messages of all phases, and every process
// computes their mean.
//
//   Exchange(operator, key, kept)     the client is that of the key
//   send(x)                           returns the bytes of this phase's message, and moves the error and the state in the last phase
//   receive(messages, out)            takes the messages of all clients in ascending order; after the last phase, out is the mean of C(p)
//
// Every process computes the mean in the same order, so all of them get the same bits: those of a run with these clients.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "compressors/conversation.hpp"
#include "python/src/operator.hpp"

namespace fl::python {

// These are the arrays that a process keeps between rounds. They lie on the host, and a span is empty where there is nothing to keep.
template <class T>
struct Kept {
  std::span<T> error;   // [P]
  std::span<T> state;   // [state_size]
  std::span<T> shared;  // [shared_size], equal in all processes
};

template <class T>
class Exchange {
 public:
  // The operator and what is kept must outlive the exchange.
  Exchange(Operator<T>& op, const MessageKey& key, const Kept<T>& kept);

  [[nodiscard]] bool is_over() const { return conversation_.is_over(); }
  // Compresses p = error + x [P], where x is finite and the same in all phases, and returns the message, which is valid until the operator
  // sends again. Throws Overflow if it is not finite; the kept arrays have already changed then.
  [[nodiscard]] std::span<std::byte> send(std::span<const T> x);
  // Takes the messages of this phase, of the clients 0, 1, ...; that of this client must be the one that send() has returned. Throws Error
  // if one cannot be read.
  void receive(std::span<const std::span<const std::byte>> messages, std::span<T> out);

 private:
  Operator<T>& op_;
  MessageKey key_;
  Kept<T> kept_;
  Conversation<T> conversation_;
  std::optional<typename Sent<T>::Part> own_;  // the message of this phase
};

extern template class Exchange<float>;
extern template class Exchange<double>;

}  // namespace fl::python
