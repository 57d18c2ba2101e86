// MARINA's vector: the full gradient when the common coin says so, else the difference of gradients at the model and at the previous
// model on one sample. The previous model is the shared slot that feedback "marina" declares.
#include "clients/learning/local_update.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/config/rule_field.hpp"

namespace fl {

struct GradientDifferenceOptions : SamplingOptions {
  Expression learning_rate{0.1};
};
inline void describe(Schema& s, GradientDifferenceOptions& o) {
  describe(s, static_cast<SamplingOptions&>(o));
  learning_rate_field(s, o.learning_rate, "gamma: a number or a rule such as 1/(L+l2)");
}

template <class T>
class GradientDifference final : public LocalUpdate<T> {
 public:
  explicit GradientDifference(GradientDifferenceOptions options) : options_(std::move(options)) {}

  [[nodiscard]] StepSettings step_settings() const override { return {options_, options_.learning_rate}; }
  [[nodiscard]] std::vector<Unit> units() const override { return {Unit::gradient}; }
  [[nodiscard]] std::vector<std::string> needs_feedback() const override { return {"marina"}; }

  [[nodiscard]] LocalTraits traits() const override {
    return {.builds_on_last = true, .cost = LocalCost{.gradients = 2, .round = {3, 1}, .full_at_coin = true}};
  }
  [[nodiscard]] std::string host_walks() const override { return ""; }
  void run(const Exec& exec, const ClientRound<T>& round, const GradientOracle<T>& oracle, const ClientBlock<T>& block) const override {
    const Sample sample{.full = round.order.coin, .round = round.order.round};
    oracle.gradient(exec, block.start, block.clients, sample, block.vectors[0], nullptr);
    for (std::uint32_t k = 0; k < block.K; ++k) move_own(round, block, k, block.vectors[0].row(k));
    if (round.order.coin) return;
    Workspace::Frame frame(*exec.workspace);
    const BatchView<T> before{frame.take<T>(block.K * round.P()), nullptr, block.K, round.P(), round.P()};
    const std::span<const T> previous = round.shared.slot("previous_model");
    oracle.gradient(exec, shared_view<const T>(previous.data(), block.K, round.P()), block.clients, sample, before, nullptr);
    for (std::uint32_t k = 0; k < block.K; ++k) {
      T* g = block.vectors[0].row(k);
      const T* b = before.row(k);
      for (std::size_t j = 0; j < round.P(); ++j) g[j] -= b[j];
    }
  }

 private:
  GradientDifferenceOptions options_;
};

FL_REGISTER_PART(LocalUpdate, GradientDifference, GradientDifferenceOptions,
                 (PartInfo{"local_update", "gradient_difference", "MARINA's difference of gradients on one sample",
                           "Gorbunov, Burlachenko, Li, Richtarik, ICML 2021"}));

}  // namespace fl
