// EC-DIANA: error feedback for a contraction, with shifts learned through a second, unbiased message (EC-GD-DIANA, EC-SGD-DIANA).
//
//   client  channel "shift":  q = Q(g - h)
//           channel "model":  p = e + gamma (g - h + h_mean),  v = C(p),  e <- p - v          then h <- h + alpha q
//   server  estimate = mean v;   h_mean <- h_mean + alpha mean_w q
// Two operators: [compressor.up] is C, [compressor.up.shift] is Q. h_mean is a shared slot: it is broadcast and counted. unit = step.
// Source: E. Gorbunov, D. Kovalev, D. Makarenko, P. Richtarik, "Linearly converging error compensated SGD", NeurIPS 2020.
#include <algorithm>

#include "compressors/feedback/feedback.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/message/payload_ops.hpp"

namespace fl {

struct EcDianaOptions {
  double alpha = 0.1;
};
inline void describe(Schema& s, EcDianaOptions& o) {
  s.field("alpha", o.alpha, "step of the shift; theory: at most 1/(1+omega) of [compressor.up.shift]").above(0).at_most(1);
}

template <class T>
class EcDiana final : public Feedback<T> {
 public:
  explicit EcDiana(const EcDianaOptions& o) : alpha_(o.alpha) {}

  // The shift comes first, because the model channel overwrites the gradient with the new error.
  [[nodiscard]] FeedbackPlan plan() const override {
    return {.channels = {{.name = "shift"}, {.name = "model"}},
            .slots = {{.name = "error", .owner = SlotOwner::client, .double_buffered = true},
                      {.name = "shift", .owner = SlotOwner::client},
                      {.name = "shift_mean", .owner = SlotOwner::shared, .sync = SlotSync::broadcast},
                      {.name = "shift_sum", .owner = SlotOwner::server}},
            .in_place_slot = "error",
            .error_slot = "error",
            .moves = {{.slot = "shift", .factor = alpha_}},
            .means = {{.slot = "shift", .held_in = "shift_sum"}},
            .host_walks = "",
            .cost = FeedbackCost{.inputs = 6, .written = 1, .moved = 1, .server = 6}};
  }

  [[nodiscard]] FeedbackNeeds needs() const override {
    return {.name = "ec_diana",
            .units = {Unit::step},
            .units_why = "keeps the step size inside the memory",
            .own_messages = true,
            .operators = {{.is = OperatorClass::unbiased, .channel = "shift"}}};
  }

  [[nodiscard]] Send<T> prepare(const Exec&, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t channel) const override {
    const BatchView<const T> shift = block.stored(round.state, "shift");
    Send<T> send;
    if (channel == 0) {
      send.input.add(T(1), block.vectors[0]).add(T(-1), shift);
      return send;
    }
    const T gamma = round.input_factor();
    const std::span<const T> mean = round.shared.slot("shift_mean");
    send.input.add(T(1), block.stored(round.state, "error"))
        .add(gamma, block.vectors[0])
        .add(-gamma, shift)
        .add(gamma, shared_view<const T>(mean.data(), block.K, round.P()));
    send.state = {StateRule::residual, block.vectors[0]};
    return send;
  }
  void acknowledge(const ClientRound<T>& round, const ClientBlock<T>& block, std::uint32_t k, const Exchange<T>&) const override {
    round.state.swap("error", block.first + k);
  }
  void receive(const ServerRound<T>& round, std::span<const Aggregate> aggregates, std::span<double> estimate) const override {
    const std::span<double> sum = round.state.slot("shift_sum");
    const std::span<T> mean = round.shared.slot("shift_mean");
    std::copy(aggregates[1].estimate.begin(), aggregates[1].estimate.end(), estimate.begin());
    for (std::size_t j = 0; j < sum.size(); ++j) {
      sum[j] += alpha_ * aggregates[0].population[j];
      mean[j] = static_cast<T>(sum[j]);
    }
  }

 private:
  double alpha_;
};

FL_REGISTER_PART(Feedback, EcDiana, EcDianaOptions,
                 (PartInfo{"feedback", "ec_diana", "error feedback with learned shifts: two operators",
                           "Gorbunov, Kovalev, Makarenko, Richtarik, NeurIPS 2020"}));

}  // namespace fl
