// Local SGD: H steps y <- y - gamma grad f_i(y; sample) from the model received; the client sends w - y (FedAvg's update).
//
// One full-batch step gives w - y = gamma grad f_i(w): gradient descent. proximal_mu > 0 adds mu (y - w) to each gradient (FedProx).
// Sources: H. B. McMahan et al., "Communication-efficient learning of deep networks from decentralized data", AISTATS 2017;
// T. Li et al., "Federated optimization in heterogeneous networks", MLSys 2020.
#include "clients/local_update.hpp"
#include "fl_core/registry.hpp"

namespace fl {

struct SgdOptions : SamplingOptions {
  Expression learning_rate{0.1};
  std::int64_t steps = 1;
  double proximal_mu = 0;
};
inline void describe(Schema& s, SgdOptions& o) {
  describe(s, static_cast<SamplingOptions&>(o));
  s.field("learning_rate", o.learning_rate, "gamma of the local steps: a number or a rule");
  s.field("steps", o.steps, "local steps per round").at_least(1).at_most(65535);
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

  void run(const Exec& exec, const RoundContext<T>& context, const GradientOracle<T>& oracle, const ClientBlock<T>& block) const override {
    const std::size_t P = context.P;
    const T gamma = static_cast<T>(context.step_size);
    const auto num_steps = static_cast<std::uint32_t>(options_.steps);
    Workspace::Frame frame(*exec.workspace);
    const BatchView<T> y{frame.take<T>(P), nullptr, 1, P, P}, g{frame.take<T>(P), nullptr, 1, P, P};
    const T mu = static_cast<T>(options_.proximal_mu);
    T* room = context.offset_slot.empty() ? nullptr : frame.take<T>(block.K * P);
    const BatchView<const T> start = own_models(context, block, room);
    for (std::uint32_t k = 0; k < block.K; ++k) {
      const T* w = start.row(k);
      std::copy_n(w, P, y.data);
      for (std::uint32_t step = 0; step < num_steps; ++step) {
        oracle.gradient(exec, y, block.clients.subspan(k, 1), {.round = context.round, .step = step}, g, nullptr);
        if (mu > T(0))
          for (std::size_t j = 0; j < P; ++j) g.data[j] += mu * (y.data[j] - w[j]);
        for (std::size_t j = 0; j < P; ++j) y.data[j] -= gamma * g.data[j];
      }
      T* update = block.vectors[0].row(k);
      for (std::size_t j = 0; j < P; ++j) update[j] = w[j] - y.data[j];
    }
  }

 private:
  SgdOptions options_;
};

FL_REGISTER_PART(LocalUpdate, SgdUpdate, SgdOptions,
                 (PartInfo{"local_update", "sgd", "local SGD steps; the client sends the difference of models (FedAvg, FedProx)",
                           "McMahan et al., AISTATS 2017; Li et al., MLSys 2020"}));

}  // namespace FL_DEVICE_NS
}  // namespace fl
