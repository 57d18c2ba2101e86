// An operator with everything that a message of it depends on: its options, the tensors of the vector, and the key of its random numbers.
//
// One client sends at a time. A message consists of the bytes that the simulator would send for the same seed, client and round; an
// operator with several phases (PowerSGD) sends one message for each, as in a cohort of one client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compressors/codec/codec.hpp"
#include "compressors/conversation.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/options.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/memory/workspace.hpp"

namespace fl::python {

// The values on which random numbers and step-dependent units of a message depend.
struct MessageKey {
  std::uint64_t seed = 1;  // of the run: seeds.compressor
  std::uint32_t client = 0, round = 1;
  double step_size = 1;  // of the round, for operators that follow it
};

inline constexpr const char* kNotFinite = "the message is not finite, because a norm, a sum or a narrower format overflows";

// Reports a finite vector whose message is not finite.
class Overflow : public Error {
 public:
  using Error::Error;
};

// Payloads of messages that are gone. Their memory serves the next messages: fresh memory of this size would cost more than some operators.
template <class T>
class PayloadPool : public std::enable_shared_from_this<PayloadPool<T>> {
 public:
  // Returns a payload that comes back when nobody has it any more.
  [[nodiscard]] std::shared_ptr<Payload<T>> take() {
    return {new Payload<T>(taken()), [pool = this->shared_from_this()](Payload<T>* payload) {
              pool->give(std::move(*payload));
              delete payload;
            }};
  }

 private:
  [[nodiscard]] Payload<T> taken() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return {};
    Payload<T> payload = std::move(free_.back());
    free_.pop_back();
    return payload;
  }
  void give(Payload<T>&& payload) {
    const std::lock_guard lock(mutex_);
    if (free_.size() < kMost) free_.push_back(std::move(payload));
  }

  static constexpr std::size_t kMost = 2;
  std::mutex mutex_;
  std::vector<Payload<T>> free_;
};

// A message as the operators made it. It is counted and encoded when that is asked for.
template <class T>
struct Sent {
  struct Part {
    std::shared_ptr<const Payload<T>> payload;
    Scope scope;
    MessageLevels known;  // what the receiver knows without being told

    [[nodiscard]] codec::Channel<T> channel() const { return {.payload = &payload->on_wire(), .scope = &scope, .levels = known}; }
    // Returns whether all numbers are finite, those on the wire and those that the receiver makes of them.
    [[nodiscard]] bool is_finite() const;
  };
  std::vector<Part> parts;
  bool are_channels = false;  // of one message; else each part is the message of a phase

  [[nodiscard]] std::uint64_t bits() const;                         // exact length of all messages
  [[nodiscard]] std::uint64_t elements() const;                     // numbers that were sent
  [[nodiscard]] std::vector<std::vector<std::byte>> bytes() const;  // of each message
  // Writes the vector [P] that a part stands for; only for operators of one phase.
  void write_vector(std::size_t part, std::span<T> out) const;

 private:
  // Returns the channels of each message.
  [[nodiscard]] std::vector<std::vector<codec::Channel<T>>> messages() const;
};

// The caller's knowledge of a vector: nothing, or that it is finite, so that it need not be read once more.
enum class Input { unknown, finite };

// The vector that an operator works on: its tensors, and the runs of parameters that are compressed on their own.
struct Shape {
  std::vector<std::vector<std::size_t>> tensors;  // of the flat vector, in order
  ScopeKind scope = ScopeKind::model;
  std::size_t bucket = 0;  // elements, for ScopeKind::bucket
};

// Returns the tensors of a flat vector as layers. Throws ConfigError for more numbers than positions of 32 bits can name.
[[nodiscard]] LayerTable layers_of(const std::vector<std::vector<std::size_t>>& tensors);

// Throws ConfigError if buckets of this size divide a vector of `size` numbers into more than 2^24 parts: what is kept for each of them
// would take more memory than the numbers.
void require_few_buckets(std::size_t size, ScopeKind scope, std::size_t bucket);

template <class T>
class Operator {
 public:
  // Throws ConfigError for options or a shape that do not fit.
  Operator(const std::string& kind, const Options& options, const Shape& shape);

  [[nodiscard]] std::size_t size() const { return scope_.P; }
  [[nodiscard]] Contract contract() const { return op_->contract(scope_); }
  [[nodiscard]] int num_phases() const { return op_->num_phases(); }
  // Returns the length of the state that the operator keeps of a client between rounds; 0 = none.
  [[nodiscard]] std::size_t state_size() const { return op_->client_state_size(scope_); }

  // Returns the length of the state that sender and receiver share, which every message moves; 0 = none.
  [[nodiscard]] std::size_t shared_size() const { return op_->cohort_state_size(scope_); }
  // Returns that state before the first message of a run.
  [[nodiscard]] std::vector<T> initial_shared(std::uint64_t seed) const;

  // Compresses p = memory + x [P], where `memory` may be empty and is overwritten with p - C(p). `state` [state_size] and `shared`
  // [shared_size] are read and overwritten. The memory has to be finite. Throws Error for a vector that is not, and leaves everything as it
  // was. Throws Overflow if the message of a finite vector is not; the memory and the states have then moved. Several threads take turns.
  [[nodiscard]] Sent<T> compress(std::span<const T> x, const MessageKey& key, std::span<T> memory, std::span<T> state, std::span<T> shared,
                                 Input input = Input::unknown);
  // Writes the vector [P] that the bytes stand for, and moves `shared`. Several threads take turns. Throws Error if they are not a message
  // of this operator.
  void decode(std::span<const std::vector<std::byte>> phases, const MessageKey& key, std::span<T> shared, std::span<T> out);

 private:
  template <class>
  friend class Exchange;

  // Makes the message of the conversation's phase. Throws Overflow if it is not finite.
  [[nodiscard]] typename Sent<T>::Part send_phase(const Conversation<T>& conversation, std::span<const T> x, std::uint32_t client,
                                                  std::span<T> memory, std::span<T> state);
  void read_phase(const Conversation<T>& conversation, std::span<const std::byte> bytes, std::uint32_t client, Payload<T>& message);

  std::unique_ptr<Compressor<T>> op_;
  Scope scope_;
  Workspace workspace_;
  std::vector<double> sums_;  // of an exchange, and its message: fresh memory would cost more than what is written to it
  std::vector<std::byte> bytes_;
  std::shared_ptr<PayloadPool<T>> pool_ = std::make_shared<PayloadPool<T>>();
  std::mutex mutex_;  // of the workspace and the sums, and of what the operator keeps between calls
};

// Returns the key of the random numbers of a scenario's first uplink channel, and the step sizes of a caller, who has one.
[[nodiscard]] std::uint64_t random_key(std::uint64_t seed);
[[nodiscard]] StepSizes steps_of(const MessageKey& key);

extern template struct Sent<float>;
extern template struct Sent<double>;
extern template class Operator<float>;
extern template class Operator<double>;

// Returns the default options of a part with the given ones set. Throws ConfigError for an unknown kind or option, with the nearest name,
// and for a value that the option refuses.
[[nodiscard]] Options options_of(const std::string& role, const std::string& kind, const Value::Table& given);

}  // namespace fl::python
