// EControl: error feedback with a controlled share of the error in the message.
//
//   client  c = C(eta e + g - h),  e <- e + g - h - c,  h <- h + c
//   server  estimate = h_mean + mean c,  h_mean <- h_mean + mean_w c
// A client's first message starts from e = 0 and is, by `init`,
//   zero     c = C(g) from h = 0, e = g - c afterwards       dense    c = g, uncompressed and counted: h = g, e = 0 afterwards
//   message  c = C(g) from h = 0, e = 0 afterwards: the shift begins at C(g), and the rest of the first gradient is dropped
// eta = 0 is EF21 bit for bit. With C = identity: e = 0 and the step is gamma * mean g. eta is of the order of delta.
// C is a contraction or absolute. e_i, h_i [N,P] are kept while a client is absent.
// Source: Y. Gao, R. Islamov, S. U. Stich, ICLR 2024. (The update was checked against its identities: tests/golden.)
#include <algorithm>

#include "compressors/feedback/feedback.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/message/payload_ops.hpp"

namespace fl {

struct EControlOptions {
  double eta = 0.1;
  enum class Init { zero, dense, message } init = Init::zero;
};
inline void describe(Schema& s, EControlOptions& o) {
  s.field("eta", o.eta, "share of the error in the message; of the order of delta, 0 = EF21").at_least(0).at_most(1);
  using I = EControlOptions::Init;
  s.choice("init", o.init, {{I::zero, "zero"}, {I::dense, "dense"}, {I::message, "message"}},
           "first message: C(g) from h = 0, whose error is kept; g itself (its bits are counted); or C(g), whose error is not kept");
}

template <class T>
class EControl final : public Feedback<T> {
 public:
  explicit EControl(const EControlOptions& o) : eta_(static_cast<T>(o.eta)), init_(o.init) {}

  [[nodiscard]] FeedbackPlan plan() const override {
    return {.slots = {{.name = "error", .owner = SlotOwner::client, .double_buffered = true},
                      {.name = "shift", .owner = SlotOwner::client},
                      {.name = "shift_mean", .owner = SlotOwner::server}},
            .in_place_slot = "error",
            .error_slot = "error",
            .moves = {{.slot = "shift"}},
            .means = {{.slot = "shift", .held_in = "shift_mean"}},
            .host_walks = "computes every new error",
            .cost = FeedbackCost{.inputs = 3, .moved = 1, .server = 5, .other = {.passes = 7, .operations = 4}}};
  }

  [[nodiscard]] FeedbackNeeds needs() const override {
    return {.name = "econtrol",
            .one_vector = true,
            .units = {Unit::gradient, Unit::update},
            .units_why = "compresses differences of gradients",
            .own_messages = true,
            .operators = {{.is = OperatorClass::contraction}},
            .all_at_first = init_ == Init::dense ? "\"zero\" or \"message\"" : ""};
  }
  [[nodiscard]] TheoryStep theory_step_size(const TheoryFacts& facts) const override {
    if (eta_ > T(0))
      return TheoryStep::none(
          "no theorem with explicit constants is implemented for econtrol with eta > 0; eta = 0 is EF21, which has one");
    return theory::ef21(facts, 1);
  }

  [[nodiscard]] Send<T> prepare(const Exec&, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t) const override {
    Send<T> send;
    send.input.add(eta_, block.stored(round.state, "error")).add(T(1), block.vectors[0]).add(T(-1), block.stored(round.state, "shift"));
    send.dense = init_ == Init::dense && round.order.round == 1;
    return send;
  }

  // The new error differs from the compressor's residual (eta e against e), so it is computed in place of the local vector here.
  void after_compress(const Exec&, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t, const Send<T>&,
                      const Exchange<T>& exchange) const override {
    const BatchView<T> error = block.stored(round.state, "error"), shift = block.stored(round.state, "shift");
    for (std::uint32_t k = 0; k < block.K; ++k) {
      const T *e = error.row(k), *h = shift.row(k);
      T* g = block.vectors[0].row(k);
      if (init_ == Init::message && round.state.acknowledged(block.clients[k]) == 0) {
        std::fill_n(g, round.P(), T(0));
        continue;
      }
      for (std::size_t j = 0; j < round.P(); ++j) g[j] = e[j] + g[j] - h[j];
      add_scaled(*block.messages[0][k], exchange.channels[0].scope, T(-1), g);
    }
  }

  void acknowledge(const ClientRound<T>& round, const ClientBlock<T>& block, std::uint32_t k, const Exchange<T>&) const override {
    round.state.swap("error", block.first + k);
  }

  void receive(const ServerRound<T>& round, std::span<const Aggregate> aggregates, std::span<double> estimate) const override {
    const std::span<double> mean = round.state.slot("shift_mean");
    for (std::size_t j = 0; j < estimate.size(); ++j) {
      estimate[j] = mean[j] + aggregates[0].estimate[j];
      mean[j] += aggregates[0].population[j];
    }
  }

 private:
  using Init = EControlOptions::Init;
  T eta_;
  Init init_;
};

FL_REGISTER_PART(Feedback, EControl, EControlOptions,
                 (PartInfo{"feedback", "econtrol", "error feedback with a controlled share of the error",
                           "Gao, Islamov, Stich, ICLR 2024"}));

}  // namespace fl
