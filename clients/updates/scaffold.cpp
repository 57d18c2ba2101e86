// SCAFFOLD's local steps: y <- y - gamma (grad f_i(y; sample) - c_i + c), H times.
//
// Sends w - y (vector "model") and c_i' - c_i (vector "control"), where
//   option I   c_i' = grad f_i(w), over all of the client's rows: one more pass over them
//   option II  c_i' = c_i - c + (w - y)/(H gamma): the mean of the gradients on the way
// Source: S. P. Karimireddy et al., "SCAFFOLD: stochastic controlled averaging for federated learning", ICML 2020, Algorithm 1.
#include "clients/updates/descent.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct ScaffoldOptions : LocalStepOptions {
  enum class Control { gradient, path };
  Control control = Control::path;
};
inline void describe(Schema& s, ScaffoldOptions& o) {
  using Control = ScaffoldOptions::Control;
  describe(s, static_cast<LocalStepOptions&>(o));
  s.choice("control", o.control, {{Control::gradient, "gradient"}, {Control::path, "path"}},
           "the new control variate: the full gradient at the model received (option I), or the mean gradient on the way (option II)");
}

template <class T>
class ScaffoldUpdate final : public StepwiseUpdate<T, ScaffoldOptions> {
 public:
  using StepwiseUpdate<T, ScaffoldOptions>::StepwiseUpdate;

  [[nodiscard]] std::vector<std::string> vectors() const override { return {"model", "control"}; }
  [[nodiscard]] std::vector<std::string> needs_feedback() const override { return {"scaffold"}; }

  [[nodiscard]] LocalTraits traits() const override {
    const bool is_full = this->options_.control == ScaffoldOptions::Control::gradient;
    return {.cost = LocalCost{.full_gradients = is_full ? 1.0 : 0.0,
                              .step = this->cost_of_decay() + EntryCost{4, 2},
                              .round = is_full ? EntryCost{8, 2} : EntryCost{8, 3}}};
  }

  [[nodiscard]] std::string host_walks() const override { return "adds every client's control to its steps"; }
  void run(const Exec& exec, const ClientRound<T>& round, const GradientOracle<T>& oracle, const ClientBlock<T>& block) const override {
    const std::size_t P = round.P();
    Workspace::Frame frame(*exec.workspace);
    T *y = frame.take<T>(P), *g = frame.take<T>(P);
    const BatchView<T> controls = block.stored(round.state, "control");
    const T* c = round.shared.slot("control_mean").data();
    if (this->options_.control == ScaffoldOptions::Control::gradient)
      oracle.gradient(exec, block.start, block.clients, {.full = true, .round = round.order.round}, block.vectors[1], nullptr);
    for (std::uint32_t k = 0; k < block.K; ++k) {
      const T* w = block.start.row(k);
      const T* c_i = controls.row(k);
      const std::uint32_t steps = this->descend(exec, round, oracle, block, k, y, g, [&](T* gradient, const T*) {
        for (std::size_t j = 0; j < P; ++j) gradient[j] += c[j] - c_i[j];
      });
      T *model = block.vectors[0].row(k), *control = block.vectors[1].row(k);
      for (std::size_t j = 0; j < P; ++j) model[j] = w[j] - y[j];
      if (this->options_.control == ScaffoldOptions::Control::gradient) {
        for (std::size_t j = 0; j < P; ++j) control[j] -= c_i[j];
      } else {
        const T per_step = static_cast<T>(1 / (static_cast<double>(steps) * round.order.step_size));
        for (std::size_t j = 0; j < P; ++j) control[j] = model[j] * per_step - c[j];
      }
    }
  }
};

FL_REGISTER_PART(LocalUpdate, ScaffoldUpdate, ScaffoldOptions,
                 (PartInfo{"local_update", "scaffold", "local SGD steps corrected by control variates", "Karimireddy et al., ICML 2020"}));

}  // namespace fl
