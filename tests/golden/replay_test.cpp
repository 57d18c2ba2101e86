// Tests that server and client hold the same numbers. After a thousand rounds the clients' states are rebuilt outside the program: from the
// bytes of their messages alone if the server could know the state (shifts, control variates, values last sent), and from messages and
// gradients if only the client can (errors, momenta). Rebuilt and stored state are equal bit for bit, in float32 and in float64; the
// server's means are the weighted means of the clients' states, up to rounding.
//
// Relative means relative to the largest entry of any client's state, because the mean itself goes to zero at the optimum.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "compressors/codec/codec.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "fl_core/ops/norms.hpp"
#include "tests/support/run_scenario.hpp"
#include "tests/support/run_text.hpp"

namespace fl {
namespace {

constexpr std::uint32_t kRounds = 1000;
constexpr std::size_t kBatch = 10;

template <class T>
using Rows = std::vector<std::vector<T>>;  // [N,P]

// One client's message, as its receiver reads it, and the client's data when it wrote the message.
template <class T>
struct Arrived {
  const ClientRound<T>& round;
  std::uint32_t client;
  Rows<T> sent;             // by channel: [P], zero where nothing was sent
  std::vector<bool> mask;   // [P] of the last channel: what was sent
  std::vector<T> gradient;  // g_i(w) on this round's sample
  T factor;                 // of the gradient in the compressor's input
};

// Rebuilt states by slot name: a rule moves them with every message.
template <class T>
class Mirror {
 public:
  Mirror(std::size_t N, std::size_t P) : N_(N), P_(P) {}
  Rows<T>& slot(const std::string& name) { return slots_.try_emplace(name, N_, std::vector<T>(P_, T(0))).first->second; }
  const std::map<std::string, Rows<T>>& slots() const { return slots_; }

