// 3PC, three point compressors: C_{h,y}(x) compresses the gradient x, given the last gradient y and its last known estimate h. One rule
// covers EF21, lazy aggregation and methods between them.
//
//   client  h_new = C_{h,y}(x),  sends the messages that determine it
//   server  estimate = h_mean + mean (h_new - h),  h_mean <- h_mean + mean_w (h_new - h)      estimate = "cohort"
//           h_mean <- h_mean + mean_w (h_new - h),  estimate = h_mean                         estimate = "shifts"
//
//   ef21    h + C(x - h)
//   lag     x if |x - h|^2 > zeta |x - y|^2, else h (silent); C = identity
//   clag    h + C(x - h) if |x - h|^2 > zeta |x - y|^2, else h (silent)
//   v2      b + C(x - b),  b = h + Q(x - y);  channel "drift" is Q, unbiased
//   v4      b + C(x - b),  b = h + C2(x - h);  channel "first" is C2
//   v5      x with probability p, one coin for all, else h + C(x - y): a biased MARINA
//   adacgd  h if |x - h|^2 <= zeta |x - y|^2, else h + C_j(x - h) with the first j that brings |h_new - x|^2 below zeta |x - y|^2, the
//           last if none does;  channels "level1", "level2" .. and "model", the finest
//
// With all clients both estimates are the mean of all h_i, as published. Under partial participation "cohort" uses the changes of the
// clients present in place of all changes; "shifts" steps along the server's mean, in which absent clients are unchanged.
// All satisfy |h_new - x|^2 <= (1 - A)|h - y|^2 + B |x - y|^2. [compressor.up] is C and applies to all channels without their own operator.
// After a message that was all of x - h, the client holds x but for rounding, which both sides have alike. Until the gradient changes, the
// triggers then measure |x - h| from the gradient that was sent: at zeta = 1 the next round is a tie, which rounding must not decide. One
// number per client, "holds_last", says so.
// A client's first message is always sent; y = h = 0 before it. 3PCv1 and v3 are not implemented: v1 sends a dense y, v3 nests another 3PC.
// unit "gradient". C, C2, C_j are contractions or absolute. h_i, y_i [N,P] are kept while a client is absent.
// LAG's own trigger, by the model's movement, is feedback "lag".
// Sources: P. Richtarik, I. Sokolov, I. Fatkhullin, E. Gasanov, Z. Li, E. Gorbunov, "3PC: three point compressors for
// communication-efficient distributed training and a better theory for lazy aggregation", ICML 2022; M. Makarenko, E. Gasanov, R. Islamov,
// A. Sadiev, P. Richtarik, "Adaptive compression for communication-efficient distributed training", 2022 (AdaCGD).
#include <algorithm>
#include <cmath>
#include <optional>

#include "compressors/feedback/feedback.hpp"
#include "fl_core/config/aliases.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "fl_core/ops/norms.hpp"

namespace fl {

struct ThreePcOptions {
  enum class Variant { ef21, lag, clag, v2, v4, v5, adacgd } variant = Variant::clag;
  double zeta = 1;
  double p = 0.1;
  std::int64_t levels = 3;
  enum class Estimate { cohort, shifts } estimate = Estimate::cohort;
};
inline void describe(Schema& s, ThreePcOptions& o) {
  using Variant = ThreePcOptions::Variant;
  s.choice("variant", o.variant,
           {{Variant::ef21, "ef21"},
            {Variant::lag, "lag"},
            {Variant::clag, "clag"},
            {Variant::v2, "v2"},
            {Variant::v4, "v4"},
            {Variant::v5, "v5"},
            {Variant::adacgd, "adacgd"}},
           "the three point compressor");
  s.field("zeta", o.zeta, "weight of the gradient's last change in the trigger (lag, clag, adacgd)").at_least(0);
  s.field("p", o.p, "probability of a round with uncompressed gradients (v5)").above(0).at_most(1);
  s.field("levels", o.levels, "number of operators to choose from (adacgd)").at_least(2).at_most(16);
  using E = ThreePcOptions::Estimate;
  s.choice("estimate", o.estimate, {{E::cohort, "cohort"}, {E::shifts, "shifts"}},
           "direction of the server's step: h_mean before the round plus the cohort's mean change, or h_mean after it");
}

template <class T>
class ThreePc final : public Feedback<T> {
 public:
  explicit ThreePc(const ThreePcOptions& o) : options_(o) {}

