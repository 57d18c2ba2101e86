// A local optimizer: the rule by which a client steps along its stochastic gradients in its work of a round.
//
//   (y, s) <- step(t, gamma, w, g, y, s),   y = w at first     g: the stochastic gradient, with the local update's penalties
//
// s are vectors of the rule's own, [P] each: momentum, second moments. They begin at zero in each round, or lie with the client between its
// rounds. t counts the steps since they began. Plain steps are y <- y - gamma g, without s.
//
// A rule is written once inside `namespace fl::FL_DEVICE_NS` and compiled for both devices, like an operator (fl_core/config/device.hpp).
// clients/optimizers/entries.hpp has the loop over entries. Letters of shapes: K clients, P parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "fl_core/config/device.hpp"
#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/round/stated_cost.hpp"

namespace fl {

// The time after which the vectors of a rule begin again at zero: a round, or never. Those that a client keeps are client slots: the work
// of a round counts for them if the client's message was delivered.
enum class StateLife { round, client };

// One step of K clients. The pointers of views are on the device of the step's exec.
template <class T>
struct OptimizerStep {
  std::span<const std::uint64_t> count;  // [K] t of each client, from 1; on the host
  double gamma = 0;                      // step size
  const LayerTable& layers;              // the tensors of the P entries, ascending
  BatchView<const T> w;                  // [K,P] the models that the clients received
  BatchView<T> g;                        // [K,P] gradients, 0 at running averages; scratch memory after the step
  BatchView<T> y;                        // [K,P] moves in place. Running averages are put back after the step
  std::span<const BatchView<T>> states;  // [K,P] each, moves in place
};

template <class T>
class FL_API LocalOptimizer {
 public:
  virtual ~LocalOptimizer() = default;
  // Returns the number of vectors that the rule keeps from step to step.
  [[nodiscard]] virtual std::size_t num_states() const = 0;
  [[nodiscard]] virtual StateLife life() const { return StateLife::round; }
  // Throws ConfigError for options that do not suit the model's tensors.
  virtual void check(const LayerTable& layers) const { (void)layers; }
  // Takes a step. Results depend on each client's own numbers alone, not on the other clients of the step. Several threads call it.
  virtual void step(const Exec& exec, const OptimizerStep<T>& step) const = 0;
  // Returns |a|_1 of w - y = gamma sum_u a_u g_u after `steps` steps from y = w, which grows with the steps, or nothing if w - y is no such
  // sum: it cannot be normalised (FedNova) then.
  [[nodiscard]] virtual std::optional<double> work(std::uint32_t steps) const {
    (void)steps;
    return std::nullopt;
  }
  // Returns beta of a rule that is v <- beta v + g, y <- y - gamma v with v = 0 when a round begins, and nothing for any other rule. Local
  // kind "sgd" takes such steps by itself, on a GPU while it computes the gradient.
  [[nodiscard]] virtual std::optional<double> plain_momentum() const { return std::nullopt; }
  // Returns the cost of a step per entry, or no value if the rule does not state it.
  [[nodiscard]] virtual std::optional<EntryCost> cost() const { return std::nullopt; }
};

// A rule on both devices. cuda is null if it has no half for a GPU, and in a build without CUDA.
template <class T>
struct OptimizerHalves {
  std::unique_ptr<const LocalOptimizer<T>> cpu, cuda;
};

}  // namespace fl
