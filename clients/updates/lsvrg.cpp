// L-SVRG (loopless SVRG): g_i = grad f_ij(w) - grad f_ij(r_i) + grad f_i(r_i), both of j's gradients on one sample.
//
// The reference point r_i is the model at which the client computed when it last renewed it: at first, and then with probability p after
// each of its rounds, by a coin of its own. r_i and grad f_i(r_i) are the client's alone: they move with its work, arrived or not.
// Sources: T. Hofmann, A. Lucchi, S. Lacoste-Julien, B. McWilliams, "Variance reduced stochastic gradient descent with neighbors", NeurIPS
// 2015; D. Kovalev, S. Horvath, P. Richtarik, "Don't jump through hoops and remove those loops", ALT 2020; as part of EC-LSVRG: E.
// Gorbunov, D. Kovalev, D. Makarenko, P. Richtarik, "Linearly converging error compensated SGD", NeurIPS 2020.
#include "clients/learning/local_update.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/config/rule_field.hpp"
#include "fl_core/ops/norms.hpp"

namespace fl {

struct LsvrgOptions : SamplingOptions {
  Expression learning_rate{0.1};
  Schedule schedule;
  double p = 0;
};
inline void describe(Schema& s, LsvrgOptions& o) {
  describe(s, static_cast<SamplingOptions&>(o));
  learning_rate_field(s, o.learning_rate, "gamma: a number or a rule such as 1/(L+l2)");
  describe(s, o.schedule);
  s.field("p", o.p, "probability of a new reference point after a round; 0 = batch over the client's rows").at_least(0).at_most(1);
}

template <class T>
class LsvrgUpdate final : public LocalUpdate<T> {
 public:
  explicit LsvrgUpdate(LsvrgOptions options) : options_(std::move(options)) {}

  [[nodiscard]] StepSettings step_settings() const override { return {options_, options_.learning_rate, options_.schedule}; }
  [[nodiscard]] std::vector<Unit> units() const override { return {Unit::gradient, Unit::step}; }
  [[nodiscard]] std::vector<SlotSpec> slots() const override {
    return {{.name = "reference_point", .owner = SlotOwner::client}, {.name = "reference_gradient", .owner = SlotOwner::client}};
  }

  // A new reference point takes a full gradient with probability p. With p = batch over rows that is one gradient on a minibatch on
  // average.
  [[nodiscard]] LocalTraits traits() const override {
    return {.cost = LocalCost{.gradients = options_.p > 0 ? 2.0 : 3.0, .full_gradients = options_.p, .round = {4 + 4 * options_.p, 2}}};
  }

  [[nodiscard]] std::string host_walks() const override { return "keeps every client's reference point and gradient"; }
  void run(const Exec& exec, const ClientRound<T>& round, const GradientOracle<T>& oracle, const ClientBlock<T>& block) const override {
    const std::size_t P = round.P();
    const BatchView<T> points = block.stored(round.state, "reference_point"), gradients = block.stored(round.state, "reference_gradient");
    Workspace::Frame frame(*exec.workspace);
    T* at_point = frame.take<T>(P);
    for (std::uint32_t k = 0; k < block.K; ++k) {
      const std::uint32_t client = block.clients[k];
      const T* w = block.start.row(k);
      T *point = points.row(k), *reference = gradients.row(k), *g = block.vectors[0].row(k);
      if (round.state.acknowledged(client) == 0) renew(exec, oracle, round, client, w, point, reference);
      const Sample sample{.round = round.order.round};
      gradient_at(exec, oracle, w, client, sample, P, g);
      move_own(round, block, k, g);
      gradient_at(exec, oracle, point, client, sample, P, at_point);
      for (std::size_t j = 0; j < P; ++j) g[j] = g[j] - at_point[j] + reference[j];
      if (renews(oracle, round, client)) renew(exec, oracle, round, client, w, point, reference);
    }
  }

 private:
  [[nodiscard]] bool renews(const GradientOracle<T>& oracle, const ClientRound<T>& round, std::uint32_t client) const {
    constexpr std::uint32_t kReference = 2;  // apart from other coins
    const auto rows = static_cast<double>(oracle.shards()[client].size());
    const double p = options_.p > 0 ? options_.p : oracle.is_full() ? 1.0 : static_cast<double>(oracle.batch()) / rows;
    const RandomStream stream(hash64(round.run.seeds.sampling, static_cast<std::uint64_t>(Purpose::coin)), client, round.order.round,
                              kReference);
    return stream.template uniform<double>(0) < p;
  }

  // r_i <- w. A gradient that is not finite is not kept: the client's message is refused all the same.
  static void renew(const Exec& exec, const GradientOracle<T>& oracle, const ClientRound<T>& round, std::uint32_t client, const T* w,
                    T* point, T* reference) {
    Workspace::Frame frame(*exec.workspace);
    T* fresh = frame.take<T>(round.P());
    gradient_at(exec, oracle, w, client, {.full = true}, round.P(), fresh);
    clear_ranges(round.run.kinds.unshared, fresh);
    if (!is_finite(fresh, round.P())) return;
    std::copy_n(fresh, round.P(), reference);
    std::copy_n(w, round.P(), point);
  }
  static void gradient_at(const Exec& exec, const GradientOracle<T>& oracle, const T* x, const std::uint32_t& client, const Sample& sample,
                          std::size_t P, T* out) {
    oracle.gradient(exec, shared_view(x, 1, P), std::span(&client, 1), sample, {out, nullptr, 1, P, P}, nullptr);
  }

  LsvrgOptions options_;
};

FL_REGISTER_PART(LocalUpdate, LsvrgUpdate, LsvrgOptions,
                 (PartInfo{"local_update", "lsvrg", "variance-reduced stochastic gradients around a reference point, renewed at random",
                           "Kovalev, Horvath, Richtarik, ALT 2020; Gorbunov, Kovalev, Makarenko, Richtarik, NeurIPS 2020"}));

}  // namespace fl