 private:
  std::size_t N_, P_;
  std::map<std::string, Rows<T>> slots_;
};

template <class T>
using Rule = std::function<void(Mirror<T>&, const Arrived<T>&)>;

// A method: its scenario, the updates of its states, and the server slots that are means of client slots.
struct Method {
  std::string label;
  std::string keys;  // [local], [compressor.up] and [feedback.up]
  Rule<float> rule32;
  Rule<double> rule64;
  std::map<std::string, std::string> means;   // server slot -> client slot
  std::map<std::string, std::string> copies;  // shared slot -> server slot that it is a rounding of
  bool full_only = false;
};
void PrintTo(const Method& method, std::ostream* out) { *out << method.label; }

template <class T>
const Rule<T>& rule_of(const Method& method) {
  if constexpr (sizeof(T) == sizeof(float))
    return method.rule32;
  else
    return method.rule64;
}

// ---- rules -------------------------------------------------------------------------------------------------------------------

struct Nothing {
  template <class T>
  void operator()(Mirror<T>&, const Arrived<T>&) const {}
};

// x <- x + factor * c
struct Adds {
  std::string slot;
  std::size_t channel = 0;
  double factor = 1;
  template <class T>
  void operator()(Mirror<T>& mirror, const Arrived<T>& arrived) const {
    std::vector<T>& x = mirror.slot(slot)[arrived.client];
    for (std::size_t j = 0; j < x.size(); ++j) x[j] += static_cast<T>(factor) * arrived.sent[channel][j];
  }
};

// e <- e + u g - c
struct Ef14Rule {
  template <class T>
  void operator()(Mirror<T>& mirror, const Arrived<T>& arrived) const {
    std::vector<T>& e = mirror.slot("error")[arrived.client];
    for (std::size_t j = 0; j < e.size(); ++j) e[j] = e[j] + arrived.factor * arrived.gradient[j] - arrived.sent[0][j];
  }
};

// v <- (1-eta) v + eta g, the first v is g;  h <- h + c
struct Ef21MomentumRule {
  double eta = 1;
  template <class T>
  void operator()(Mirror<T>& mirror, const Arrived<T>& arrived) const {
    std::vector<T>& v = mirror.slot("momentum")[arrived.client];
    const bool first = mirror.slot("momentum started")[arrived.client][0] == T(0);
    mirror.slot("momentum started")[arrived.client][0] = T(1);
    const T share = static_cast<T>(eta), keep = T(1) - share;
    for (std::size_t j = 0; j < v.size(); ++j) v[j] = first ? arrived.gradient[j] : keep * v[j] + share * arrived.gradient[j];
    Adds{"shift"}(mirror, arrived);
  }
};

// e <- e + g - h - c;  h <- h + c
struct EControlRule {
  template <class T>
  void operator()(Mirror<T>& mirror, const Arrived<T>& arrived) const {
    std::vector<T>&e = mirror.slot("error")[arrived.client], &h = mirror.slot("shift")[arrived.client];
    for (std::size_t j = 0; j < e.size(); ++j) e[j] = e[j] + arrived.gradient[j] - h[j] - arrived.sent[0][j];
    Adds{"shift"}(mirror, arrived);
  }
};

// e <- e + gamma (g - h + h_mean) - v;  h <- h + alpha q
struct EcDianaRule {
  double alpha = 0;
  template <class T>
  void operator()(Mirror<T>& mirror, const Arrived<T>& arrived) const {
    std::vector<T>&e = mirror.slot("error")[arrived.client], &h = mirror.slot("shift")[arrived.client];
    const std::span<const T> mean = arrived.round.shared.slot("shift_mean");
    const T f = arrived.factor;
    for (std::size_t j = 0; j < e.size(); ++j) e[j] = e[j] + f * arrived.gradient[j] - f * h[j] + f * mean[j] - arrived.sent[1][j];
    Adds{"shift", 0, alpha}(mirror, arrived);
  }
};

// m <- m + u g - c, and m <- m - q in rounds of a reset; g at the client's own model w - m
struct CserRule {
  template <class T>
  void operator()(Mirror<T>& mirror, const Arrived<T>& arrived) const {
    std::vector<T>& m = mirror.slot("error")[arrived.client];
    for (std::size_t j = 0; j < m.size(); ++j) {
      m[j] = m[j] + (arrived.factor * arrived.gradient[j] - arrived.sent[0][j]);
      if (arrived.sent.size() > 1) m[j] -= arrived.sent[1][j];
    }
  }
};

// u <- mu u + g,  v <- v + u;  both are cleared where something was sent, or v <- v - c without masking
struct MomentumCorrectionRule {
  double mu = 0;
  bool masking = true;
  template <class T>
  void operator()(Mirror<T>& mirror, const Arrived<T>& arrived) const {
    std::vector<T>&u = mirror.slot("momentum")[arrived.client], &v = mirror.slot("accumulated")[arrived.client];
    for (std::size_t j = 0; j < u.size(); ++j) {
      u[j] = static_cast<T>(mu) * u[j] + arrived.factor * arrived.gradient[j];
      v[j] = v[j] + u[j];
      if (!masking)
        v[j] -= arrived.sent[0][j];
      else if (arrived.mask[j])
        u[j] = v[j] = T(0);
    }
  }
};

// ---- the run -----------------------------------------------------------------------------------------------------------------

std::string scenario_of(const Method& method, bool is_float, const std::string& participation, std::uint32_t rounds) {
  return "name = 'replay'\nrounds = " + std::to_string(rounds) + "\nprecision = '" + (is_float ? "float32" : "float64") +
         "'\n[data]\nname = 'mushrooms'\nrows = 400\n"
         "[partition]\nkind = 'dirichlet_client'\nalpha = 0.6\nclients = 8\n"
         "[model]\nkind = 'logistic_regression'\nl2 = 'L/100'\n[evaluate]\nevery = 1\n[participation]\n" +
         participation + "\n" + method.keys;
}

template <class T>
class Replay {
 public:
  Replay(const Method& method, const std::string& participation)
      : method_(method),
        run_(scenario_of(method, sizeof(T) == sizeof(float), participation, kRounds), {.threads = 1, .block = 3, .materialise = true}),
        pool_(1),
        oracle_(run_.problem().model(), run_.problem().shards(), sampling(), 1, kRounds),
        mirror_(run_.problem().shards().size(), run_.problem().P()) {
    run_->runner().set_tap([this](const ClientRound<T>& round, int phase, std::span<const ClientMessage<T>> messages, auto) {
      for (const ClientMessage<T>& message : messages)
        if (!message.refused) receive(round, phase, message.client, message.encoded);
    });
  }

