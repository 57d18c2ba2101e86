// The exchange of a round: the channels of a message, the compressor of each channel and the number of phases.
//
// Most methods have one channel and one phase. SCAFFOLD has two channels. PowerSGD has two phases with a mean between them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compressors/compressor.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/round/round_views.hpp"
#include "fl_core/round/run_settings.hpp"

namespace fl {

// Returns the step sizes of a round with step size gamma.
[[nodiscard]] inline StepSizes step_sizes(const RunSettings& run, double gamma) {
  if (run.unit == Unit::step) return {.in_input = gamma};
  if (run.unit == Unit::update) return {.local = gamma, .local_total = gamma * run.local_steps};
  return {};
}

template <class T>
struct ExchangeChannel {
  std::string name;        // "model", "control", "shift", ...
  std::size_t vector = 0;  // index of the local vector that the channel sends
  std::unique_ptr<Compressor<T>> compressor;
  std::unique_ptr<Compressor<T>> dense;     // identity, for rounds that send everything uncompressed
  Device device = Device::cpu;              // device of the compressor; `dense` runs on the clients' device
  std::unique_ptr<Compressor<T>> receiver;  // the same operator on the CPU, for reading messages; null if `compressor` runs there
  Scope scope;                              // over P
  std::vector<Scope> phase_scope;           // scope of each phase's message (equal to `scope` for one-phase operators)
  std::uint64_t random_key = 0;
  std::uint32_t every = 1;  // the channel is used in rounds every, 2 every, ...
  std::string shared_slot;  // shared slot of the operator's own state; "" = none
  std::string client_slot;  // double-buffered client slot of the operator's state of each client; "" = none

  [[nodiscard]] bool is_active(std::uint32_t round) const { return round % every == 0; }
  // Returns whether the channel is part of the messages of a phase.
  [[nodiscard]] bool is_active_in(std::uint32_t round, int phase) const { return phase < num_phases() && is_active(round); }
  [[nodiscard]] int num_phases() const { return compressor->num_phases(); }
  [[nodiscard]] std::size_t length(int phase) const { return phase_scope[static_cast<std::size_t>(phase)].P; }
  // Returns the context of these clients' messages, which client and server know.
  [[nodiscard]] CompressContext<T> context(const RoundView<T>& round, int phase, std::span<const std::uint32_t> clients) const {
    return {.round = round.order.round,
            .phase = phase,
            .steps = step_sizes(round.run, round.order.step_size),
            .random_key = random_key,
            .clients = clients};
  }
};

template <class T>
struct Exchange {
  std::vector<ExchangeChannel<T>> channels;

  [[nodiscard]] int num_phases() const {
    int phases = 1;
    for (const auto& channel : channels) phases = channel.num_phases() > phases ? channel.num_phases() : phases;
    return phases;
  }
};

}  // namespace fl
