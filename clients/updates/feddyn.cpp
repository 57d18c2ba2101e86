// FedDyn's local steps: SGD on f_i(y) - <h_i, y> + alpha/2 |y - w|^2, a dynamic regulariser whose minimisers agree with those of f.
//
//   y <- y - gamma (grad f_i(y; sample) - h_i + alpha (y - w));   the client sends w - y, and h_i <- h_i + alpha (w - y) as decoded
// Its theory takes any method that minimises this loss, and so any local optimizer.
// Source: D. A. E. Acar, Y. Zhao, R. Matas Navarro, M. Mattina, P. N. Whatmough, V. Saligrama, "Federated learning based on dynamic
// regularization", ICLR 2021, Algorithm 1.
#include "clients/updates/descent.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct FedDynOptions : LocalStepOptions {
  double alpha = 0.01;
};
inline void describe(Schema& s, FedDynOptions& o) {
  describe(s, static_cast<LocalStepOptions&>(o));
  s.field("alpha", o.alpha, "weight of the dynamic regulariser").above(0);
}

template <class T>
class FedDynUpdate final : public StepwiseUpdate<T, FedDynOptions> {
 public:
  using StepwiseUpdate<T, FedDynOptions>::StepwiseUpdate;

  [[nodiscard]] std::vector<std::string> needs_feedback() const override { return {"feddyn"}; }
  [[nodiscard]] LocalTraits traits() const override {
    return {.takes_optimizer = true, .cost = LocalCost{.step = this->cost_of_decay() + EntryCost{5, 4}, .round = EntryCost{5, 1}}};
  }

  [[nodiscard]] std::string host_walks() const override { return "adds every client's earlier moves to its steps"; }
  void run(const Exec& exec, const ClientRound<T>& round, const GradientOracle<T>& oracle, const ClientBlock<T>& block) const override {
    const std::size_t P = round.P();
    const T alpha = static_cast<T>(this->options_.alpha);
    Workspace::Frame frame(*exec.workspace);
    T *y = frame.take<T>(P), *g = frame.take<T>(P);
    const BatchView<T> moved = block.stored(round.state, "moved");
    for (std::uint32_t k = 0; k < block.K; ++k) {
      const T* w = block.start.row(k);
      const T* s_i = moved.row(k);  // h_i = alpha s_i
      this->descend(
          exec, round, oracle, block, k, y, g,
          [&](T* gradient, const T* at) {
            for (std::size_t j = 0; j < P; ++j) gradient[j] += alpha * (at[j] - w[j] - s_i[j]);
          },
          this->optimizer());
      T* update = block.vectors[0].row(k);
      for (std::size_t j = 0; j < P; ++j) update[j] = w[j] - y[j];
    }
  }
};

FL_REGISTER_PART(LocalUpdate, FedDynUpdate, FedDynOptions,
                 (PartInfo{"local_update", "feddyn", "local SGD steps on a dynamically regularised loss", "Acar et al., ICLR 2021"}));

}  // namespace fl
