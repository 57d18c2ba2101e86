// CSER, communication-efficient SGD with error reset: clients keep unsent parts in their own models and send them every H rounds.
//
//   client  computes at its own model x_i = w - m_i
//           channel "model":  c = C2(u g),  m <- m + u g - c
//           channel "reset", every H-th round:  q = C1(m),  m <- m - q
//   server  estimate = mean c + mean q in rounds of a reset, mean c in the others
// In the paper's notation e_i = -m_i: its invariant, that x_i - e_i is the same on all workers, is w here, which all clients know.
// Therefore its partial synchronisation PSync(v, C) = mean C(v) + (v - C(v)) needs no mean at the clients before the next broadcast.
// [compressor.up] is C2, [compressor.up.reset] is C1. With C1 = identity and C2 sending nothing it is local SGD of H steps.
// unit = step (u = gamma) or update (u = 1). m [N,P] is kept while a client is absent.
// Source: C. Xie, S. Zheng, O. Koyejo, I. Gupta, M. Li, H. Lin, "CSER: communication-efficient SGD with error reset", NeurIPS 2020; the
// substitution is derived here and compared with the published form in tests/golden.
#include <algorithm>

#include "compressors/feedback/feedback.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct CserOptions {
  std::int64_t reset_every = 8;
};
inline void describe(Schema& s, CserOptions& o) {
  s.field("reset_every", o.reset_every, "H: the error is reset in rounds H, 2H, ...").at_least(1).at_most(4294967295.0).unit("rounds");
}

template <class T>
class Cser final : public Feedback<T> {
 public:
  explicit Cser(const CserOptions& o) : reset_every_(static_cast<std::uint32_t>(o.reset_every)) {}

  [[nodiscard]] FeedbackPlan plan() const override {
    return {.channels = {{.name = "model"}, {.name = "reset", .every = reset_every_}},
            .slots = {{.name = "error", .owner = SlotOwner::client, .double_buffered = true}},
            .in_place_slot = "error",
            .error_slot = "error",
            .offset_slot = "error",
            .host_walks = "subtracts the error from every client's model and sums it between resets",
            .cost = cost()};
  }

  [[nodiscard]] FeedbackNeeds needs() const override {
    return {.name = "cser",
            .one_vector = true,
            .own_models = true,
            .units = {Unit::step, Unit::update},
            .units_why = "keeps what was not sent in the clients' models",
            .own_messages = true,
            .operators = {{.is = OperatorClass::bounded, .channel = "reset"}}};
  }

  // The first channel overwrites the local vector with its residual; the second channel adds the memory and stores the new memory there.
  [[nodiscard]] Send<T> prepare(const Exec&, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t channel) const override {
    Send<T> send;
    if (channel == 0)
      send.input.add(round.input_factor(), block.vectors[0]);
    else
      send.input.add(T(1), block.stored(round.state, "error")).add(T(1), block.vectors[0]);
    send.state = {StateRule::residual, block.vectors[0]};
    return send;
  }
  void after_compress(const Exec&, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t channel, const Send<T>&,
                      const Exchange<T>&) const override {
    if (channel == 1 || resets(round.order)) return;
    const BatchView<T> stored = block.stored(round.state, "error");
    for (std::uint32_t k = 0; k < block.K; ++k) {
      const T* m = stored.row(k);
      T* residual = block.vectors[0].row(k);
      for (std::size_t j = 0; j < round.P(); ++j) residual[j] = m[j] + residual[j];
    }
  }
  void acknowledge(const ClientRound<T>& round, const ClientBlock<T>& block, std::uint32_t k, const Exchange<T>&) const override {
    round.state.swap("error", block.first + k);
  }
  void receive(const ServerRound<T>& round, std::span<const Aggregate> aggregates, std::span<double> estimate) const override {
    std::copy(aggregates[0].estimate.begin(), aggregates[0].estimate.end(), estimate.begin());
    if (!resets(round.order)) return;
    for (std::size_t j = 0; j < estimate.size(); ++j) estimate[j] += aggregates[1].estimate[j];
  }

 private:
  // Every client's model loses its error. Between resets the residual is added to the memory, at a reset both are the second input.
  [[nodiscard]] FeedbackCost cost() const {
    const double share = 1.0 / reset_every_;
    return {.inputs = 1 + 2 * share, .written = 1 + share, .server = 2 + 3 * share, .other = {6 - 3 * share, 2 - share}};
  }
  [[nodiscard]] bool resets(const RoundOrder& order) const { return order.round % reset_every_ == 0; }

  std::uint32_t reset_every_;
};

FL_REGISTER_PART(Feedback, Cser, CserOptions,
                 (PartInfo{"feedback", "cser", "error reset: clients compute at their own models, which are synchronised every few rounds",
                           "Xie, Zheng, Koyejo, Gupta, Li, Lin, NeurIPS 2020"}));

}  // namespace fl
