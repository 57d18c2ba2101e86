// One gradient at the model received: g_i = grad f_i(w), full or on a minibatch.
//
// subtract = "optimum" sends grad f_i(w) - grad f_i(x*) (EC-GDstar: the ideal shift that DIANA learns; x* must be known).
#include "clients/learning/local_update.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/config/rule_field.hpp"

namespace fl {

struct GradientOptions : SamplingOptions {
  Expression learning_rate{0.1};
  Schedule schedule;
  enum class Subtract { nothing, optimum } subtract = Subtract::nothing;
};
inline void describe(Schema& s, GradientOptions& o) {
  describe(s, static_cast<SamplingOptions&>(o));
  learning_rate_field(s, o.learning_rate, "gamma: a number or a rule such as 1/(L+l2)");
  describe(s, o.schedule);
  s.choice("subtract", o.subtract, {{GradientOptions::Subtract::nothing, "nothing"}, {GradientOptions::Subtract::optimum, "optimum"}},
           "what is subtracted from the gradient: nothing, or the client's gradient at the optimum");
}

template <class T>
class GradientUpdate final : public LocalUpdate<T> {
 public:
  explicit GradientUpdate(GradientOptions options) : options_(std::move(options)) {}

  [[nodiscard]] StepSettings step_settings() const override { return {options_, options_.learning_rate, options_.schedule}; }
  [[nodiscard]] std::vector<Unit> units() const override { return {Unit::gradient, Unit::step}; }
  [[nodiscard]] std::vector<SlotSpec> slots() const override {
    if (!subtracts()) return {};
    return {{.name = "gradient_at_optimum", .owner = SlotOwner::client}};
  }
  [[nodiscard]] LocalTraits traits() const override {
    return {
        .computes_anywhere = true, .needs_optimum = subtracts(), .cost = LocalCost{.round = subtracts() ? EntryCost{3, 1} : EntryCost{}}};
  }
  [[nodiscard]] std::string host_walks() const override {
    return subtracts() ? "subtracts the gradient at the optimum from every gradient" : "";
  }
  [[nodiscard]] std::optional<Descent> descent() const override { return subtracts() ? std::nullopt : std::optional<Descent>(Descent{}); }

  void prepare(const Exec& exec, const GradientOracle<T>& oracle, ClientState<T>& state, const T* x_star) const override {
    if (!subtracts()) return;
    for (std::uint32_t i = 0; i < state.num_clients(); ++i) {
      const std::span<T> target = state.of_client("gradient_at_optimum", i);
      const BatchView<T> row{target.data(), nullptr, 1, state.P(), state.P()};
      oracle.gradient(exec, shared_view(x_star, 1, state.P()), std::span(&i, 1), {.full = true}, row, nullptr);
    }
  }

  void run(const Exec& exec, const ClientRound<T>& round, const GradientOracle<T>& oracle, const ClientBlock<T>& block) const override {
    oracle.gradient(exec, block.start, block.clients, {.round = round.order.round}, block.vectors[0], nullptr);
    for (std::uint32_t k = 0; k < block.K; ++k) move_own(round, block, k, block.vectors[0].row(k));
    if (!subtracts()) return;
    const BatchView<T> shift = block.stored(round.state, "gradient_at_optimum");
    for (std::uint32_t k = 0; k < block.K; ++k) {
      T* g = block.vectors[0].row(k);
      const T* h = shift.row(k);
      for (std::size_t j = 0; j < round.P(); ++j) g[j] -= h[j];
    }
  }

 private:
  [[nodiscard]] bool subtracts() const { return options_.subtract == GradientOptions::Subtract::optimum; }
  GradientOptions options_;
};

FL_REGISTER_PART(LocalUpdate, GradientUpdate, GradientOptions,
                 (PartInfo{"local_update", "gradient", "one gradient at the model received, full or on a minibatch", ""}));

}  // namespace fl
