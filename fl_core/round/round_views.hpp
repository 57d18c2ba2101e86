// The data of a round for server and clients: the order of the server, which is sent in addition to models, messages and shared slots, and
// one view for each side. A client's view gives no access to the server's state, and the server's view none to client state.
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

// The server's announcement of a round: plain values that can be sent over a network.
struct RoundOrder {
  std::uint32_t round = 0;            // from 1
  double step_size = 1;               // gamma of this round
  double server_step = 0;             // s of the server's step w <- w - s estimate; 0 if its optimizer takes another step
  bool coin = false;                  // common to all clients (Feedback::toss)
  bool measure = false;               // norms are measured in this round
  std::vector<std::uint32_t> cohort;  // [M] client ids, ascending
};

// The data of a round that both sides know.
template <class T>
struct RoundView {
  const RunSettings& run;
  const RoundOrder& order;
  std::span<const T> reference;  // w [P]: the model at which clients compute; valid until the server's step, which may change it

  [[nodiscard]] std::size_t P() const { return run.P; }
  // Returns the factor that converts a gradient to the compressor's unit.
  [[nodiscard]] T input_factor() const { return run.unit == Unit::step ? static_cast<T>(order.step_size) : T(1); }
};

// A round for clients: their own state, and the shared state, which they cannot write.
template <class T>
struct ClientRound : RoundView<T> {
  ClientState<T>& state;
  const SharedState<T>& shared;
};

// Messages of one channel that the server received.
template <class T>
struct ArrivedMessages {
  const Scope& scope;                           // of the last phase
  std::span<const Payload<T>* const> messages;  // [M]; null for a message that did not arrive
};

// A round for the server once messages are there: the weights of clients, the arrived messages, and the server's state.
template <class T>
struct ServerRound : RoundView<T> {
  std::span<const double> cohort_weight;        // [M] weights of the estimate: sum_i cohort_weight_i c_i estimates grad f
  std::span<const double> population_weight;    // [M] w_i of f = sum_i w_i f_i: weights of sums over all clients' state
  std::span<const ArrivedMessages<T>> arrived;  // by channel
  ServerState<T>& state;
  SharedState<T>& shared;
};

// K clients at cohort positions first .. first+K-1, with their vectors and their messages.
template <class T>
struct ClientBlock {
  std::uint32_t first = 0, K = 0;
  std::span<const std::uint32_t> clients;              // [K] ids
  std::vector<BatchView<T>> vectors;                   // by local vector: [K,P]
  std::vector<std::span<Payload<T>* const>> messages;  // by message channel: [K]
  std::span<double> work;                              // [K] 1, or the divisor that LocalUpdate applied to the vectors
  BatchView<T> own{};                                  // [K,U] values of ParameterKinds::unshared: before local work, then after it
  BatchView<const T> start{};                          // [K,P] the models at which they begin: w, in one row (stride 0), or their own
  // Returns clients begin .. begin+count-1 of this block.
  [[nodiscard]] ClientBlock slice(std::uint32_t begin, std::uint32_t count) const {
    ClientBlock part{first + begin, count, clients.subspan(begin, count), {}, {}, work.subspan(begin, count)};
    part.own = own.slice(begin, count);
    part.start = start.slice(begin, count);
    for (const BatchView<T>& vector : vectors) part.vectors.push_back(vector.slice(begin, count));
    for (const auto& message : messages) part.messages.push_back(message.subspan(begin, count));
    return part;
  }
  [[nodiscard]] BatchView<T> stored(ClientState<T>& state, const std::string& slot) const { return state.stored(slot, first, K); }
  [[nodiscard]] BatchView<T> shadow(ClientState<T>& state, const std::string& slot) const { return state.shadow(slot, first, K); }
};

}  // namespace fl
