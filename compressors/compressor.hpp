// A compressor C maps a vector to a message that represents a nearby vector.
//
// A compressor reads its input as an affine form (Affine), writes the client's new state in the same pass (StateWrite) and fills one
// Payload per client. All work is done per client and per segment, so that the message does not depend on block size, threads or device.
// An operator is one file: an options struct, a contract, a class in namespace fl::FL_DEVICE_NS and one FL_REGISTER_PART line.
#pragma once

#include <cstdint>
#include <span>

#include "compressors/contract.hpp"
#include "compressors/step_rule.hpp"
#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"
#include "fl_core/random/random.hpp"

namespace fl {

// Facts about the round that a compressor may use. All of them are the same on every device and for every block.
template <class T>
struct CompressContext {
  std::uint32_t round = 0;
  int phase = 0;
  StepSizes steps;                         // of this round
  std::uint64_t random_key = 0;            // hash64(seed, Purpose::compressor), already distinct for each channel
  std::span<const std::uint32_t> clients;  // [K] ids, used as counters of the random numbers
  const T* shared = nullptr;               // cohort state of this operator (see cohort_state_size), or null
  BatchView<const T> remembered{};         // [K,L] the operator's state of each client (see client_state_size); may be empty
  BatchView<T> remember{};                 // [K,L] that state for the next round, written in full; it takes effect when the message arrives
};

// Interface of operators whose messages are answered: after each phase, all clients and the server learn the mean of the messages.
template <class T>
class FL_API Phases {
 public:
  virtual ~Phases() = default;
  [[nodiscard]] virtual int count() const = 0;
  // Returns the number of elements in the message of a phase.
  [[nodiscard]] virtual std::size_t length(int phase, const Scope& scope) const = 0;
  // Returns the number of elements of the state that all clients share; 0 = none. The state is replicated each round and stored in
  // checkpoints.
  [[nodiscard]] virtual std::size_t state_size(const Scope& scope) const = 0;
  // Fills the shared state before the first round.
  virtual void init_state(std::uint64_t random_key, const Scope& scope, T* shared) const = 0;
  // Updates `shared` by the mean message of a phase. Every client and the server call it. After the last phase `estimate` [P] is the mean
  // of C(p).
  virtual void absorb(int phase, const Scope& scope, std::span<const T> mean, T* shared, T* estimate) const = 0;
};

template <class T>
class FL_API Compressor {
 public:
  virtual ~Compressor() = default;

  [[nodiscard]] virtual Contract contract(const Scope& scope) const = 0;
  // Returns kappa for step sizes other than 1, if the operator's bound depends on them (Domain::at_step_size_one).
  [[nodiscard]] virtual double kappa_at(const Scope& scope, const StepSizes& steps) const {
    (void)steps;
    return contract(scope).kappa.value_or(0);
  }
  // Returns the scope that this operator can compress. PowerSGD, for example, moves tensors without a matrix shape to the excluded tensors.
  [[nodiscard]] virtual Scope adapt(Scope scope) const { return scope; }
  // Throws ConfigError for a scope that does not fit the options (for example k larger than a segment). It is called before the run starts.
  virtual void check(const Scope& scope) const { (void)scope; }

  // Compresses `input` [K,P] into messages[0..K-1] (cleared by the caller, length set) and writes the state.
  virtual void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope,
                        const StateWrite<T>& state, std::span<Payload<T>* const> messages) = 0;

  // Turns received messages into entries, before their entries are read. By default it does nothing; operators that send a code of the
  // entries override it (see Payload::code; DRIVE undoes its rotation). The context is the one of compress(), and its clients are the
  // senders. compress() stores the same entries beside their code.
  virtual void reconstruct(const Exec& exec, const CompressContext<T>& context, const Scope& scope,
                           std::span<Payload<T>* const> messages) const {
    (void)exec;
    (void)context;
    (void)scope;
    (void)messages;
  }

  // Returns the properties of the levels in a message of this round (Payload::level_format) that a receiver with the same configuration
  // knows, because constants of the scenario are not transmitted. The context is the one of compress() without clients and state. By
  // default the receiver knows nothing and the message describes its levels; the description cannot contain a unit.
  [[nodiscard]] virtual MessageLevels known_levels(const CompressContext<T>& context, const Scope& scope) const {
    (void)context;
    (void)scope;
    return {};
  }

  // Returns the bits as the method's paper or code counts them (common practice: 32 per kept value, no indices, no header).
  [[nodiscard]] virtual double published_bits(const Payload<T>& message, const Scope& scope) const;
  // Returns whether published_bits() reads levels, values or positions. If so, a message in GPU memory is copied to the host first.
  [[nodiscard]] virtual bool published_bits_read_entries() const { return false; }

  // Returns the size of the state that the operator keeps for every client between rounds, initially zero; 0 = none. Only the client knows
  // this state, the receiver does not. An operator with several phases writes it in the last phase.
  [[nodiscard]] virtual std::size_t client_state_size(const Scope& scope) const;

  // Returns the phases of an operator with more than one phase (PowerSGD). Null means one phase, whose mean is the mean of C(p).
  [[nodiscard]] virtual const Phases<T>* phases() const { return nullptr; }
  // Forward to phases(), or return the values for one phase if phases() is null.
  [[nodiscard]] int num_phases() const { return phases() == nullptr ? 1 : phases()->count(); }
  [[nodiscard]] std::size_t message_length(int phase, const Scope& scope) const;
  [[nodiscard]] std::size_t cohort_state_size(const Scope& scope) const;
  void init_cohort_state(std::uint64_t random_key, const Scope& scope, T* shared) const;
  void absorb_mean(int phase, const Scope& scope, std::span<const T> mean, T* shared, T* estimate) const;
};

}  // namespace fl
