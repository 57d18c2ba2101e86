// Momentum before compression, with momentum factor masking: Algorithm 3 of Sahu et al. 2021, and DGC's memory.
//
//   client  u <- mu u + g,  v <- v + u,  c = C(v);  where sent: v <- 0 and u <- 0 (masking)         server  estimate = mean c
// Without masking: v <- v - c and u is kept. Two states per client, u and v [N,P] each.
// Source: Y. Lin, S. Han, H. Mao, Y. Wang, W. J. Dally, "Deep gradient compression", ICLR 2018.
#include <algorithm>

#include "compressors/feedback/feedback.hpp"
#include "fl_core/config/aliases.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/message/payload_ops.hpp"

namespace fl {

struct MomentumCorrectionOptions {
  double momentum = 0.9;
  bool masking = true;
};
inline void describe(Schema& s, MomentumCorrectionOptions& o) {
  s.field("momentum", o.momentum, "mu of u <- mu u + g").at_least(0).below(1);
  s.field("masking", o.masking, "momentum factor masking: u and v are cleared where an entry was sent");
}

template <class T>
class MomentumCorrection final : public Feedback<T> {
 public:
  explicit MomentumCorrection(const MomentumCorrectionOptions& o) : momentum_(static_cast<T>(o.momentum)), masking_(o.masking) {}

  [[nodiscard]] FeedbackPlan plan() const override {
    return {.slots = {{.name = "momentum", .owner = SlotOwner::client, .double_buffered = true},
                      {.name = "accumulated", .owner = SlotOwner::client, .double_buffered = true}},
            .in_place_slot = "momentum",
            .error_slot = "accumulated",
            .host_walks = "adds every gradient to its client's momentum",
            .cost = FeedbackCost{.inputs = 2, .written = 1, .server = 2, .other = {.passes = 3, .operations = 3}}};
  }

  [[nodiscard]] FeedbackNeeds needs() const override { return {.name = "momentum_correction", .one_vector = true, .own_messages = true}; }

  [[nodiscard]] Send<T> prepare(const Exec&, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t) const override {
    const BatchView<T> momentum = block.stored(round.state, "momentum");
    const T factor = round.input_factor();
    for (std::uint32_t k = 0; k < block.K; ++k) {
      const T* u = momentum.row(k);
      T* g = block.vectors[0].row(k);
      for (std::size_t j = 0; j < round.P(); ++j) g[j] = momentum_ * u[j] + factor * g[j];
    }
    Send<T> send;
    send.input.add(T(1), block.stored(round.state, "accumulated")).add(T(1), block.vectors[0]);
    send.state = {masking_ ? StateRule::zero_where_sent : StateRule::residual, block.shadow(round.state, "accumulated")};
    return send;
  }
  void after_compress(const Exec&, const ClientRound<T>&, const ClientBlock<T>& block, std::size_t channel, const Send<T>&,
                      const Exchange<T>& exchange) const override {
    if (!masking_) return;
    for (std::uint32_t k = 0; k < block.K; ++k)
      zero_where_sent(*block.messages[channel][k], exchange.channels[channel].scope, block.vectors[0].row(k));
  }
  void acknowledge(const ClientRound<T>& round, const ClientBlock<T>& block, std::uint32_t k, const Exchange<T>&) const override {
    round.state.swap("momentum", block.first + k);
    round.state.swap("accumulated", block.first + k);
  }
  void receive(const ServerRound<T>&, std::span<const Aggregate> aggregates, std::span<double> estimate) const override {
    std::copy(aggregates[0].estimate.begin(), aggregates[0].estimate.end(), estimate.begin());
  }

 private:
  T momentum_;
  bool masking_;
};

FL_REGISTER_PART(Feedback, MomentumCorrection, MomentumCorrectionOptions,
                 (PartInfo{"feedback", "momentum_correction", "momentum before compression, with momentum factor masking (DGC)",
                           "Lin, Han, Mao, Wang, Dally, ICLR 2018"}));

const bool kDgc = add_alias({"feedback", "dgc", "momentum_correction", {}, "", "Lin et al., ICLR 2018"});
const bool kMasking =
    add_alias({"feedback", "momentum_masking", "momentum_correction", {{"masking", Value{true}}}, "", "Lin et al., ICLR 2018"});

}  // namespace fl
