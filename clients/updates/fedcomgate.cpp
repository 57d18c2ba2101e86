// FedCOMGATE's local steps: y <- y - gamma (grad f_i(y; sample) - t_i/H), H times, with a tracker t_i that is a sum over H steps.
//
// Sends (w - y)/gamma, the sum of the corrected gradients.
// Source: F. Haddadpour, M. M. Kamani, A. Mokhtari, M. Mahdavi, "Federated learning with compression: unified analysis and sharp
// guarantees", AISTATS 2021.
#include "clients/updates/descent.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

template <class T>
class FedComGateUpdate final : public StepwiseUpdate<T, LocalStepOptions> {
 public:
  using StepwiseUpdate<T, LocalStepOptions>::StepwiseUpdate;

  [[nodiscard]] std::vector<Unit> units() const override { return {Unit::gradient}; }
  [[nodiscard]] std::vector<std::string> needs_feedback() const override { return {"fedcomgate"}; }

  [[nodiscard]] LocalTraits traits() const override {
    return {.cost = LocalCost{.step = this->cost_of_decay() + EntryCost{3, 2}, .round = EntryCost{5, 2}}};
  }

  [[nodiscard]] std::string host_walks() const override { return "adds every client's tracker to its steps"; }
  void run(const Exec& exec, const ClientRound<T>& round, const GradientOracle<T>& oracle, const ClientBlock<T>& block) const override {
    const std::size_t P = round.P();
    Workspace::Frame frame(*exec.workspace);
    T *y = frame.take<T>(P), *g = frame.take<T>(P);
    const BatchView<T> trackers = block.stored(round.state, "tracker");
    const T per_gamma = static_cast<T>(1 / round.order.step_size);
    for (std::uint32_t k = 0; k < block.K; ++k) {
      const T* w = block.start.row(k);
      const T* t = trackers.row(k);
      this->descend(exec, round, oracle, block, k, y, g, [&](T* gradient, const T*, std::uint32_t steps) {
        const T per_step = T(1) / static_cast<T>(steps);
        for (std::size_t j = 0; j < P; ++j) gradient[j] -= t[j] * per_step;
      });
      T* sent = block.vectors[0].row(k);
      for (std::size_t j = 0; j < P; ++j) sent[j] = (w[j] - y[j]) * per_gamma;
    }
  }
};

FL_REGISTER_PART(LocalUpdate, FedComGateUpdate, LocalStepOptions,
                 (PartInfo{"local_update", "fedcomgate", "local SGD steps along tracked gradients",
                           "Haddadpour, Kamani, Mokhtari, Mahdavi, AISTATS 2021"}));

}  // namespace fl