  void play() {
    for (std::uint32_t r = 1; r <= kRounds; ++r) {
      estimate_.assign(run_.problem().P(), 0.0);
      run_.play(r, r);
    }
  }

  [[nodiscard]] Experiment<T>& experiment() { return *run_; }
  [[nodiscard]] const FederatedProblem<T>& problem() { return run_.problem(); }
  [[nodiscard]] const Mirror<T>& mirror() const { return mirror_; }
  [[nodiscard]] const std::vector<double>& mean_of_messages() const { return estimate_; }  // of the last round's last channel
  [[nodiscard]] const std::vector<double>& marina_estimator() const { return marina_; }
  [[nodiscard]] const std::vector<T>& last_reference() const { return reference_; }
  [[nodiscard]] std::uint64_t num_messages() const { return num_messages_; }
  [[nodiscard]] std::uint64_t num_silent() const { return num_silent_; }

 private:
  [[nodiscard]] SamplingOptions sampling() const {
    SamplingOptions options;
    if (method_.keys.find("batch = ") != std::string::npos) options.batch = kBatch;
    return options;
  }

  void receive(const ClientRound<T>& round, int phase, std::uint32_t client, std::span<const std::byte> bytes) {
    const auto& channels = run_->exchange().channels;
    std::size_t num_active = 0;  // the last channels may be silent by schedule
    while (num_active < channels.size() && channels[num_active].is_active(round.order.round)) ++num_active;
    std::vector<Payload<T>> payloads(num_active);
    std::vector<Payload<T>*> targets;
    std::vector<const Scope*> scopes;
    std::vector<std::size_t> lengths;
    std::vector<MessageLevels> known;
    CompressContext<T> own;
    own.round = round.order.round;
    own.steps = step_sizes(round.run, round.order.step_size);
    for (std::size_t c = 0; c < num_active; ++c) {
      known.push_back(channels[c].compressor->known_levels(own, channels[c].scope));
      targets.push_back(&payloads[c]);
      scopes.push_back(&channels[c].phase_scope[static_cast<std::size_t>(phase)]);
      lengths.push_back(channels[c].length(phase));
    }
    const auto read = codec::decode<T>(bytes, scopes, lengths, targets, known);
    ASSERT_TRUE(read.ok()) << read.error().reason;
    ++num_messages_;

    Arrived<T> arrived{round, client, {}, std::vector<bool>(round.P(), false), std::vector<T>(round.P()), round.input_factor()};
    for (std::size_t c = 0; c < num_active; ++c) {
      arrived.sent.emplace_back(round.P());
      write_dense(payloads[c], *scopes[c], arrived.sent[c].data());
    }
    const Payload<T>& last = payloads.back();
    num_silent_ += last.silent ? 1 : 0;
    if (last.positions == Positions::all) arrived.mask.assign(round.P(), !last.silent);
    for (std::size_t i = 0; last.positions == Positions::list && i < last.num_sent; ++i) arrived.mask[last.index[i]] = true;
    const BatchView<T> g{arrived.gradient.data(), nullptr, 1, round.P(), round.P()};
    std::vector<T> at(round.reference.begin(), round.reference.end());
    if (!round.run.offset_slot.empty())
      for (std::size_t j = 0; j < at.size(); ++j) at[j] -= mirror_.slot(round.run.offset_slot)[client][j];
    oracle_.gradient(pool_.exec(0), shared_view<const T>(at.data(), 1, round.P()), std::span(&client, 1), {.round = round.order.round}, g,
                     nullptr);
    rule_of<T>(method_)(mirror_, arrived);
    sum_up(arrived);
  }

