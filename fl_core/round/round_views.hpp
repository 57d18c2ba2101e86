// What the two sides of a round see of it: the order that the server gives, which is all that travels beside models, messages and shared
// slots, and one view for each side. A client's view has no way to the server's state, and the server's none to a client's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/message/payload.hpp"
#include "fl_core/round/run_settings.hpp"
#include "fl_core/state/client_state.hpp"
#include "fl_core/state/server_state.hpp"
#include "fl_core/state/shared_state.hpp"

namespace fl {

// What the server says of a round before it begins: plain values, which could go over a wire.
struct RoundOrder {
  std::uint32_t round = 0;            // 1 is the first
  double step_size = 1;               // gamma of this round
  double server_step = 0;             // s of the server's step w <- w - s estimate; 0 if its optimizer takes any other step
  bool coin = false;                  // common to all (Feedback::toss)
  bool measure = false;               // norms are due this round
  std::vector<std::uint32_t> cohort;  // [M] client ids, ascending
};

// What both sides know of a round.
template <class T>
struct RoundView {
  const RunSettings& run;
  const RoundOrder& order;
  std::span<const T> reference;  // w [P]: the model at which clients compute; until the server's step, which may move it

  [[nodiscard]] std::size_t P() const { return run.P; }
  // The factor that turns a gradient into the compressor's unit.
  [[nodiscard]] T input_factor() const { return run.unit == Unit::step ? static_cast<T>(order.step_size) : T(1); }
};

// A round as clients see it: their own state, and what the server shares with them, which they cannot write.
template <class T>
struct ClientRound : RoundView<T> {
  ClientState<T>& state;
  const SharedState<T>& shared;
};

// Messages of one channel, as the server received them.
template <class T>
struct ArrivedMessages {
  const Scope& scope;                           // of the last phase
  std::span<const Payload<T>* const> messages;  // [M]; null where nothing arrived
};

// A round as the server sees it once messages are there: whom it weighs how, what arrived, and its own state.
template <class T>
struct ServerRound : RoundView<T> {
  std::span<const double> cohort_weight;        // [M] weights of the estimate: sum_i cohort_weight_i c_i estimates grad f
  std::span<const double> population_weight;    // [M] w_i of f = sum_i w_i f_i: weights of sums over all clients' state
  std::span<const ArrivedMessages<T>> arrived;  // by channel
  ServerState<T>& state;
  SharedState<T>& shared;
};

// K clients at cohort positions first .. first+K-1, with the vectors they want to send and the messages they send.
template <class T>
struct ClientBlock {
  std::uint32_t first = 0, K = 0;
  std::span<const std::uint32_t> clients;              // [K] ids
  std::vector<BatchView<T>> vectors;                   // by local vector: [K,P]
  std::vector<std::span<Payload<T>* const>> messages;  // by message channel: [K]
  std::span<double> work;                              // [K] 1, or what LocalUpdate divided its vectors by
  BatchView<T> statistics{};                           // [K,S] of the clients' models: before their work, then after it
  // Clients begin .. begin+count-1 of this block.
  [[nodiscard]] ClientBlock slice(std::uint32_t begin, std::uint32_t count) const {
    ClientBlock part{first + begin, count, clients.subspan(begin, count), {}, {}, work.subspan(begin, count)};
    part.statistics = statistics.slice(begin, count);
    for (const BatchView<T>& vector : vectors) part.vectors.push_back(vector.slice(begin, count));
    for (const auto& message : messages) part.messages.push_back(message.subspan(begin, count));
    return part;
  }
  [[nodiscard]] BatchView<T> stored(ClientState<T>& state, const std::string& slot) const { return state.stored(slot, first, K); }
  [[nodiscard]] BatchView<T> shadow(ClientState<T>& state, const std::string& slot) const { return state.shadow(slot, first, K); }
};

}  // namespace fl
