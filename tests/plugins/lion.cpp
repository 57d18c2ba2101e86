// Lion, a local optimizer in one file: y <- y - gamma (sign(beta1 m + (1 - beta1) g) + lambda y), m <- beta2 m + (1 - beta2) g.
// X. Chen et al., "Symbolic discovery of optimization algorithms", NeurIPS 2023.
#include "clients/learning/local_optimizer.hpp"
#include "clients/optimizers/entries.hpp"
#include "clients/optimizers/state_field.hpp"
#include "fedbits/plugin.hpp"

namespace fl {

struct LionOptions {
  double beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
  StateLife state = StateLife::round;
};
inline void describe(Schema& schema, LionOptions& options) {
  schema.field("beta1", options.beta1, "weight of m in the step").at_least(0).below(1);
  schema.field("beta2", options.beta2, "decay of m").at_least(0).below(1);
  schema.field("weight_decay", options.weight_decay, "lambda: each step also moves y by -gamma lambda y").at_least(0);
  state_field(schema, options.state);
}

namespace FL_DEVICE_NS {
namespace {

template <class T>
struct LionStep {
  BatchView<T> g, y, m;
  T gamma, beta1, beta2, decay;

  struct OfClient {
    T *g, *y, *m;
    T gamma, beta1, beta2, decay;
    FL_HD void operator()(std::size_t j) const {
      const T direction = beta1 * m[j] + (T(1) - beta1) * g[j];
      const T sign = direction > T(0) ? T(1) : direction < T(0) ? T(-1) : T(0);
      m[j] = beta2 * m[j] + (T(1) - beta2) * g[j];
      y[j] = y[j] - gamma * (sign + decay * y[j]);
    }
  };
  FL_HD OfClient of_client(std::size_t k) const { return {g.row(k), y.row(k), m.row(k), gamma, beta1, beta2, decay}; }
};

template <class T>
class Lion final : public LocalOptimizer<T> {
 public:
  explicit Lion(const LionOptions& options) : options_(options) {}

  [[nodiscard]] std::size_t num_states() const override { return 1; }
  [[nodiscard]] StateLife life() const override { return options_.state; }
  void step(const Exec& exec, const OptimizerStep<T>& step) const override {
    for_each_entry(exec, step.y.K, Segment{0, step.y.P},
                   LionStep<T>{step.g, step.y, step.states[0], static_cast<T>(step.gamma), static_cast<T>(options_.beta1),
                               static_cast<T>(options_.beta2), static_cast<T>(options_.weight_decay)});
  }

 private:
  LionOptions options_;
};

FL_REGISTER_PART(LocalOptimizer, Lion, LionOptions,
                 (PartInfo{"local_optimizer", "lion", "steps along the signs of a momentum", "Chen et al., NeurIPS 2023"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
