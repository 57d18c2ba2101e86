// Local SGD: H steps y <- y - gamma grad f_i(y; sample) from the model received; the client sends w - y (FedAvg's update).
//
// Normalised (FedNova), the client sends (w - y) / |a|_1, where a are the weights with which its gradients enter w - y: per step of work.
// With a local optimizer ([local_optimizer]) the steps are its own, along the gradient with weight decay and mu (y - w). One full-batch
// step gives w - y = gamma grad f_i(w): gradient descent. proximal_mu > 0 adds mu (y - w) to each gradient (FedProx). Sources: H. B.
// McMahan et al., "Communication-efficient learning of deep networks from decentralized data", AISTATS 2017; T. Li et al., "Federated
// optimization in heterogeneous networks", MLSys 2020; J. Wang, Q. Liu, H. Liang, G. Joshi, H. V. Poor, "Tackling the objective
// inconsistency problem in heterogeneous federated optimization", NeurIPS 2020 (FedNova).
#include "clients/updates/descent.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct SgdOptions : LocalStepOptions {
  double momentum = 0, proximal_mu = 0;
};
inline void describe(Schema& s, SgdOptions& o) {
  describe(s, static_cast<LocalStepOptions&>(o));
  s.field("momentum", o.momentum, "beta of v = beta v + g, y -= gamma v; v begins at zero each round").at_least(0).below(1);
  s.field("proximal_mu", o.proximal_mu, "FedProx: weight of mu/2 |y - w|^2; 0 = FedAvg").at_least(0);
}

template <class T>
class SgdUpdate final : public StepwiseUpdate<T, SgdOptions> {
 public:
  using StepwiseUpdate<T, SgdOptions>::StepwiseUpdate;

  [[nodiscard]] LocalTraits traits() const override {
    return {.computes_anywhere = true,
            .can_normalise = work(1, 1).has_value(),
            .takes_optimizer = true,
            .cost = LocalCost{.step = cost_of_direction(), .round = {5, 1}}};
  }
  [[nodiscard]] std::optional<Descent> descent() const override {
    const SgdOptions& o = this->options_;
    return Descent{.moves = true,
                   .work = o.work,
                   .weight_decay = o.weight_decay,
                   .momentum = momentum(),
                   .proximal_mu = o.proximal_mu,
                   .by_optimizer = rule() != nullptr};
  }

  void run(const Exec& exec, const ClientRound<T>& round, const GradientOracle<T>& oracle, const ClientBlock<T>& block) const override {
    const std::size_t P = round.P();
    Workspace::Frame frame(*exec.workspace);
    T *y = frame.take<T>(P), *g = frame.take<T>(P), *v = momentum() > 0 ? frame.take<T>(P) : nullptr;
    for (std::uint32_t k = 0; k < block.K; ++k) {
      const T* w = block.start.row(k);
      if (v != nullptr) std::fill_n(v, P, T(0));
      const std::uint32_t steps = this->descend(
          exec, round, oracle, block, k, y, g,
          [&](T* gradient, const T* at) {
            pull_back(w, at, gradient, P);
            if (v != nullptr) gather_momentum(gradient, v, P);
          },
          rule());
      block.work[k] = round.run.normalises() ? work(steps, round.order.step_size).value() : 1;
      const T per_work = static_cast<T>(1 / block.work[k]);
      T* update = block.vectors[0].row(k);
      for (std::size_t j = 0; j < P; ++j) update[j] = round.run.normalises() ? per_work * (w[j] - y[j]) : w[j] - y[j];
    }
  }

 private:
  // Weight decay, mu (y - w), and momentum. The model is copied to y before, and the difference is written after the steps.
  [[nodiscard]] EntryCost cost_of_direction() const {
    EntryCost cost = this->cost_of_decay();
    if (this->options_.proximal_mu > 0) cost += {4, 3};
    if (momentum() > 0) cost += {4, 2};
    return cost;
  }
  // Returns the optimizer that takes the steps. Those of plain momentum are taken here.
  [[nodiscard]] const LocalOptimizer<T>* rule() const {
    const LocalOptimizer<T>* optimizer = this->optimizer();
    return optimizer == nullptr || optimizer->plain_momentum() ? nullptr : optimizer;
  }
  [[nodiscard]] double momentum() const {
    if (rule() != nullptr) return 0;
    return this->optimizer() == nullptr ? this->options_.momentum : *this->optimizer()->plain_momentum();
  }
  // Returns |a|_1. An optimizer knows it for gradients alone, without mu (y - w).
  [[nodiscard]] std::optional<double> work(std::uint32_t steps, double gamma) const {
    if (rule() == nullptr) return work_of(*descent(), steps, gamma);
    return this->options_.proximal_mu > 0 ? std::nullopt : rule()->work(steps);
  }
  // g += mu (y - w)
  void pull_back(const T* w, const T* y, T* g, std::size_t P) const {
    const T mu = static_cast<T>(this->options_.proximal_mu);
    if (mu > T(0))
      for (std::size_t j = 0; j < P; ++j) g[j] += mu * (y[j] - w[j]);
  }
  // v = beta v + g, g = v
  void gather_momentum(T* g, T* v, std::size_t P) const {
    const T beta = static_cast<T>(momentum());
    for (std::size_t j = 0; j < P; ++j) g[j] = v[j] = beta * v[j] + g[j];
  }
};

FL_REGISTER_PART(LocalUpdate, SgdUpdate, SgdOptions,
                 (PartInfo{"local_update", "sgd", "local SGD steps; the client sends the difference of models (FedAvg, FedProx)",
                           "McMahan et al., AISTATS 2017; Li et al., MLSys 2020"}));

}  // namespace fl
