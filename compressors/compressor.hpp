// A compressor: C maps a vector to a message that stands for a nearby vector.
//
// It reads its input as an affine form (Affine), writes the client's new state in the same pass (StateWrite) and fills one Payload per
// client. Everything happens per client and per segment, so that the message does not depend on block size, threads or device.
// An operator is one file: options struct, contract, class in namespace fl::FL_DEVICE_NS, one FL_REGISTER_PART line.
#pragma once

#include <cstdint>
#include <span>

#include "compressors/contract.hpp"
#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"
#include "fl_core/random/random.hpp"

namespace fl {

// What a compressor may know about the round. All of it is the same on every device and for every block.
template <class T>
struct CompressContext {
  std::uint32_t round = 0;
  int phase = 0;
  double step_size = 1;                    // gamma of this round: the factor inside the input when unit = step, else 1
  std::uint64_t random_key = 0;            // hash64(seed, Purpose::compressor), already distinct per channel
  std::span<const std::uint32_t> clients;  // [K] ids, for the counters of random numbers
  const T* shared = nullptr;               // cohort state of this operator (see cohort_state_size), or null
  BatchView<const T> remembered{};         // [K,L] what this operator remembers of each client (see client_state_size), if anything
  BatchView<T> remember{};                 // [K,L] the same for the next round, to be written in full; moves when the message arrived
};

// The phases of an operator whose messages are answered: after each of them everyone learns the mean of the messages.
template <class T>
class FL_API Phases {
 public:
  virtual ~Phases() = default;
  [[nodiscard]] virtual int count() const = 0;
  // Elements of the message of a phase.
  [[nodiscard]] virtual std::size_t length(int phase, const Scope& scope) const = 0;
  // Elements of the state that all clients share, replicated in rounds and checkpointed; 0 = none.
  [[nodiscard]] virtual std::size_t state_size(const Scope& scope) const = 0;
  // Fills the shared state before the first round.
  virtual void init_state(std::uint64_t random_key, const Scope& scope, T* shared) const = 0;
  // What everyone does with the mean message of a phase: `shared` moves; after the last phase `estimate` [P] is the mean of C(p).
  virtual void absorb(int phase, const Scope& scope, std::span<const T> mean, T* shared, T* estimate) const = 0;
};

template <class T>
class FL_API Compressor {
 public:
  virtual ~Compressor() = default;

  [[nodiscard]] virtual Contract contract(const Scope& scope) const = 0;
  // kappa at another step size than 1, for an operator whose bound depends on it (Domain::at_step_size_one).
  [[nodiscard]] virtual double kappa_at(const Scope& scope, double step_size) const {
    (void)step_size;
    return contract(scope).kappa.value_or(0);
  }
  // The scope as this operator can serve it: PowerSGD moves tensors without a matrix shape to the excluded ones.
  [[nodiscard]] virtual Scope adapt(Scope scope) const { return scope; }
  // Throws ConfigError for a scope that the options cannot serve (k above a segment's size). Called before anything runs.
  virtual void check(const Scope& scope) const { (void)scope; }

  // Compresses `input` [K,P] into messages[0..K-1] (cleared by the caller, length set) and writes the state.
  virtual void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope,
                        const StateWrite<T>& state, std::span<Payload<T>* const> messages) = 0;

  // What a receiver does with messages as they travelled, before anyone reads their entries: nothing, unless they are a code of them (see
  // Payload::code; DRIVE undoes its rotation). The context is that of compress(); its clients are the senders. compress() leaves the
  // same entries beside their code.
  virtual void reconstruct(const Exec& exec, const CompressContext<T>& context, const Scope& scope,
                           std::span<Payload<T>* const> messages) const {
    (void)exec;
    (void)context;
    (void)scope;
    (void)messages;
  }

  // What a receiver with the same configuration knows of the levels in a message of this round (Payload::level_format) without being told:
  // constants of the scenario do not travel. The context is that of compress() without clients and state. An operator that does not say
  // anything sends a description, which has no room for a unit.
  [[nodiscard]] virtual MessageLevels known_levels(const CompressContext<T>& context, const Scope& scope) const {
    (void)context;
    (void)scope;
    return {};
  }

  // Bits as the method's paper or code counts them (practice: 32 per kept value, no indices, no header).
  [[nodiscard]] virtual double published_bits(const Payload<T>& message, const Scope& scope) const;
  // Whether that reads levels, values or positions: a message in a GPU's memory is then copied to the host for it.
  [[nodiscard]] virtual bool published_bits_read_entries() const { return false; }

  // Numbers that the operator remembers of every client from round to round, zeros at first; 0 = none. They are the client's alone: the
  // receiver does not know them. An operator of several phases writes them in the last one.
  [[nodiscard]] virtual std::size_t client_state_size(const Scope& scope) const;

  // Conversations of more than one phase (PowerSGD); null: there is one, and its mean is the mean of C(p).
  [[nodiscard]] virtual const Phases<T>* phases() const { return nullptr; }
  // What phases() say, or what holds without.
  [[nodiscard]] int num_phases() const { return phases() == nullptr ? 1 : phases()->count(); }
  [[nodiscard]] std::size_t message_length(int phase, const Scope& scope) const;
  [[nodiscard]] std::size_t cohort_state_size(const Scope& scope) const;
  void init_cohort_state(std::uint64_t random_key, const Scope& scope, T* shared) const;
  void absorb_mean(int phase, const Scope& scope, std::span<const T> mean, T* shared, T* estimate) const;
};

}  // namespace fl
