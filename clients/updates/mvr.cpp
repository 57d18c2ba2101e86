// Momentum variance reduction (MVR, STORM): t = grad f_i(w; xi) + (1 - b)(t - grad f_i(w_previous; xi)), both gradients on one sample.
//
// DASHA-MVR's vector. The old t and the previous model are slots of feedback "dasha". A client's first t is its full gradient. b = 1 is the
// stochastic gradient itself.
// Source: A. Tyurin, P. Richtarik, "DASHA: distributed nonconvex optimization with communication compression and optimal oracle
// complexity", ICLR 2023; A. Cutkosky, F. Orabona, "Momentum-based variance reduction in non-convex SGD", NeurIPS 2019.
#include "clients/learning/local_update.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/config/rule_field.hpp"

namespace fl {

struct MvrOptions : SamplingOptions {
  Expression learning_rate{0.1};
  Schedule schedule;
  double momentum = 0.1;
};
inline void describe(Schema& s, MvrOptions& o) {
  describe(s, static_cast<SamplingOptions&>(o));
  learning_rate_field(s, o.learning_rate, "gamma: a number or a rule such as 1/(L+l2)");
  describe(s, o.schedule);
  s.field("momentum", o.momentum, "b: weight of the stochastic gradient alone").above(0).at_most(1);
}

template <class T>
class MvrUpdate final : public LocalUpdate<T> {
 public:
  explicit MvrUpdate(MvrOptions options) : options_(std::move(options)) {}

  [[nodiscard]] StepSettings step_settings() const override { return {options_, options_.learning_rate, options_.schedule}; }
  [[nodiscard]] std::vector<Unit> units() const override { return {Unit::gradient}; }
  [[nodiscard]] std::vector<std::string> needs_feedback() const override { return {"dasha"}; }

  // A client's first gradient is full and alone, which is not counted.
  [[nodiscard]] LocalTraits traits() const override { return {.builds_on_last = true, .cost = LocalCost{.gradients = 2, .round = {4, 3}}}; }
  [[nodiscard]] std::string host_walks() const override { return "reads every client's tracker"; }
  void run(const Exec& exec, const ClientRound<T>& round, const GradientOracle<T>& oracle, const ClientBlock<T>& block) const override {
    Workspace::Frame frame(*exec.workspace);
    T* before = frame.take<T>(round.P());
    const BatchView<T> trackers = block.stored(round.state, "tracker");
    const T keep = static_cast<T>(1 - options_.momentum);
    for (std::uint32_t k = 0; k < block.K; ++k) {
      const bool is_first = round.state.acknowledged(block.clients[k]) == 0;
      const Sample sample{.full = is_first, .round = round.order.round};
      gradient_at(exec, oracle, block.start.row(k), block.clients[k], sample, round.P(), block.vectors[0].row(k));
      move_own(round, block, k, block.vectors[0].row(k));
      if (is_first) continue;
      gradient_at(exec, oracle, round.shared.slot("previous_model").data(), block.clients[k], sample, round.P(), before);
      T* g = block.vectors[0].row(k);
      const T* t = trackers.row(k);
      for (std::size_t j = 0; j < round.P(); ++j) g[j] += keep * (t[j] - before[j]);
    }
  }

 private:
  static void gradient_at(const Exec& exec, const GradientOracle<T>& oracle, const T* x, const std::uint32_t& client, const Sample& sample,
                          std::size_t P, T* out) {
    oracle.gradient(exec, shared_view(x, 1, P), std::span(&client, 1), sample, {out, nullptr, 1, P, P}, nullptr);
  }

  MvrOptions options_;
};

FL_REGISTER_PART(LocalUpdate, MvrUpdate, MvrOptions,
                 (PartInfo{"local_update", "mvr", "stochastic gradients with momentum variance reduction",
                           "Tyurin, Richtarik, ICLR 2023"}));

}  // namespace fl
