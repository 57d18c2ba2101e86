// Power-EF: error feedback with fast compressed communication, which compresses the remaining error p times, and a perturbation of
// gradients.
//
//   client  e_0 = e + u (g + xi),  c_s = C(e_{s-1}),  e_s = e_{s-1} - c_s  for s = 1 .. p,  e <- e_p        sends c_1 .. c_p
//   server  estimate = sum_i weight_i (c_1 + .. + c_p)
// FCC_p(v) = c_1 + .. + c_p is a contraction with 1 - (1 - delta)^p; for Top-k it is Top-pk. xi ~ N(0, r^2/P I), P the number of weights,
// is the same for all clients, drawn from the run's seed, and leads away from saddle points; r = 0: no perturbation. p = 1 and r = 0 are
// ef14. Each c_s has a channel: "model" is c_1, then "power2" .. ; each channel may have its own operator, and [compressor.up] applies to
// the others.
// C is a contraction or absolute; any unit. e [N,P] is kept while a client is absent.
// Source: S. Chen, Z. Li, Y. Chi, "Escaping saddle points in heterogeneous federated learning via distributed SGD with communication
// compression", AISTATS 2024. The complete recursion was not available: this method joins the named parts (FCC, error feedback,
// perturbation) by EF14's memory. Tests check FCC of Top-k and the case p = 1.
#include <cmath>

#include "compressors/feedback/error_memory.hpp"
#include "fl_core/config/differences.hpp"
#include "fl_core/config/registry.hpp"

namespace fl {

struct PowerEfOptions {
  std::int64_t steps = 2;
  double perturbation = 0;
};
inline void describe(Schema& s, PowerEfOptions& o) {
  s.field("steps", o.steps, "p: number of compressions in a round, each of the error of the previous one; 1 = ef14")
      .at_least(1)
      .at_most(16);
  s.field("perturbation", o.perturbation, "r: approximate norm of the noise that is added to gradients; 0 = none").at_least(0);
}

template <class T>
class PowerEf final : public ErrorMemory<T> {
 public:
  explicit PowerEf(const PowerEfOptions& o) : ErrorMemory<T>("power_ef"), steps_(o.steps), radius_(o.perturbation) {}

  [[nodiscard]] FeedbackPlan plan() const override {
    FeedbackPlan plan = ErrorMemory<T>::plan();
    plan.channels = {{.name = "model"}};
    for (std::int64_t s = 2; s <= steps_; ++s) plan.channels.push_back({.name = "power" + std::to_string(s)});
    plan.host_walks = radius_ > 0 ? "adds the perturbation to every gradient" : "";
    const auto channels = static_cast<double>(steps_);
    plan.cost = FeedbackCost{.inputs = 1 + channels, .written = channels, .server = 1 + 3 * channels};
    // A normal number takes two random ones, a logarithm, a root and a cosine.
    if (radius_ > 0) plan.cost->other = {.passes = 4, .operations = 2 * kRandomOperations + 2 * kFunctionOperations + 4};
    return plan;
  }
  [[nodiscard]] FeedbackNeeds needs() const override {
    FeedbackNeeds needs = ErrorMemory<T>::needs();
    needs.own_messages = true;
    return needs;
  }
  [[nodiscard]] TheoryStep theory_step_size(const TheoryFacts& facts) const override {
    if (radius_ > 0) return TheoryStep::none("no theorem on the step size of power_ef with perturbed gradients is implemented");
    return theory::error_feedback(facts);
  }

  // Each channel overwrites the local vector with its residual, which the next channel compresses.
  [[nodiscard]] Send<T> prepare(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block,
                                std::size_t channel) const override {
    if (channel == 0 && radius_ > 0) perturb(exec, round, block);
    Send<T> send;
    if (channel == 0)
      send.input.add(T(1), block.stored(round.state, "error")).add(round.input_factor(), block.vectors[0]);
    else
      send.input.add(T(1), block.vectors[0]);
    send.state = {StateRule::residual, block.vectors[0]};
    return send;
  }
  void receive(const ServerRound<T>&, std::span<const Aggregate> aggregates, std::span<double> estimate) const override {
    std::fill(estimate.begin(), estimate.end(), 0.0);
    for (const Aggregate& aggregate : aggregates)
      for (std::size_t j = 0; j < estimate.size(); ++j) estimate[j] += aggregate.estimate[j];
  }

 private:
  // Computes g <- g + xi, with the same xi for every client of the round.
  void perturb(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block) const {
    constexpr std::uint32_t kNoise = 1;  // distinct from the coin of a round
    Workspace::Frame frame(*exec.workspace);
    T* xi = frame.take<T>(round.P());
    const double scale = radius_ / std::sqrt(static_cast<double>(round.P() - round.run.kinds.num_unshared()));
    RandomSequence random(
        RandomStream(hash64(round.run.seeds.compressor, static_cast<std::uint64_t>(Purpose::coin)), 0, round.order.round, kNoise));
    for (std::size_t j = 0; j < round.P(); ++j) xi[j] = static_cast<T>(scale * random.normal());
    clear_ranges(round.run.kinds.unshared, xi);
    for (std::uint32_t k = 0; k < block.K; ++k) {
      T* g = block.vectors[0].row(k);
      for (std::size_t j = 0; j < round.P(); ++j) g[j] += xi[j];
    }
  }

  std::int64_t steps_;
  double radius_;
};

FL_REGISTER_PART(Feedback, PowerEf, PowerEfOptions,
                 (PartInfo{"feedback", "power_ef", "error feedback that compresses the remaining error again, p times; perturbed gradients",
                           "Chen, Li, Chi, AISTATS 2024"}));
const bool kPowerEfDiffers = add_difference({"feedback", "power_ef",
                                             "the whole recursion of the publication was not at hand; here its repeated compression and "
                                             "its perturbation are joined by EF14's memory"});

}  // namespace fl