  // The spare buffer of "shift" holds b.
  [[nodiscard]] FeedbackPlan plan() const override {
    FeedbackPlan plan{.slots = {{.name = "shift", .owner = SlotOwner::client, .double_buffered = has_two_stages()},
                                {.name = "last_gradient", .owner = SlotOwner::client, .double_buffered = true},
                                {.name = "shift_mean", .owner = SlotOwner::server}},
                      .in_place_slot = "last_gradient",
                      .means = {{.slot = "shift", .held_in = "shift_mean"}},
                      .host_walks = "computes the vector that every client keeps"};
    if (has_trigger()) plan.slots.push_back({.name = "holds_last", .owner = SlotOwner::client, .double_buffered = true, .length = 1});
    for (std::int64_t level = 1; level < num_levels(); ++level) plan.channels.push_back({.name = "level" + std::to_string(level)});
    if (is(Variant::v2)) plan.channels.push_back({.name = "drift"});
    if (is(Variant::v4)) plan.channels.push_back({.name = "first"});
    plan.channels.push_back({.name = "model"});
    for (std::size_t c = 0; c < plan.channels.size(); ++c) plan.moves.push_back({.slot = "shift", .channel = c});
    plan.cost = cost_of(static_cast<double>(plan.channels.size()));
    return plan;
  }

  [[nodiscard]] FeedbackNeeds needs() const override {
    FeedbackNeeds needs{.name = "three_pc",
                        .one_vector = true,
                        .units = {Unit::gradient},
                        .units_why = "compresses gradients",
                        .own_messages = true,
                        .operators = {{.is = OperatorClass::contraction}}};
    if (is(Variant::v2)) needs.operators.push_back({.is = OperatorClass::unbiased, .channel = "drift"});
    if (is(Variant::lag)) needs.operators = {{.kind = "identity", .instead = "its variant \"clag\" compresses them"}};
    return needs;
  }

  [[nodiscard]] TheoryStep theory_step_size(const TheoryFacts& facts) const override {
    if (const std::string why = theory::unmet(facts, theory::Gradients::full); !why.empty()) return TheoryStep::none(why);
    const std::optional<theory::ThreePoints> points = three_points(facts.contracts);
    if (!points) return TheoryStep::none("the theorem needs contractions, operators with a constant delta such as top_k");
    return TheoryStep::of(theory::three_point_step(facts, points->A, points->B), "3PC, Richtarik et al. 2022");
  }

  [[nodiscard]] bool toss(const RunSettings& run, std::uint32_t round) const override {
    if (!is(Variant::v5)) return false;
    const RandomStream stream(hash64(run.seeds.compressor, static_cast<std::uint64_t>(Purpose::coin)), 0, round);
    return round == 1 || stream.template uniform<double>(0) < options_.p;
  }

  [[nodiscard]] Send<T> prepare(const Exec&, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t channel) const override {
    Send<T> send;
    send.input.add(T(1), block.vectors[0]);
    const bool takes_off_gradient = (is(Variant::v2) && channel == 0) || (is(Variant::v5) && !round.order.coin);
    if (takes_off_gradient)
      send.input.add(T(-1), block.stored(round.state, "last_gradient"));
    else if (has_two_stages() && channel == 1)
      send.input.add(T(-1), block.shadow(round.state, "shift"));
    else
      send.input.add(T(-1), block.stored(round.state, "shift"));
    send.dense = round.order.coin && is(Variant::v5);
    return send;
  }

  void after_compress(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block, std::size_t channel, const Send<T>&,
                      const Exchange<T>& exchange) const override {
    for (std::uint32_t k = 0; k < block.K; ++k) {
      if (has_two_stages() && channel == 0) keep_stage(round, block, k, exchange);
      if (has_trigger() && !sends_now(exec, round, block, k, channel, exchange)) silence(*block.messages[channel][k]);
    }
  }

  void acknowledge(const ClientRound<T>& round, const ClientBlock<T>& block, std::uint32_t k, const Exchange<T>&) const override {
    round.state.swap("last_gradient", block.first + k);
    if (has_trigger()) round.state.swap("holds_last", block.first + k);
  }

  void receive(const ServerRound<T>& round, std::span<const Aggregate> aggregates, std::span<double> estimate) const override {
    const std::span<double> mean = round.state.slot("shift_mean");
    std::copy(mean.begin(), mean.end(), estimate.begin());
    for (const Aggregate& aggregate : aggregates)
      for (std::size_t j = 0; j < mean.size(); ++j) {
        estimate[j] += aggregate.estimate[j];
        mean[j] += aggregate.population[j];
      }
    if (options_.estimate == ThreePcOptions::Estimate::shifts) std::copy(mean.begin(), mean.end(), estimate.begin());
  }

