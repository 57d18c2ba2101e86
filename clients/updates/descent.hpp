// The common part of all methods with local steps: options, and the steps of one client from w.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "clients/learning/local_update.hpp"
#include "clients/learning/local_work.hpp"
#include "clients/learning/optimizer_state.hpp"
#include "fl_core/config/rule_field.hpp"

namespace fl {

struct LocalStepOptions : SamplingOptions {
  Expression learning_rate{0.1};
  Schedule schedule;
  LocalWork work;
  double weight_decay = 0;
};
inline void describe(Schema& s, LocalStepOptions& o) {
  describe(s, static_cast<SamplingOptions&>(o));
  learning_rate_field(s, o.learning_rate, "gamma of the local steps: a number or a rule");
  describe(s, o.schedule);
  describe(s, o.work);
  s.field("weight_decay", o.weight_decay, "weight of y that is added to each gradient").at_least(0);
}
inline void validate(const LocalStepOptions& o, Problems& problems) { validate(o.work, problems); }

// A LocalUpdate for methods with LocalStepOptions.
template <class T, class MethodOptions>
class StepwiseUpdate : public LocalUpdate<T> {
 public:
  explicit StepwiseUpdate(MethodOptions options) : options_(std::move(options)) {}

  [[nodiscard]] StepSettings step_settings() const final { return {options_, options_.learning_rate, options_.schedule, &options_.work}; }
  [[nodiscard]] std::vector<Unit> units() const override { return {Unit::update}; }
  [[nodiscard]] std::vector<SlotSpec> slots() const override {
    return this->optimizer() == nullptr ? std::vector<SlotSpec>{} : optimizer_slots(*this->optimizer());
  }

 protected:
  // Returns the cost of adding the weight decay to a gradient.
  [[nodiscard]] EntryCost cost_of_decay() const { return options_.weight_decay > 0 ? EntryCost{3, 2} : EntryCost{}; }
  // Takes the steps y <- y - gamma d of the block's client k, from y = w, its start. direction(g, y) turns the stochastic gradient g [P]
  // (weight decay included) into d in place; methods that need the number of steps H use direction(g, y, H). With a rule the steps are its
  // own, along d. Returns H. y and g [P] are scratch memory.
  template <class Direction>
  std::uint32_t descend(const Exec& exec, const ClientRound<T>& round, const GradientOracle<T>& oracle, const ClientBlock<T>& block,
                        std::uint32_t k, T* y, T* g, const Direction& direction, const LocalOptimizer<T>* rule = nullptr) const {
    const std::uint32_t client = block.clients[k];
    const std::size_t P = round.P();
    const T gamma = static_cast<T>(round.order.step_size), decay = static_cast<T>(options_.weight_decay);
    Workspace::Frame frame(*exec.workspace);
    LocalSteps<T> steps(frame, oracle, client, round.order.round, options_.work);
    std::optional<ClientOptimizer<T>> optimizer;
    if (rule != nullptr) optimizer.emplace(*rule, oracle, round, block, k, frame);
    std::copy_n(block.start.row(k), P, y);
    if (block.own.P > 0) round.run.kinds.scatter_own(block.own.row(k), y);
    for (std::uint32_t step = 0; step < steps.count(); ++step) {
      oracle.gradient_on(exec, y, client, {.round = round.order.round, .step = step}, steps.rows(step), g);
      move_with(oracle.running_averages(), g, y);
      if (decay > T(0))
        for (std::size_t j = 0; j < P; ++j) g[j] += decay * y[j];
      if constexpr (std::is_invocable_v<const Direction&, T*, const T*, std::uint32_t>)
        direction(g, y, steps.count());
      else
        direction(g, y);
      if (optimizer) {
        clear_ranges<T>(oracle.running_averages(), g);
        optimizer->step(exec, round.order.step_size, block.start.row(k), g, y);
        continue;
      }
      for_each_run_outside(oracle.running_averages(), 0, P, [&](std::size_t begin, std::size_t end) {
        for (std::size_t j = begin; j < end; ++j) y[j] -= gamma * g[j];
      });
    }
    if (block.own.P > 0) round.run.kinds.gather_own(y, block.own.row(k));
    return steps.count();
  }

  MethodOptions options_;

 private:
  // Moves running averages at their own rate, whatever the method does.
  static void move_with(std::span<const ParameterRange> averages, const T* g, T* y) {
    for (const ParameterRange& average : averages)
      for (std::size_t j = average.begin; j < average.end; ++j) y[j] -= static_cast<T>(average.running_rate) * g[j];
  }
};

}  // namespace fl
