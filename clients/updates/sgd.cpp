// Local SGD: H steps y <- y - gamma grad f_i(y; sample) from the model received; the client sends w - y (FedAvg's update).
//
// Normalised (FedNova), the client sends (w - y) / |a|_1, where a are the weights with which its gradients enter w - y: per step of work.
// One full-batch step gives w - y = gamma grad f_i(w): gradient descent. proximal_mu > 0 adds mu (y - w) to each gradient (FedProx).
// Sources: H. B. McMahan et al., "Communication-efficient learning of deep networks from decentralized data", AISTATS 2017;
// T. Li et al., "Federated optimization in heterogeneous networks", MLSys 2020; J. Wang, Q. Liu, H. Liang, G. Joshi, H. V. Poor,
// "Tackling the objective inconsistency problem in heterogeneous federated optimization", NeurIPS 2020 (FedNova).
#include <algorithm>

#include "clients/local_update.hpp"
#include "fl_core/registry.hpp"

namespace fl {

struct SgdOptions : SamplingOptions {
  Expression learning_rate{0.1};
  std::int64_t steps = 1, epochs = 0;
  double momentum = 0, weight_decay = 0, proximal_mu = 0;
};
inline void describe(Schema& s, SgdOptions& o) {
  describe(s, static_cast<SamplingOptions&>(o));
  s.field("learning_rate", o.learning_rate, "gamma of the local steps: a number or a rule");
  s.field("steps", o.steps, "local steps per round").at_least(1).at_most(kMostLocalSteps);
  s.field("epochs", o.epochs, "passes over the client's rows per round, in random order, instead of steps; 0 = count steps").at_least(0);
  s.field("momentum", o.momentum, "beta of v = beta v + g, y -= gamma v; v begins at zero each round").at_least(0).below(1);
  s.field("weight_decay", o.weight_decay, "weight of y that is added to each gradient").at_least(0);
  s.field("proximal_mu", o.proximal_mu, "FedProx: weight of mu/2 |y - w|^2; 0 = FedAvg").at_least(0);
}

namespace FL_DEVICE_NS {

template <class T>
class SgdUpdate final : public LocalUpdate<T> {
 public:
  explicit SgdUpdate(SgdOptions options) : options_(std::move(options)) {}

  [[nodiscard]] const SamplingOptions& sampling() const override { return options_; }
  [[nodiscard]] const Expression& learning_rate() const override { return options_.learning_rate; }
  [[nodiscard]] std::vector<Unit> units() const override { return {Unit::update}; }
  [[nodiscard]] bool computes_anywhere() const override { return true; }
  [[nodiscard]] bool can_normalise() const override { return true; }

  void run(const Exec& exec, const RoundContext<T>& context, const GradientOracle<T>& oracle, const ClientBlock<T>& block) const override {
    const std::size_t P = context.P;
    const T gamma = static_cast<T>(context.step_size);
    Workspace::Frame frame(*exec.workspace);
    T *y = frame.take<T>(P), *g = frame.take<T>(P), *v = options_.momentum > 0 ? frame.take<T>(P) : nullptr;
    T* room = context.offset_slot.empty() ? nullptr : frame.take<T>(block.K * P);
    const BatchView<const T> start = own_models(context, block, room);
    for (std::uint32_t k = 0; k < block.K; ++k) {
      const T* w = start.row(k);
      const std::uint32_t client = block.clients[k];
      Workspace::Frame inner(*exec.workspace);
      LocalSteps<T> steps(inner, oracle, client, context.round, options_.steps, options_.epochs);
      std::copy_n(w, P, y);
      if (v != nullptr) std::fill_n(v, P, T(0));
      for (std::uint32_t step = 0; step < steps.count(); ++step) {
        oracle.gradient_on(exec, y, client, {.round = context.round, .step = step}, steps.rows(step), g);
        move_statistics(oracle, g, y);
        add_penalties(w, y, g, P);
        for (const auto& statistic : oracle.statistics()) std::fill(g + statistic.begin, g + statistic.end, T(0));
        descend(gamma, g, v, y, P);
      }
      block.work[k] = context.normalise ? work(steps.count(), context.step_size) : 1;
      const T per_work = static_cast<T>(1 / block.work[k]);
      T* update = block.vectors[0].row(k);
      for (std::size_t j = 0; j < P; ++j) update[j] = context.normalise ? per_work * (w[j] - y[j]) : w[j] - y[j];
    }
  }

 private:
  // |a|_1 of w - y = gamma sum_u a_u g_u: how far the steps lead when each gradient is 1. Steps alone: their number.
  [[nodiscard]] double work(std::uint32_t count, double gamma) const {
    double moved = 0, v = 0;  // (w - y) / gamma, and the momentum
    for (std::uint32_t step = 0; step < count; ++step) {
      v = options_.momentum * v + 1 - options_.proximal_mu * gamma * moved;
      moved += v;
    }
    return moved;
  }
  // g += weight_decay y + mu (y - w)
  void add_penalties(const T* w, const T* y, T* g, std::size_t P) const {
    const T decay = static_cast<T>(options_.weight_decay), mu = static_cast<T>(options_.proximal_mu);
    if (decay > T(0))
      for (std::size_t j = 0; j < P; ++j) g[j] += decay * y[j];
    if (mu > T(0))
      for (std::size_t j = 0; j < P; ++j) g[j] += mu * (y[j] - w[j]);
  }
  static void move_statistics(const GradientOracle<T>& oracle, const T* g, T* y) {
    for (const auto& statistic : oracle.statistics())
      for (std::size_t j = statistic.begin; j < statistic.end; ++j) y[j] -= static_cast<T>(statistic.rate) * g[j];
  }
  void descend(T gamma, const T* g, T* v, T* y, std::size_t P) const {
    if (v == nullptr) {
      for (std::size_t j = 0; j < P; ++j) y[j] -= gamma * g[j];
      return;
    }
    const T beta = static_cast<T>(options_.momentum);
    for (std::size_t j = 0; j < P; ++j) {
      v[j] = beta * v[j] + g[j];
      y[j] -= gamma * v[j];
    }
  }

  SgdOptions options_;
};

FL_REGISTER_PART(LocalUpdate, SgdUpdate, SgdOptions,
                 (PartInfo{"local_update", "sgd", "local SGD steps; the client sends the difference of models (FedAvg, FedProx)",
                           "McMahan et al., AISTATS 2017; Li et al., MLSys 2020"}));

}  // namespace FL_DEVICE_NS
}  // namespace fl
