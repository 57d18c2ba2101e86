// SCALLION's and SCAFCOM's local steps: y <- y - gamma (grad f_i(y; sample) - (c_i - c)/H), H times, with controls that are sums over H.
//
// Sends (w - y)/gamma - c = G_i - c_i, where G_i is the sum of the gradients on the way: SCAFFOLD's two vectors are both this one.
// Source: X. Huang, P. Li, X. Li, "Stochastic controlled averaging for federated learning with communication compression", ICLR 2024.
#include "clients/updates/descent.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

template <class T>
class ScallionUpdate final : public StepwiseUpdate<T, LocalStepOptions> {
 public:
  using StepwiseUpdate<T, LocalStepOptions>::StepwiseUpdate;

  [[nodiscard]] std::vector<Unit> units() const override { return {Unit::gradient}; }
  [[nodiscard]] std::vector<std::string> needs_feedback() const override { return {"scallion", "scafcom"}; }

  [[nodiscard]] LocalTraits traits() const override {
    return {.cost = LocalCost{.step = this->cost_of_decay() + EntryCost{4, 3}, .round = EntryCost{6, 3}}};
  }

  [[nodiscard]] std::string host_walks() const override { return "adds every client's control to its steps"; }
  void run(const Exec& exec, const ClientRound<T>& round, const GradientOracle<T>& oracle, const ClientBlock<T>& block) const override {
    const std::size_t P = round.P();
    Workspace::Frame frame(*exec.workspace);
    T *y = frame.take<T>(P), *g = frame.take<T>(P);
    const BatchView<T> controls = block.stored(round.state, "control");
    const T* c = round.shared.slot("control_mean").data();
    const T per_gamma = static_cast<T>(1 / round.order.step_size);
    for (std::uint32_t k = 0; k < block.K; ++k) {
      const T* w = block.start.row(k);
      const T* c_i = controls.row(k);
      this->descend(exec, round, oracle, block, k, y, g, [&](T* gradient, const T*, std::uint32_t steps) {
        const T per_step = T(1) / static_cast<T>(steps);
        for (std::size_t j = 0; j < P; ++j) gradient[j] += (c[j] - c_i[j]) * per_step;
      });
      T* sent = block.vectors[0].row(k);
      for (std::size_t j = 0; j < P; ++j) sent[j] = (w[j] - y[j]) * per_gamma - c[j];
    }
  }
};

FL_REGISTER_PART(LocalUpdate, ScallionUpdate, LocalStepOptions,
                 (PartInfo{"local_update", "scallion", "local SGD steps corrected by control variates, one vector up",
                           "Huang, Li, Li, ICLR 2024"}));

}  // namespace fl