  // Computes the server's result of a round without memory, and MARINA's estimator.
  void sum_up(const Arrived<T>& arrived) {
    const auto& cohort = arrived.round.order.cohort;
    const auto position = static_cast<std::size_t>(std::find(cohort.begin(), cohort.end(), arrived.client) - cohort.begin());
    const double weight = run_->round().plan().cohort_weight[position];
    const std::size_t model = run_->exchange().channels.front().name == "model" ? 0 : arrived.sent.size() - 1;
    if (marina_.empty() || (position == 0 && arrived.round.order.coin)) marina_.assign(arrived.round.P(), 0.0);
    for (std::size_t j = 0; j < arrived.round.P(); ++j) {
      const double c = weight * static_cast<double>(arrived.sent[model][j]);
      estimate_[j] += c;
      marina_[j] += c;
    }
    reference_.assign(arrived.round.reference.begin(), arrived.round.reference.end());
  }

  const Method& method_;
  test::OneRun<T> run_;
  ThreadPool pool_;
  GradientOracle<T> oracle_;
  Mirror<T> mirror_;
  std::vector<double> estimate_, marina_;  // [P]
  std::vector<T> reference_;               // [P]
  std::uint64_t num_messages_ = 0, num_silent_ = 0;
};

// The largest Euclidean norm of a client's vector.
template <class T>
double largest(const Rows<T>& rows) {
  double most = 0;
  for (const auto& row : rows) most = std::max(most, std::sqrt(sum_of_squares(row.data(), row.size())));
  return most;
}

// |value - expected| <= tolerance * scale, in the Euclidean norm.
template <class A>
void expect_near(std::span<const A> value, const std::vector<double>& expected, double tolerance, double scale, const std::string& what) {
  ASSERT_EQ(value.size(), expected.size()) << what;
  double square = 0;
  for (std::size_t j = 0; j < expected.size(); ++j)
    square += (static_cast<double>(value[j]) - expected[j]) * (static_cast<double>(value[j]) - expected[j]);
  EXPECT_LE(std::sqrt(square), tolerance * scale) << what << ": relative " << std::sqrt(square) / scale;
}

template <class T>
void expect_states_equal(Replay<T>& replay) {
  for (const auto& [name, rows] : replay.mirror().slots()) {
    if (!replay.experiment().clients().has_slot(name)) continue;
    EXPECT_GT(largest(rows), 0.0) << name << " never moved";
    for (std::uint32_t i = 0; i < rows.size(); ++i) {
      const std::span<const T> stored = replay.experiment().clients().of_client(name, i);
      EXPECT_EQ(std::memcmp(stored.data(), rows[i].data(), stored.size_bytes()), 0) << name << " of client " << i;
    }
  }
}

template <class T>
void expect_means_equal(Replay<T>& replay, const Method& method) {
  const double tolerance = sizeof(T) == sizeof(float) ? 1e-5 : 1e-12;
  const std::vector<double>& weights = replay.problem().weights();
  ServerState<T>& state = replay.experiment().state();
  for (const auto& [server, client] : method.means) {
    const Rows<T>& rows = replay.mirror().slots().at(client);
    std::vector<double> mean(replay.problem().P(), 0.0);
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (std::size_t j = 0; j < mean.size(); ++j) mean[j] += weights[i] * static_cast<double>(rows[i][j]);
    expect_near(std::span<const double>(state.slot(server)), mean, tolerance, largest(rows), server);
  }
  for (const auto& [cohort, server] : method.copies) {
    const std::span<const double> exact = state.slot(server);
    const std::span<const T> held = replay.experiment().shared().slot(cohort);
    for (std::size_t j = 0; j < held.size(); ++j) EXPECT_EQ(held[j], static_cast<T>(exact[j])) << cohort << " [" << j << "]";
  }
}

template <class T>
void check(const Method& method, const std::string& participation) {
  Replay<T> replay(method, participation);
  replay.play();
  ASSERT_FALSE(testing::Test::HasFatalFailure());
  const auto members = static_cast<std::uint64_t>(replay.experiment().round().plan().cohort.size());
  EXPECT_EQ(replay.num_messages(), members * kRounds);
  for (const T x : replay.experiment().model()) ASSERT_TRUE(std::isfinite(x));
  expect_states_equal(replay);
  expect_means_equal(replay, method);

  const double tolerance = sizeof(T) == sizeof(float) ? 1e-5 : 1e-12;
  const std::span<const double> estimate = replay.experiment().round().estimate();
  const double scale = std::sqrt(sum_of_squares(estimate.data(), estimate.size()));
  EXPECT_GT(scale, 0.0);
  if (method.label == "marina") {
    ServerState<T>& state = replay.experiment().state();
    expect_near(std::span<const double>(state.slot("estimator")), replay.marina_estimator(), tolerance, scale, "estimator");
    const std::span<const T> previous = replay.experiment().shared().slot("previous_model");
    EXPECT_EQ(std::memcmp(previous.data(), replay.last_reference().data(), previous.size_bytes()), 0);
  } else if (method.means.empty() || method.label == "scaffold" || method.label == "ec_diana") {
    expect_near(estimate, replay.mean_of_messages(), 1e-12, scale, "estimate");
  }
  if (method.label == "lag") {
    EXPECT_GT(replay.num_silent(), 0u);
    EXPECT_LT(replay.num_silent(), replay.num_messages());
  }
}

std::string local(const std::string& kind, const std::string& more = "", const std::string& learning_rate = "0.1/L") {
  return "[local]\nkind = '" + kind + "'\nlearning_rate = '" + learning_rate + "'\n" + more + "\n";
}
std::string up(const std::string& kind, const std::string& unit, const std::string& more) {
  return "[compressor.up]\nkind = '" + kind + "'\nunit = '" + unit + "'\n" + more + "\n";
}
std::string feedback(const std::string& kind, const std::string& more = "") {
  return "[feedback.up]\nkind = '" + kind + "'\n" + more + "\n";
}

template <class R>
Method method(const std::string& label, const std::string& keys, const R& rule, std::map<std::string, std::string> means = {},
              std::map<std::string, std::string> copies = {}) {
  return {label, keys, Rule<float>(rule), Rule<double>(rule), std::move(means), std::move(copies)};
}

std::vector<Method> methods() {
  const std::string gradient = local("gradient"), minibatch = local("gradient", "batch = " + std::to_string(kBatch));
  const std::string top = "k = 6", top_fp16 = "k = 6\nvalue_format = 'fp16'";
  std::vector<Method> all = {
      method("none", gradient + up("qsgd", "gradient", "levels = 15") + feedback("none"), Nothing{}),
      method("ef14", gradient + up("top_k", "step", top) + feedback("ef14"), Ef14Rule{}),
      method("ef14_fp16", minibatch + up("top_k", "step", top_fp16) + feedback("ef14"), Ef14Rule{}),
      method("ef14_sign", gradient + up("ef_sign", "gradient", "") + feedback("ef14"), Ef14Rule{}),
      method("ef21", gradient + up("top_k", "gradient", top) + feedback("ef21"), Adds{"shift"}, {{"shift_mean", "shift"}}),
      method("ef21_fp16", minibatch + up("top_k", "gradient", top_fp16) + feedback("ef21"), Adds{"shift"}, {{"shift_mean", "shift"}}),
      method("ef21_dense_start", gradient + up("hard_threshold", "gradient", "threshold = 1e-3") + feedback("ef21", "init = 'dense'"),
             Adds{"shift"}, {{"shift_mean", "shift"}}),
      method("ef21_momentum", minibatch + up("top_k", "gradient", top) + feedback("ef21", "momentum = 0.2"), Ef21MomentumRule{0.2},
             {{"shift_mean", "shift"}}),
      method("diana", minibatch + up("random_k", "gradient", "k = 12\nscaled = true") + feedback("diana", "alpha = 0.1"),
             Adds{"shift", 0, 0.1}, {{"shift_mean", "shift"}}),
      method("diana_natural", local("gradient", "", "1/L") + up("natural", "gradient", "") + feedback("diana", "alpha = 0.7"),
             Adds{"shift", 0, 0.7}, {{"shift_mean", "shift"}}),
      method("ef_bv", gradient + up("random_k", "gradient", "k = 12") + feedback("ef_bv", "lambda = 0.3\nnu = 0.6"), Adds{"shift", 0, 0.3},
             {{"shift_mean", "shift"}}),
      method("econtrol", minibatch + up("top_k", "gradient", top) + feedback("econtrol", "eta = 0.1"), EControlRule{},
             {{"shift_mean", "shift"}}),
      method(
          "ec_diana",
          gradient + up("top_k", "step", top) + "[compressor.up.shift]\nkind = 'qsgd'\nlevels = 31\n" + feedback("ec_diana", "alpha = 0.2"),
          EcDianaRule{0.2}, {{"shift_sum", "shift"}}, {{"shift_mean", "shift_sum"}}),
      method(
          "marina",
          local("gradient_difference", "batch = 10") + up("random_k", "gradient", "k = 12\nscaled = true") + feedback("marina", "p = 0.1"),
          Nothing{}),
      method("scaffold", local("scaffold", "steps = 2\nbatch = 10") + up("identity", "update", "") + feedback("scaffold"),
             Adds{"control", 1}, {{"control_sum", "control"}}, {{"control_mean", "control_sum"}}),
      method("scaffold_fp16", local("scaffold", "steps = 2") + up("identity", "update", "format = 'fp16'") + feedback("scaffold"),
             Adds{"control", 1}, {{"control_sum", "control"}}, {{"control_mean", "control_sum"}}),
      method("feddyn", local("feddyn", "steps = 2\nbatch = 10\nalpha = 0.1") + up("top_k", "update", top_fp16) + feedback("feddyn"),
             Adds{"moved"}, {{"moved_sum", "moved"}}),
      method("mime_lite", local("mime_lite", "steps = 2\nbatch = 10") + up("top_k", "update", top) + feedback("mime_lite"), Nothing{}),
      method("cser",
             minibatch + up("top_k", "step", top) +
                 "[compressor.up.reset]\nkind = 'top_k'\nk = 20\nvalue_format = 'fp16'\nunit = 'step'\n" +
                 feedback("cser", "reset_every = 7"),
             CserRule{}),
      method("lag", gradient + up("identity", "gradient", "") + feedback("lag", "xi = 0.1"), Adds{"last_sent"},
             {{"gradient_sum", "last_sent"}}),
      method("momentum_correction", minibatch + up("top_k", "gradient", top) + feedback("momentum_correction", "momentum = 0.5"),
             MomentumCorrectionRule{0.5, true}),
      method("momentum_correction_unmasked",
             gradient + up("top_k", "step", top_fp16) + feedback("momentum_correction", "momentum = 0.5\nmasking = false"),
             MomentumCorrectionRule{0.5, false}),
  };
  for (Method& m : all) m.full_only = m.label == "marina" || m.label == "ef21_dense_start";
  return all;
}

class ReplayFromMessages : public testing::TestWithParam<Method> {};

TEST_P(ReplayFromMessages, FullParticipationFloat64) { check<double>(GetParam(), "kind = 'full'"); }
TEST_P(ReplayFromMessages, FullParticipationFloat32) { check<float>(GetParam(), "kind = 'full'"); }
TEST_P(ReplayFromMessages, SampledClients) {
  if (GetParam().full_only) {
    EXPECT_THROW((Replay<double>(GetParam(), "kind = 'uniform'\nclients = 3")), ConfigError);
    return;
  }
  check<double>(GetParam(), "kind = 'uniform'\nclients = 3");
  check<float>(GetParam(), "kind = 'uniform'\nclients = 3\nestimate = 'unbiased'");
}

// Decoded messages in the place of those that never were bytes: the same model and the same rows.
TEST_P(ReplayFromMessages, MaterialisingChangesNoByte) {
  for (const bool is_float : {true, false}) {
    const std::string text = scenario_of(GetParam(), is_float, "kind = 'full'", 100);
    const RunResult counted = test::run_text(text).at(0), encoded = test::run_text(text, {.materialise = true}).at(0);
    EXPECT_EQ(counted.record.checksum, encoded.record.checksum);
    ASSERT_EQ(counted.rows.size(), encoded.rows.size());
    for (std::size_t r = 0; r < counted.rows.size(); ++r) ASSERT_TRUE(same_bits(counted.rows[r], encoded.rows[r])) << "round " << r;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryMethod, ReplayFromMessages, testing::ValuesIn(methods()), [](const auto& one) { return one.param.label; });

}  // namespace
}  // namespace fl
