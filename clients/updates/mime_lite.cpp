// MimeLite's local steps, for SGD with momentum: y <- y - gamma ((1 - beta) grad f_i(y; sample) + beta m) with the server's momentum m,
// which does not move during the round.
//
// Sends w - y (vector "model") and (1 - beta) (grad f_i(w) - m) over all of the client's rows (vector "momentum"): the server's
// m <- beta m + (1 - beta) mean grad f_i(w) is m plus their mean. A difference is what compresses well.
// Source: S. P. Karimireddy, M. Jaggi, S. Kale, M. Mohri, S. Reddi, S. U. Stich, A. T. Suresh, "Breaking the centralized barrier for
// cross-device federated learning", NeurIPS 2021, Algorithm 1 (MimeLite) and Table 1 (momentum).
#include "clients/updates/descent.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct MimeLiteOptions : LocalStepOptions {
  double momentum = 0.9;
};
inline void describe(Schema& s, MimeLiteOptions& o) {
  describe(s, static_cast<LocalStepOptions&>(o));
  s.field("momentum", o.momentum, "beta of the server's momentum").at_least(0).below(1);
}

template <class T>
class MimeLiteUpdate final : public StepwiseUpdate<T, MimeLiteOptions> {
 public:
  using StepwiseUpdate<T, MimeLiteOptions>::StepwiseUpdate;

  [[nodiscard]] std::vector<std::string> vectors() const override { return {"model", "momentum"}; }
  [[nodiscard]] std::vector<std::string> needs_feedback() const override { return {"mime_lite"}; }

  [[nodiscard]] LocalTraits traits() const override {
    return {.cost = LocalCost{.full_gradients = 1, .step = this->cost_of_decay() + EntryCost{3, 3}, .round = {8, 3}}};
  }

  [[nodiscard]] std::string host_walks() const override { return ""; }
  void run(const Exec& exec, const ClientRound<T>& round, const GradientOracle<T>& oracle, const ClientBlock<T>& block) const override {
    const std::size_t P = round.P();
    const T beta = static_cast<T>(this->options_.momentum), fresh = T(1) - beta;
    Workspace::Frame frame(*exec.workspace);
    T *y = frame.take<T>(P), *g = frame.take<T>(P);
    const T* m = round.shared.slot("momentum").data();
    oracle.gradient(exec, block.start, block.clients, {.full = true, .round = round.order.round}, block.vectors[1], nullptr);
    for (std::uint32_t k = 0; k < block.K; ++k) {
      const T* w = block.start.row(k);
      this->descend(exec, round, oracle, block, k, y, g, [&](T* gradient, const T*) {
        for (std::size_t j = 0; j < P; ++j) gradient[j] = fresh * gradient[j] + beta * m[j];
      });
      T *model = block.vectors[0].row(k), *momentum = block.vectors[1].row(k);
      for (std::size_t j = 0; j < P; ++j) {
        model[j] = w[j] - y[j];
        momentum[j] = fresh * (momentum[j] - m[j]);
      }
    }
  }
};

FL_REGISTER_PART(LocalUpdate, MimeLiteUpdate, MimeLiteOptions,
                 (PartInfo{"local_update", "mime_lite", "local SGD steps with the server's momentum, which is fixed during the round",
                           "Karimireddy et al., NeurIPS 2021"}));

}  // namespace fl
