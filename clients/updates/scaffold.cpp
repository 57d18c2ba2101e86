// SCAFFOLD's local steps (option II): y <- y - gamma (grad f_i(y; sample) - c_i + c), H times.
//
// Sends w - y (vector "model") and c_i' - c_i = (w - y)/(H gamma) - c (vector "control").
// Source: S. P. Karimireddy et al., "SCAFFOLD: stochastic controlled averaging for federated learning", ICML 2020.
#include "clients/local_update.hpp"
#include "fl_core/registry.hpp"

namespace fl {

struct ScaffoldOptions : SamplingOptions {
  Expression learning_rate{0.1};
  std::int64_t steps = 1;
};
inline void describe(Schema& s, ScaffoldOptions& o) {
  describe(s, static_cast<SamplingOptions&>(o));
  s.field("learning_rate", o.learning_rate, "gamma of the local steps: a number or a rule");
  s.field("steps", o.steps, "local steps per round").at_least(1).at_most(65535);
}

namespace FL_DEVICE_NS {

template <class T>
class ScaffoldUpdate final : public LocalUpdate<T> {
 public:
  explicit ScaffoldUpdate(ScaffoldOptions options) : options_(std::move(options)) {}

  [[nodiscard]] std::vector<std::string> vectors() const override { return {"model", "control"}; }
  [[nodiscard]] const SamplingOptions& sampling() const override { return options_; }
  [[nodiscard]] const Expression& learning_rate() const override { return options_.learning_rate; }
  [[nodiscard]] std::vector<Unit> units() const override { return {Unit::update}; }
  [[nodiscard]] std::string needs_feedback() const override { return "scaffold"; }

  void run(const Exec& exec, const RoundContext<T>& context, const GradientOracle<T>& oracle, const ClientBlock<T>& block) const override {
    const std::size_t P = context.P;
    const T gamma = static_cast<T>(context.step_size);
    const auto num_steps = static_cast<std::uint32_t>(options_.steps);
    const T per_step = T(1) / (static_cast<T>(num_steps) * gamma);
    Workspace::Frame frame(*exec.workspace);
    const BatchView<T> y{frame.take<T>(P), nullptr, 1, P, P}, g{frame.take<T>(P), nullptr, 1, P, P};
    const BatchView<T> controls = block.stored(*context.state, "control");
    const T *w = context.reference, *c = context.state->cohort("control_mean").data();
    for (std::uint32_t k = 0; k < block.K; ++k) {
      const T* c_i = controls.row(k);
      std::copy_n(w, P, y.data);
      for (std::uint32_t step = 0; step < num_steps; ++step) {
        oracle.gradient(exec, y, block.clients.subspan(k, 1), {.round = context.round, .step = step}, g, nullptr);
        for (std::size_t j = 0; j < P; ++j) y.data[j] -= gamma * (g.data[j] - c_i[j] + c[j]);
      }
      T *model = block.vectors[0].row(k), *control = block.vectors[1].row(k);
      for (std::size_t j = 0; j < P; ++j) {
        model[j] = w[j] - y.data[j];
        control[j] = model[j] * per_step - c[j];
      }
    }
  }

 private:
  ScaffoldOptions options_;
};

FL_REGISTER_PART(LocalUpdate, ScaffoldUpdate, ScaffoldOptions,
                 (PartInfo{"local_update", "scaffold", "local SGD steps corrected by control variates", "Karimireddy et al., ICML 2020"}));

}  // namespace FL_DEVICE_NS
}  // namespace fl
