// EF21+: each client sends the better of the compressed gradient and EF21's compressed difference.
//
//   client  m = h + C(g - h),  b = C(g);  h <- b if |b - g|^2 <= |m - g|^2, else m        sends C(g) or C(g - h)
//   server  d_i = h_i(new) - h_i:  estimate = h_mean + mean d,  h_mean <- h_mean + mean_w d
// Two channels: "model" is C(g - h), "restart" is C(g); every client leaves one of them silent (2 bits of choice). C is a contraction,
// deterministic in the source, equal for both channels ([compressor.up]). The server needs every client's h_i to replace it: it keeps its
// own copies, server_shift [N,P], which change only by messages; the silent channel determines how. unit "gradient" or "update". h_i [N,P]
// are kept while a client is absent.
// Source: P. Richtarik, I. Sokolov, I. Fatkhullin, "EF21: a new, simpler, theoretically better, and practically faster error feedback",
// NeurIPS 2021 (EF21+).
#include <algorithm>

#include "compressors/feedback/feedback.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "fl_core/ops/norms.hpp"

namespace fl {

template <class T>
class Ef21Plus final : public Feedback<T> {
 public:
  explicit Ef21Plus(const NoOptions&) {}

  // "server_shift" is the server's copy of the shifts: N P numbers in its memory and in checkpoints.
  [[nodiscard]] FeedbackPlan plan() const override {
    return {.channels = {{.name = "model"}, {.name = "restart"}},
            .slots = {{.name = "shift", .owner = SlotOwner::client},
                      {.name = "server_shift", .owner = SlotOwner::server_copy},
                      {.name = "shift_mean", .owner = SlotOwner::server}},
            .means = {{.slot = "shift", .held_in = "shift_mean"}},
            .host_walks = "compares both messages of every client with its gradient",
            .cost = cost()};
  }
  [[nodiscard]] FeedbackNeeds needs() const override {
    return {.name = "ef21_plus",
            .one_vector = true,
            .units = {Unit::gradient, Unit::update},
            .units_why = "compresses differences of gradients",
            .own_messages = true,
            .operators = {{.is = OperatorClass::contraction}}};
  }
  // The kept vector is never further from the gradient than that of EF21, which is all that EF21's proof uses.
  [[nodiscard]] TheoryStep theory_step_size(const TheoryFacts& facts) const override { return theory::ef21(facts, 1); }

  [[nodiscard]] Send<T> prepare(const Exec&, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t channel) const override {
    Send<T> send;
    send.input.add(T(1), block.vectors[0]);
    if (channel == kDifference) send.input.add(T(-1), block.stored(round.state, "shift"));
    return send;
  }

  void after_compress(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t channel, const Send<T>&,
                      const Exchange<T>& exchange) const override {
    if (channel != kRestart) return;
    const BatchView<T> shift = block.stored(round.state, "shift");
    Workspace::Frame frame(*exec.workspace);
    T* room = frame.take<T>(round.P());
    for (std::uint32_t k = 0; k < block.K; ++k) {
      const T* g = block.vectors[0].row(k);
      const double of_restart = error_of(*block.messages[kRestart][k], exchange.channels[kRestart].scope, g, nullptr, round.P(), room);
      const double of_difference =
          error_of(*block.messages[kDifference][k], exchange.channels[kDifference].scope, g, shift.row(k), round.P(), room);
      const bool is_restart = of_restart <= of_difference;
      Payload<T>& worse = *block.messages[is_restart ? kDifference : kRestart][k];
      worse.clear(worse.length);
      worse.silent = true;
    }
  }

  void acknowledge(const ClientRound<T>& round, const ClientBlock<T>& block, std::uint32_t k, const Exchange<T>& exchange) const override {
    const std::size_t channel = block.messages[kRestart][k]->silent ? kDifference : kRestart;
    T* h = block.stored(round.state, "shift").row(k);
    move_shift(*block.messages[channel][k], exchange.channels[channel].scope, channel, {h, round.P()});
  }

  void receive(const ServerRound<T>& round, std::span<const Aggregate> aggregates, std::span<double> estimate) const override {
    const std::span<double> mean = round.state.slot("shift_mean");
    for (std::size_t j = 0; j < estimate.size(); ++j) {
      estimate[j] = mean[j] + aggregates[kDifference].estimate[j] + aggregates[kRestart].estimate[j];
      mean[j] += aggregates[kDifference].population[j] + aggregates[kRestart].population[j];
    }
    for (std::uint32_t i = 0; i < round.order.cohort.size(); ++i) {
      if (round.arrived[kRestart].messages[i] == nullptr) continue;
      const std::size_t channel = round.arrived[kRestart].messages[i]->silent ? kDifference : kRestart;
      const std::span<T> h = round.state.copy("server_shift", round.order.cohort[i]);
      if (channel == kRestart && round.cohort_weight[i] != 0) take_off_replaced(round, i, h, estimate, mean);
      move_shift(*round.arrived[channel].messages[i], round.arrived[channel].scope, channel, h);
    }
  }

 private:
  // The errors of both messages are computed in a vector each: input and shift are read, the message is added, and the sum of squares is
  // taken.
  [[nodiscard]] static FeedbackCost cost() { return {.inputs = 3, .moved = 1, .server = 7, .other = {.passes = 13, .operations = 8}}; }
  static constexpr std::size_t kDifference = 0, kRestart = 1;

  // Returns |h + c - g|^2, with h = 0 if `h` is null. room: [P]
  static double error_of(const Payload<T>& message, const Scope& scope, const T* g, const T* h, std::size_t P, T* room) {
    for (std::size_t j = 0; j < P; ++j) room[j] = h == nullptr ? -g[j] : h[j] - g[j];
    add_scaled(message, scope, T(1), room);
    return sum_of_squares(room, P);
  }

  // Sets h to C(g) or h + C(g - h), depending on the message's channel.
  static void move_shift(const Payload<T>& message, const Scope& scope, std::size_t channel, std::span<T> h) {
    if (channel == kRestart) std::ranges::fill(h, T(0));
    add_scaled(message, scope, T(1), h.data());
  }

  // Subtracts the shift h, which C(g) of the client at position i replaces, from both sums.
  static void take_off_replaced(const ServerRound<T>& round, std::uint32_t i, std::span<const T> h, std::span<double> estimate,
                                std::span<double> mean) {
    for (std::size_t j = 0; j < mean.size(); ++j) {
      estimate[j] -= round.cohort_weight[i] * static_cast<double>(h[j]);
      mean[j] -= round.population_weight[i] * static_cast<double>(h[j]);
    }
  }
};

FL_REGISTER_PART(Feedback, Ef21Plus, NoOptions,
                 (PartInfo{"feedback", "ef21_plus", "the better of the compressed gradient and EF21's difference, client by client",
                           "Richtarik, Sokolov, Fatkhullin, NeurIPS 2021"}));

}  // namespace fl
