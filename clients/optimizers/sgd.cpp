// Steps along the gradient, with or without momentum: v <- beta v + g, y <- y - gamma v.
//
// v begins at zero in each round (state = "round", the default: clients then take the steps by themselves, LocalOptimizer::plain_momentum),
// or stays with the client between its rounds (state = "client").
// Source: B. T. Polyak, "Some methods of speeding up the convergence of iteration methods", USSR Computational Mathematics and Mathematical
// Physics 4(5), 1964.
#include <optional>

#include "clients/learning/local_optimizer.hpp"
#include "clients/optimizers/entries.hpp"
#include "clients/optimizers/state_field.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct PlainStepOptions {
  std::optional<double> momentum;  // unset: local.momentum
  StateLife state = StateLife::round;
};
inline void describe(Schema& s, PlainStepOptions& o) {
  const auto set = [&o](const Value& value) -> std::optional<std::string> {
    double beta = 0;
    Schema one;
    auto refused = one.field("momentum", beta, "").assign(value);
    if (!refused) o.momentum = beta;
    return refused;
  };
  const auto get = [&o] { return o.momentum ? Value{*o.momentum} : Value{}; };
  s.add(Field("momentum", "number", "beta of v = beta v + g, y -= gamma v; unset, local kind sgd takes local.momentum", set, get))
      .at_least(0)
      .below(1);
  state_field(s, o.state);
}
inline void validate(const PlainStepOptions& o, Problems& problems) {
  if (o.state == StateLife::client && o.momentum.value_or(0) == 0)
    problems.push_back({"state", "= \"client\" keeps the momentum between rounds, and there is none: give momentum, or drop state"});
}

namespace FL_DEVICE_NS {
namespace {

template <class T>
struct PlainStep {
  BatchView<const T> g;
  BatchView<T> y, v;  // v.data is null without momentum
  T gamma, beta;

  struct OfClient {
    const T* g;
    T *y, *v;
    T gamma, beta;
    FL_HD void operator()(std::size_t j) const {
      T direction = g[j];
      if (v != nullptr) direction = v[j] = beta * v[j] + direction;
      y[j] = y[j] - gamma * direction;
    }
  };
  FL_HD OfClient of_client(std::size_t k) const { return {g.row(k), y.row(k), v.data == nullptr ? nullptr : v.row(k), gamma, beta}; }
};

template <class T>
class PlainSteps final : public LocalOptimizer<T> {
 public:
  explicit PlainSteps(const PlainStepOptions& options) : momentum_(options.momentum.value_or(0)), life_(options.state) {}

  [[nodiscard]] std::size_t num_states() const override { return momentum_ > 0 ? 1 : 0; }
  [[nodiscard]] StateLife life() const override { return life_; }
  [[nodiscard]] std::optional<double> plain_momentum() const override {
    return life_ == StateLife::round ? std::optional(momentum_) : std::nullopt;
  }
  [[nodiscard]] std::optional<EntryCost> cost() const override { return momentum_ > 0 ? EntryCost{5, 4} : EntryCost{3, 2}; }
  void step(const Exec& exec, const OptimizerStep<T>& step) const override {
    const BatchView<T> v = momentum_ > 0 ? step.states[0] : BatchView<T>{};
    for_each_entry(exec, step.y.K, Segment{0, step.y.P},
                   PlainStep<T>{step.g, step.y, v, static_cast<T>(step.gamma), static_cast<T>(momentum_)});
  }
  // w - y contains gradients of earlier rounds if momentum is kept.
  [[nodiscard]] std::optional<double> work(std::uint32_t steps) const override {
    if (life_ == StateLife::client) return std::nullopt;
    double v = 0, moved = 0;
    for (std::uint32_t step = 0; step < steps; ++step) moved += v = momentum_ * v + 1;
    return moved;
  }

 private:
  double momentum_;
  StateLife life_;
};

FL_REGISTER_PART(LocalOptimizer, PlainSteps, PlainStepOptions,
                 (PartInfo{"local_optimizer", "sgd", "steps along the gradient, with or without momentum", "Polyak, 1964"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
