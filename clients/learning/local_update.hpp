// A local update: the vectors that a client wants to send, computed once per round from the model that it received.
//
// Vectors point uphill: a gradient g, or a difference of models w - y_i; the server subtracts the vectors that it receives.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clients/learning/descent.hpp"
#include "clients/learning/local_optimizer.hpp"
#include "clients/learning/oracle.hpp"
#include "fl_core/config/schedule.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/round/round_views.hpp"
#include "fl_core/round/stated_cost.hpp"

namespace fl {

// Moves the own values of the block's client k by one step, for a stochastic gradient g [P] at the client's start: running averages at
// their rate, weights by the round's step size.
template <class T>
FL_API void move_own(const ClientRound<T>& round, const ClientBlock<T>& block, std::uint32_t k, const T* g);

[[nodiscard]] FL_API const Schedule& constant_schedule();

// The stochastic gradients of a local update and its steps along them. All referenced objects outlive the update's use.
struct StepSettings {
  const SamplingOptions& sampling;
  const Expression& learning_rate;                 // gamma of its steps
  const Schedule& schedule = constant_schedule();  // of gamma over the rounds
  const LocalWork* work = nullptr;  // number of steps, with minibatches drawn by step; null: one gradient by `sampling` at a time
};

// The vectors and gradients of a client's work in a round. The steps themselves, y <- y - gamma d or the local optimizer's, and the cost of
// a gradient are not counted here.
struct LocalCost {
  double gradients = 1;             // on minibatches, for each step; once a round if there are no steps
  double full_gradients = 0;        // over all of the client's rows in a round, the expected number
  EntryCost step = {}, round = {};  // on vectors [P], for each step and once a round
  bool full_at_coin = false;        // in rounds whose coin falls, one full gradient takes the place of all this
};

// The features that a local update supports.
struct LocalTraits {
  bool computes_anywhere = false;  // its theory allows each client a start of its own: RunSettings::offset_slot and kept weights
  bool can_normalise = false;      // heeds RunSettings::normalises: divides its vectors by its work and says so in ClientBlock::work
  bool needs_optimum = false;      // prepare() receives x*
  // Each vector builds on the client's last one (a difference of gradients that the server adds up, a tracker): a postprocessor that
  // changed one would change all that follow.
  bool builds_on_last = false;
  bool takes_optimizer = false;                  // its steps follow LocalUpdate::optimizer()
  std::optional<LocalCost> cost = std::nullopt;  // no value: not stated
};

template <class T>
class FL_API LocalUpdate {
 public:
  virtual ~LocalUpdate() = default;
  [[nodiscard]] virtual std::vector<std::string> vectors() const { return {"model"}; }
  // Returns the units in which its vectors may be compressed; the first is the default.
  [[nodiscard]] virtual std::vector<Unit> units() const = 0;
  // Returns the state that it keeps. Double-buffered client slots are written by each run(), and swapped when the message was delivered.
  [[nodiscard]] virtual std::vector<SlotSpec> slots() const { return {}; }
  [[nodiscard]] virtual StepSettings step_settings() const = 0;
  // Returns the feedbacks with which the update works ("scaffold"); none = any.
  [[nodiscard]] virtual std::vector<std::string> needs_feedback() const { return {}; }
  [[nodiscard]] virtual LocalTraits traits() const { return {}; }
  // Returns the descent that a GPU may compute instead of run(), or no value for methods of another form.
  [[nodiscard]] virtual std::optional<Descent> descent() const { return std::nullopt; }
  // Returns the host's accesses to rows of client state in prepare() and run(), as the rest of a sentence that begins with "the host". "" =
  // none: run() fills block.vectors and block.work and moves block.own. Updates that a GPU may compute return "".
  [[nodiscard]] virtual std::string host_walks() const;
  // Prepares the client state once before the first round. x_star is null unless LocalTraits::needs_optimum.
  virtual void prepare(const Exec& exec, const GradientOracle<T>& oracle, ClientState<T>& state, const T* x_star) const;
  // Fills block.vectors from gradients at block.start and later, and moves block.own to the client's own values after its work
  // (StepwiseUpdate::descend and move_own() do both). Entries of the vectors that are not shared do not matter: they are set to 0 before
  // any other code reads them.
  virtual void run(const Exec& exec, const ClientRound<T>& round, const GradientOracle<T>& oracle, const ClientBlock<T>& block) const = 0;

  // Sets the rule of the steps, once before anything else is asked. Only updates with LocalTraits::takes_optimizer heed it.
  void step_by(OptimizerHalves<T> optimizer) { optimizer_ = std::move(optimizer); }
  // Returns the rule for a device. On the CPU null means plain steps y <- y - gamma d, on a GPU also that the rule has no half for it.
  [[nodiscard]] const LocalOptimizer<T>* optimizer(Device device = Device::cpu) const {
    return device == Device::cpu ? optimizer_.cpu.get() : optimizer_.cuda.get();
  }

 private:
  OptimizerHalves<T> optimizer_;
};

}  // namespace fl
