// AdamW: Adam's steps with weight decay that does not enter the gradient. In step t, from 1, with m = v = 0 before the first:
//
//   m <- beta1 m + (1 - beta1) g,   v <- beta2 v + (1 - beta2) g^2
//   y <- y - gamma lambda y - gamma (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
//
// The first step moves each entry by gamma, against the sign of its gradient. lambda is `weight_decay` here, multiplied by the step size as
// in PyTorch's AdamW (the paper multiplies by its schedule alone); 0 gives Adam. local.weight_decay is something else: it adds to g.
// Sources: I. Loshchilov, F. Hutter, "Decoupled weight decay regularization", ICLR 2019, Algorithm 2; D. P. Kingma, J. Ba, "Adam: a method
// for stochastic optimization", ICLR 2015.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "clients/learning/local_optimizer.hpp"
#include "clients/optimizers/entries.hpp"
#include "clients/optimizers/state_field.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
  std::vector<std::string> no_decay;
  StateLife state = StateLife::round;
};
inline void describe(Schema& s, AdamWOptions& o) {
  s.field("beta1", o.beta1, "decay of the mean of gradients m").at_least(0).below(1);
  s.field("beta2", o.beta2, "decay of the mean of squared gradients v").at_least(0).below(1);
  s.field("epsilon", o.epsilon, "added to the root of v").at_least(1e-30);
  s.field("weight_decay", o.weight_decay,
          "lambda: each step also moves y by -gamma lambda y. It does not enter the gradient, as local.weight_decay does")
      .at_least(0);
  s.field("no_decay", o.no_decay, "names of the layers to which weight_decay does not apply");
  state_field(s, o.state);
}

namespace FL_DEVICE_NS {
namespace {

// The numbers of one client's step.
template <class T>
struct AdamWNumbers {
  T step, per_root;  // gamma / (1 - beta1^t), 1 / sqrt(1 - beta2^t)
};

// The step of one client's entries.
template <class T>
struct AdamWOfClient {
  const T* g;
  T *y, *m, *v;
  T beta1, beta2, fresh1, fresh2, epsilon, kept;
  AdamWNumbers<T> numbers;
  FL_HD void operator()(std::size_t j) const {
    const T gradient = g[j];
    const T mean = beta1 * m[j] + fresh1 * gradient, square = beta2 * v[j] + fresh2 * (gradient * gradient);
    m[j] = mean;
    v[j] = square;
    y[j] = kept * y[j] - numbers.step * mean / (std::sqrt(square) * numbers.per_root + epsilon);
  }
};

template <class T>
struct AdamWStep {
  const AdamWNumbers<T>* numbers;  // [K]
  BatchView<const T> g;
  BatchView<T> y, m, v;
  T beta1, beta2, fresh1, fresh2, epsilon;
  T kept;  // 1 - gamma lambda

  FL_HD AdamWOfClient<T> of_client(std::size_t k) const {
    return {g.row(k), y.row(k), m.row(k), v.row(k), beta1, beta2, fresh1, fresh2, epsilon, kept, numbers[k]};
  }
};

template <class T>
class AdamW final : public LocalOptimizer<T> {
 public:
  explicit AdamW(AdamWOptions options) : options_(std::move(options)) {}

  [[nodiscard]] std::size_t num_states() const override { return 2; }
  [[nodiscard]] StateLife life() const override { return options_.state; }
  void check(const LayerTable& layers) const override {
    std::vector<std::string> names;
    for (const Layer& layer : layers.layers) names.push_back(layer.name);
    for (const std::string& name : options_.no_decay) {
      if (std::ranges::find(names, name) != names.end()) continue;
      std::string known;
      for (const std::string& one : names) known += (known.empty() ? "" : ", ") + one;
      const std::string near = nearest_name(name, names);
      throw key_error("no_decay", "the model has no layer \"" + name + "\"" + (near.empty() ? "" : "; did you mean \"" + near + "\"?") +
                                      " (its layers: " + known + ")");
    }
  }

  // g, y, m and v are read, the last three written; three operations for each of m and v, then seven, a root and a quotient.
  [[nodiscard]] std::optional<EntryCost> cost() const override { return EntryCost{7, 14}; }

  void step(const Exec& exec, const OptimizerStep<T>& step) const override {
    Workspace::Frame frame(*exec.workspace);
    std::vector<AdamWNumbers<T>> numbers;
    for (const std::uint64_t count : step.count) {
      const auto t = static_cast<double>(count);
      numbers.push_back(
          {static_cast<T>(step.gamma / (1 - std::pow(options_.beta1, t))), static_cast<T>(1 / std::sqrt(1 - std::pow(options_.beta2, t)))});
    }
    AdamWStep<T> rule{for_kernels(exec, std::span<const AdamWNumbers<T>>(numbers), frame),
                      step.g,
                      step.y,
                      step.states[0],
                      step.states[1],
                      static_cast<T>(options_.beta1),
                      static_cast<T>(options_.beta2),
                      static_cast<T>(1 - options_.beta1),
                      static_cast<T>(1 - options_.beta2),
                      static_cast<T>(options_.epsilon),
                      T(1)};
    const T kept = static_cast<T>(1 - step.gamma * options_.weight_decay);
    for_each_run(step.layers, step.y.P, [&](const Segment& entries, bool decays) {
      rule.kept = decays ? kept : T(1);
      for_each_entry(exec, step.y.K, entries, rule);
    });
  }

 private:
  // Calls use(entries, whether they decay) for runs of layers that are alike.
  template <class Use>
  void for_each_run(const LayerTable& layers, std::size_t P, const Use& use) const {
    const auto decays = [this](const Layer& layer) { return std::ranges::find(options_.no_decay, layer.name) == options_.no_decay.end(); };
    if (options_.no_decay.empty()) return use(Segment{0, P}, true);
    Segment run;
    for (std::size_t l = 0; l < layers.layers.size(); ++l) {
      const Layer& layer = layers.layers[l];
      run.end = layer.begin + layer.size();
      if (l + 1 < layers.layers.size() && decays(layer) == decays(layers.layers[l + 1])) continue;
      use(run, decays(layer));
      run.begin = run.end;
    }
  }

  AdamWOptions options_;
};

FL_REGISTER_PART(LocalOptimizer, AdamW, AdamWOptions,
                 (PartInfo{"local_optimizer", "adamw", "Adam's steps with decoupled weight decay", "Loshchilov, Hutter, ICLR 2019"}));

}  // namespace
}  // namespace FL_DEVICE_NS
}  // namespace fl
