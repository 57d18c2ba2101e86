// Signum: the client compresses a momentum of its gradients, and keeps no other state.
//
//   client  m <- beta m + (1 - beta) g,  c = C(u m)          server  estimate = sum_i weight_i c_i           u: 1, or gamma in a step
//
// With compressor "sign" and server kind "sign_sgd" it is Signum with majority vote, from m = 0 as published. Any other operator may be
// used: its error is lost, as with feedback "none". m [N,P] is kept while a client is absent.
// Source: J. Bernstein, Y.-X. Wang, K. Azizzadenesheli, A. Anandkumar, "signSGD: Compressed optimisation for non-convex problems", ICML
// 2018.
#include <algorithm>

#include "compressors/feedback/feedback.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct SignumOptions {
  double momentum = 0.9;
};
inline void describe(Schema& s, SignumOptions& o) {
  s.field("momentum", o.momentum, "beta of m <- beta m + (1 - beta) g").at_least(0).below(1);
}

template <class T>
class Signum final : public Feedback<T> {
 public:
  explicit Signum(const SignumOptions& o) : momentum_(o.momentum) {}

  [[nodiscard]] FeedbackPlan plan() const override {
    return {.slots = {{.name = "momentum", .owner = SlotOwner::client, .double_buffered = true}},
            .in_place_slot = "momentum",
            .host_walks = "adds every gradient to its client's momentum",
            .cost = FeedbackCost{.inputs = 1, .server = 2, .other = {.passes = 3, .operations = 3}}};
  }

  [[nodiscard]] FeedbackNeeds needs() const override { return {.name = "signum", .one_vector = true, .keeps_error = false}; }

  [[nodiscard]] Send<T> prepare(const Exec&, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t) const override {
    const BatchView<T> stored = block.stored(round.state, "momentum");
    const T beta = static_cast<T>(momentum_), rest = static_cast<T>(1 - momentum_);
    for (std::uint32_t k = 0; k < block.K; ++k) {
      const T* m = stored.row(k);
      T* g = block.vectors[0].row(k);
      for (std::size_t j = 0; j < round.P(); ++j) g[j] = beta * m[j] + rest * g[j];
    }
    Send<T> send;
    send.input.add(round.input_factor(), block.vectors[0]);
    return send;
  }
  void acknowledge(const ClientRound<T>& round, const ClientBlock<T>& block, std::uint32_t k, const Exchange<T>&) const override {
    round.state.swap("momentum", block.first + k);
  }
  void receive(const ServerRound<T>&, std::span<const Aggregate> aggregates, std::span<double> estimate) const override {
    std::copy(aggregates[0].estimate.begin(), aggregates[0].estimate.end(), estimate.begin());
  }

 private:
  double momentum_;
};

FL_REGISTER_PART(Feedback, Signum, SignumOptions,
                 (PartInfo{"feedback", "signum", "a momentum of the gradient is compressed; with sign and sign_sgd it is Signum",
                           "Bernstein, Wang, Azizzadenesheli, Anandkumar, signSGD, ICML 2018"}));

}  // namespace fl