 private:
  using Variant = ThreePcOptions::Variant;
  [[nodiscard]] bool is(Variant variant) const { return options_.variant == variant; }
  // Two stages copy the shift and add the first message. A trigger takes two distances, and the error of each message until one is sent.
  [[nodiscard]] FeedbackCost cost_of(double channels) const {
    FeedbackCost cost{.inputs = 2 * channels, .moved = channels, .server = 2 + 5 * channels};
    if (has_two_stages()) cost.other += {.passes = 4, .operations = 1};
    if (has_trigger()) cost.other += {.passes = 8 + 4 * channels, .operations = 6 + 4 * channels};
    return cost;
  }
  [[nodiscard]] bool has_two_stages() const { return is(Variant::v2) || is(Variant::v4); }
  [[nodiscard]] bool has_trigger() const { return is(Variant::lag) || is(Variant::clag) || is(Variant::adacgd); }
  // Returns A and B of the source's table 1. AdaCGD is CLAG with the finest operator: the others are used only if the trigger's bound
  // holds.
  [[nodiscard]] std::optional<theory::ThreePoints> three_points(const std::vector<Contract>& contracts) const {
    if (is(Variant::lag)) return theory::ThreePoints{1, options_.zeta};
    const std::optional<double> delta = theory::contraction(contracts.back());
    if (!delta) return std::nullopt;
    if (is(Variant::v2)) return theory::ThreePoints{*delta, (1 - *delta) * contracts.front().omega.value_or(0)};
    if (is(Variant::v4)) {
      const std::optional<double> first = theory::contraction(contracts.front());
      if (!first) return std::nullopt;
      return theory::ef21_points(1 - (1 - *first) * (1 - *delta));
    }
    if (is(Variant::v5)) {
      const double A = 1 - std::sqrt(1 - options_.p);
      return theory::ThreePoints{A, (1 - options_.p) * (1 - *delta) / A};
    }
    theory::ThreePoints points = theory::ef21_points(*delta);
    if (has_trigger()) points.B = std::max(points.B, options_.zeta);
    return points;
  }
  [[nodiscard]] std::int64_t num_levels() const { return is(Variant::adacgd) ? options_.levels : 1; }

  // Computes b = h + the first message.
  static void keep_stage(const ClientRound<T>& round, const ClientBlock<T>& block, std::uint32_t k, const Exchange<T>& exchange) {
    T* b = block.shadow(round.state, "shift").row(k);
    std::copy_n(block.stored(round.state, "shift").row(k), round.P(), b);
    add_scaled(*block.messages[0][k], exchange.channels[0].scope, T(1), b);
  }

  // Returns whether client k sends this channel's message, and writes whether it then holds the gradient that is the last one in its next
  // round.
  [[nodiscard]] bool sends_now(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block, std::uint32_t k,
                               std::size_t channel, const Exchange<T>& exchange) const {
    const bool is_finest = channel + 1 == block.messages.size();
    for (std::size_t c = 0; c < channel; ++c)
      if (!block.messages[c][k]->silent) return false;
    Workspace::Frame frame(*exec.workspace);
    T* room = frame.take<T>(round.P());
    const T* x = block.vectors[0].row(k);
    const bool is_first = round.state.acknowledged(block.clients[k]) == 0;
    const bool held_last = !is_first && block.stored(round.state, "holds_last").row(k)[0] != T(0);
    T& holds_now = block.shadow(round.state, "holds_last").row(k)[0];
    const double moved = distance_sq(x, block.stored(round.state, "last_gradient").row(k), round.P(), room);
    const double bound = options_.zeta * moved;
    double change = distance_sq(x, block.stored(round.state, "shift").row(k), round.P(), room);  // room = x - h
    if (held_last) change = moved;
    holds_now = held_last && moved == 0 ? T(1) : T(0);
    if (!is_first && change <= bound) return false;
    add_scaled(*block.messages[channel][k], exchange.channels[channel].scope, T(-1), room);
    const double left = sum_of_squares(room, round.P());
    if (!is_finest && left > bound) return false;
    holds_now = left == 0 ? T(1) : T(0);
    return true;
  }

  // Returns |x - y|^2 and writes x - y to `room`.
  static double distance_sq(const T* x, const T* y, std::size_t P, T* room) {
    for (std::size_t j = 0; j < P; ++j) room[j] = x[j] - y[j];
    return sum_of_squares(room, P);
  }
  static void silence(Payload<T>& message) {
    message.clear(message.length);
    message.silent = true;
  }

  ThreePcOptions options_;
};

FL_REGISTER_PART(Feedback, ThreePc, ThreePcOptions,
                 (PartInfo{"feedback", "three_pc", "three point compressors: EF21, lazy aggregation and methods between them",
                           "Richtarik, Sokolov, Fatkhullin, Gasanov, Li, Gorbunov, ICML 2022; Makarenko et al., 2022"}));

const bool kClag =
    add_alias({"feedback", "clag", "three_pc", {{"variant", Value{std::string("clag")}}}, "", "Richtarik et al., ICML 2022"});
const bool kAdaCgd =
    add_alias({"feedback", "adacgd", "three_pc", {{"variant", Value{std::string("adacgd")}}}, "", "Makarenko et al., 2022"});

}  // namespace fl
