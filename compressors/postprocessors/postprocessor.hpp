// A postprocessor changes the vectors that clients give to their feedback, and the estimate that the server's optimizer receives: clipping,
// for example, or noise. (The word is pfl-research's.)
//
//   client   LocalUpdate -> on_client(v) -> Feedback.prepare -> Compressor        v: each local vector [P], in the unit of the local update
//   server   Feedback.receive -> on_server(estimate) -> ServerOptimizer           estimate [P], in the unit of [compressor.up]
//
// On the clients' side it works before the feedback, so that error memories and shifts are those of the changed vectors: what it takes away
// is not sent later. It does not change messages. A message that has been compressed is not bounded by it either: an error memory adds
// earlier errors to the vector, and an operator may send more than its input. A change after compression would have to be made in every
// form of payload, and in the state that the fused pass writes together with the message.
//
// A postprocessor with a CUDA half (one file that is compiled for both devices, as operators are) works where the vectors lie. Without one
// the CPU's threads share a block, and vectors are in memory that the host reaches.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "fl_core/config/device.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/round/round_views.hpp"
#include "fl_core/round/stated_cost.hpp"

namespace fl {

// A bound on the length of vectors.
struct VectorBound {
  enum class Norm { l2, infinity } norm = Norm::l2;
  double limit = 0;
};

// The properties that a postprocessor fixes before the run. By default it changes nothing.
struct PostprocessorPlan {
  bool changes_vectors = false;   // of clients: on_client() is called
  bool changes_estimate = false;  // on_server() is called
  bool one_vector = false;        // needs a local update that sends one vector
  // The length that no vector or estimate exceeds after the change, up to its rounding: at most limit (1 + 2 eps) with the eps of the type.
  // It is no bound on messages.
  std::optional<VectorBound> bound = std::nullopt;
  // The cost per entry of on_client() for a vector, and of on_server(). No value: not stated.
  std::optional<EntryCost> client_cost = std::nullopt, server_cost = std::nullopt;
};

template <class T>
class FL_API Postprocessor {
 public:
  virtual ~Postprocessor() = default;

  [[nodiscard]] virtual PostprocessorPlan plan() const = 0;
  // Changes block.vectors[vector] [K,P] on exec.device, where the views and their row numbers lie. Each client's result depends on its own
  // vector and ids alone, on no other client of the block. Vectors are finite and must stay so. Entries of parameters that are not shared
  // (round.run.kinds.unshared) are 0, and are set to 0 again after the call. Random numbers are counters of round.run.seeds,
  // round.order.round, the client and the vector. Several threads call it, for other clients.
  virtual void on_client(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t vector) const {
    (void)exec, (void)round, (void)block, (void)vector;
  }
  // Changes the estimate [P] in host memory, which may hold numbers that are not finite if the run diverges: these stay. Entries of
  // parameters that are not shared do not reach the server's optimizer. Called once per round.
  virtual void on_server(const ServerRound<T>& round, std::span<double> estimate) const { (void)round, (void)estimate; }
};

// A postprocessor of clients' vectors, and the device that it works on. Null: vectors stay as they are.
template <class T>
struct ClientPostprocessor {
  const Postprocessor<T>* part = nullptr;
  Device device = Device::cpu;
};

}  // namespace fl
