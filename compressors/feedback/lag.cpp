// LAG, lazily aggregated gradients: a client stays silent while its gradient has changed little.
//
//   client  d = g - last_sent;  sends d only if |w_i d|^2 > xi/(s^2 N^2) sum_{d=1..D} |w_{r+1-d} - w_{r-d}|^2;  last_sent <- last_sent + d
//   server  sum <- sum + sum_i w_i d_i;  estimate = sum,  w <- w - s estimate
// The source minimises the sum of its clients' losses; here they are w_i f_i, with the population weight w_i, so the trigger uses w_i d. s
// is the model's step, gamma times the server's learning rate; the server's optimizer must take this plain step (no momentum, no weight
// decay). A client of weight 0 stays silent. A silent client still sends a header, which is counted. The history of model differences [D]
// is a shared slot: clients that took part in the previous round derive it from the models of the two rounds, and other clients receive it.
// With xi = 0 it is gradient descent; a contractive operator compresses its messages. The defaults are the constants of the authors'
// programs, xi = 1/D and D = 10. Those programs start from gradients of ones and stay silent for D rounds; here every client sends the
// first gradient, and the sum over d grows to D terms.
// Source: T. Chen, G. Giannakis, T. Sun, W. Yin, "LAG: lazily aggregated gradient", NeurIPS 2018 (rule for workers; tests/golden checks it
// by its identity with gradient descent, by a traced example and by the published rule on a9a). The trigger of 3PC, by the last change of
// the gradient, is feedback "three_pc".
#include <algorithm>

#include "compressors/feedback/feedback.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/message/payload_ops.hpp"

namespace fl {

struct LagOptions {
  double xi = 0.1;
  std::int64_t memory = 10;
};
inline void describe(Schema& s, LagOptions& o) {
  s.field("xi", o.xi, "weight of the model's recent movement in the trigger; 0 = always send").at_least(0);
  s.field("memory", o.memory, "D: how many past model differences count").at_least(1).at_most(1000);
}

template <class T>
class Lag final : public Feedback<T> {
 public:
  explicit Lag(const LagOptions& o) : xi_(o.xi), memory_(static_cast<std::size_t>(o.memory)) {}

  [[nodiscard]] FeedbackPlan plan() const override {
    return {
        .slots = {{.name = "last_sent", .owner = SlotOwner::client},
                  {.name = "gradient_sum", .owner = SlotOwner::server},
                  {.name = "previous_reference", .owner = SlotOwner::shared, .sync = SlotSync::last_model, .derive_alone_reads_it = true},
                  {.name = "history", .owner = SlotOwner::shared, .sync = SlotSync::derived, .length = memory_}},
        .moves = {{.slot = "last_sent"}},
        .means = {{.slot = "last_sent", .held_in = "gradient_sum"}},
        .host_walks = "measures how far every gradient has moved since it was sent",
        // The input is computed again for its norm, and models are compared in derive().
        .cost = FeedbackCost{.inputs = 2, .moved = 1, .server = 4, .other = {.passes = 4, .operations = 6}}};
  }
  [[nodiscard]] FeedbackNeeds needs() const override {
    return {.name = "lag",
            .one_vector = true,
            .units = {Unit::gradient},
            .units_why = "compares gradients",
            .own_messages = true,
            .plain_server = true};
  }

  // Stores |w_r - w_{r-1}|^2 in the history, a ring of the last D rounds. Only weights count, not running statistics.
  void derive(const RoundView<T>& round, SharedState<T>& shared) const override {
    if (round.order.round == 1) return;
    const std::span<const T> previous = shared.slot("previous_reference");
    double moved = 0;
    for_each_run_outside(round.run.kinds.unshared, 0, round.P(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t j = begin; j < end; ++j) {
        const double step = static_cast<double>(round.reference[j]) - static_cast<double>(previous[j]);
        moved += step * step;
      }
    });
    shared.slot("history")[(round.order.round - 2) % memory_] = static_cast<T>(moved);
  }

  [[nodiscard]] Send<T> prepare(const Exec&, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t) const override {
    Send<T> send;
    send.input.add(T(1), block.vectors[0]).add(T(-1), block.stored(round.state, "last_sent"));
    return send;
  }

  void after_compress(const Exec&, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t channel, const Send<T>& sent,
                      const Exchange<T>&) const override {
    const double bound = trigger_bound(round);
    for (std::uint32_t k = 0; k < block.K; ++k) {
      double change = 0;
      for (std::size_t j = 0; j < round.P(); ++j) {
        const auto d = static_cast<double>(sent.input.at(k, j));
        change += d * d;
      }
      const double weight = round.run.weights[block.clients[k]];
      if (weight * weight * change > bound) continue;
      Payload<T>& message = *block.messages[channel][k];
      message.clear(message.length);
      message.silent = true;
    }
  }

  void acknowledge(const ClientRound<T>&, const ClientBlock<T>&, std::uint32_t, const Exchange<T>&) const override {}

  void receive(const ServerRound<T>& round, std::span<const Aggregate> aggregates, std::span<double> estimate) const override {
    const std::span<double> sum = round.state.slot("gradient_sum");
    for (std::size_t j = 0; j < estimate.size(); ++j) {
      sum[j] += aggregates[0].population[j];
      estimate[j] = sum[j];
    }
  }

 private:
  // Returns xi/(s^2 N^2) sum |w_{r+1-d} - w_{r-d}|^2, which |w_i d|^2 must exceed.
  [[nodiscard]] double trigger_bound(const ClientRound<T>& round) const {
    double moved = 0;
    for (const T value : round.shared.slot("history")) moved += static_cast<double>(value);
    const double steps = round.order.server_step * static_cast<double>(round.run.num_clients);
    return xi_ * moved / (steps * steps);
  }

  double xi_;
  std::size_t memory_;
};

FL_REGISTER_PART(Feedback, Lag, LagOptions,
                 (PartInfo{"feedback", "lag", "lazy aggregation: a client is silent while its gradient has changed little",
                           "Chen, Giannakis, Sun, Yin, NeurIPS 2018"}));

}  // namespace fl
