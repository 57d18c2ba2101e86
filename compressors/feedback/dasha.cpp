// DASHA: compressed differences of variance-reduced gradients. Unlike MARINA, it needs no uncompressed rounds.
//
//   client  m = Q(t_new - t - a (h - t)),  h <- h + m,  t <- t_new          server  g <- g + mean_w m,  estimate = g = mean_w h
//   t_new = grad f_i(w)                                                  local kind "gradient": DASHA
//   t_new = grad f_i(w; xi) + (1 - b)(t - grad f_i(w_previous; xi))      local kind "mvr": DASHA-MVR, b its `momentum`
// Q is unbiased and E[h - t_new] = (1 - a)(h - t): the estimate's bias decays at the rate a = 1/(1 + 2 omega) of the source; a larger a is
// refused. init = "dense" sends the first gradients uncompressed, h = t, and counts them. With Q = identity it is gradient descent. unit
// "gradient". t_i, h_i [N,P]; w_previous [P] is the model that clients received in the previous round. Every client takes part in every
// round (DASHA-PP is another method).
// Source: A. Tyurin, P. Richtarik, "DASHA: distributed nonconvex optimization with communication compression and optimal oracle
// complexity", ICLR 2023; derived again from the recursion of the bias above, and tested against its identities in tests/golden.
#include <algorithm>
#include <cmath>

#include "compressors/feedback/feedback.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/message/payload_ops.hpp"

namespace fl {

struct DashaOptions {
  double a = 0.1;
  enum class Init { compressed, dense } init = Init::compressed;
};
inline void describe(Schema& s, DashaOptions& o) {
  s.field("a", o.a, "rate at which the estimate forgets its bias; theory: 1/(1+2 omega)").above(0).at_most(1);
  s.choice("init", o.init, {{DashaOptions::Init::compressed, "compressed"}, {DashaOptions::Init::dense, "dense"}},
           "first message: Q(g), or g itself (its bits are counted)");
}

template <class T>
class Dasha final : public Feedback<T> {
 public:
  explicit Dasha(const DashaOptions& o) : a_(o.a), starts_dense_(o.init == DashaOptions::Init::dense) {}

  [[nodiscard]] FeedbackPlan plan() const override {
    return {.slots = {{.name = "tracker", .owner = SlotOwner::client, .double_buffered = true},
                      {.name = "shift", .owner = SlotOwner::client},
                      {.name = "shift_mean", .owner = SlotOwner::server},
                      {.name = "previous_model", .owner = SlotOwner::shared, .sync = SlotSync::last_model}},
            .in_place_slot = "tracker",
            .moves = {{.slot = "shift"}},
            .means = {{.slot = "shift", .held_in = "shift_mean"}},
            .host_walks = "",
            .cost = FeedbackCost{.inputs = 4, .moved = 1, .server = 4}};
  }

  [[nodiscard]] FeedbackNeeds needs() const override {
    return {.name = "dasha",
            .one_vector = true,
            .units = {Unit::gradient},
            .units_why = "compresses gradients",
            .own_messages = true,
            .operators = {{.is = OperatorClass::unbiased, .instead = "ef21"}},
            .bounds = {{.option = "a", .value = a_, .omegas = 2}},
            .every_client = true};
  }

  [[nodiscard]] TheoryStep theory_step_size(const TheoryFacts& facts) const override {
    if (const std::string why = theory::unmet(facts, theory::Gradients::full); !why.empty()) return TheoryStep::none(why);
    const double omega = facts.contracts.front().omega.value_or(0), a = 1 / (1 + 2 * omega);
    if (std::abs(a_ / a - 1) > 1e-6)
      return TheoryStep::none("the theorem needs feedback.up.a = 1/(1+2 omega) = " + to_string(Value{a}) + ", is " + to_string(Value{a_}));
    if (!starts_dense_) return TheoryStep::none("the theorem needs exact first gradients: use feedback.up.init = \"dense\"");
    // The method's recursion needs only 2 in place of 16, the theorem's constant.
    const double spread = std::sqrt(16 * omega * (1 + 2 * omega) * facts.largest_weight());
    return TheoryStep::of(1 / (facts.L + spread * facts.L_quadratic_mean()), "DASHA, Tyurin and Richtarik 2023, theorem 6.1");
  }

  // Returns the input t_new - t - a (h - t).
  [[nodiscard]] Send<T> prepare(const Exec&, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t) const override {
    const BatchView<T> tracker = block.stored(round.state, "tracker");
    const T a = static_cast<T>(a_);
    Send<T> send;
    send.input.add(T(1), block.vectors[0]).add(T(-1), tracker).add(-a, block.stored(round.state, "shift")).add(a, tracker);
    send.dense = starts_dense_ && round.order.round == 1;
    return send;
  }
  void acknowledge(const ClientRound<T>& round, const ClientBlock<T>& block, std::uint32_t k, const Exchange<T>&) const override {
    round.state.swap("tracker", block.first + k);
  }
  void receive(const ServerRound<T>& round, std::span<const Aggregate> aggregates, std::span<double> estimate) const override {
    const std::span<double> mean = round.state.slot("shift_mean");
    for (std::size_t j = 0; j < estimate.size(); ++j) {
      mean[j] += aggregates[0].population[j];
      estimate[j] = mean[j];
    }
  }

 private:
  double a_;
  bool starts_dense_;
};

FL_REGISTER_PART(Feedback, Dasha, DashaOptions,
                 (PartInfo{"feedback", "dasha", "compressed differences of variance-reduced gradients, never uncompressed",
                           "Tyurin, Richtarik, ICLR 2023"}));

}  // namespace fl
