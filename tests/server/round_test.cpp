// Tests the parts of a round other than its exchange: averages, the memory of absent clients, rounds without clients.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "clients/host/absence.hpp"
#include "server/absent_memory.hpp"
#include "tests/support/plain_loop.hpp"
#include "tests/support/run_scenario.hpp"
#include "tests/support/run_text.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

using test::OneRun;
using test::ScenarioText;
using test::Vector;

std::vector<double> model_after(const ScenarioText& s, std::uint32_t rounds) {
  OneRun<double> run(s.str());
  run.play(1, rounds);
  return run.model();
}

// ---- times ----

TEST(RoundTest, TimesAreNamedWhereTheyAreAskedForAndChangeNothing) {
  const ScenarioText s = test::uneven_quadratics();
  for (const int threads : {1, 2}) {
    RoundTimes times;
    OneRun<double> timed(s.str(), {.threads = threads, .times = &times});
    const RunResult result = timed->run({});
    EXPECT_EQ(times.rounds, result.record.rounds);
    EXPECT_GT(times.train_s, 0);
    EXPECT_GT(times.compress_s, 0);
    EXPECT_GT(times.aggregate_s, 0);
    EXPECT_GT(times.evaluate_s, 0);
    EXPECT_GE(times.waiting_s(threads), 0) << "clients' work lies inside the exchange";
    EXPECT_GE(times.rest_s(), 0) << "what is named lies inside the rounds";
    OneRun<double> plain(s.str(), {.threads = threads});
    EXPECT_EQ(plain->run({}).record.checksum, result.record.checksum);
  }
}

// ---- averages ----

// FedNova on clients of 3, 3, 3 and 2 rows that take one step per row: x <- x - tau_eff sum_i w_i (x - y_i) / |a_i|_1.
struct LocalRule {
  std::string keys;
  double momentum = 0, proximal_mu = 0;
  double (*norm)(double steps) = nullptr;  // |a|_1 as published
};

void expect_fednova(const LocalRule& rule) {
  constexpr double kStep = 0.2;
  ScenarioText s = test::uneven_quadratics();
  s.local = "kind = 'sgd'\nepochs = 1\nbatch = 1\nlearning_rate = 0.2\n" + rule.keys;
  s.server = "kind = 'sgd'\naverage = 'normalised'";
  OneRun<double> run(s.str());
  const std::vector<Shard>& shards = run.problem().shards();
  const GradientOracle<double> oracle(run.problem().model(), shards, SamplingOptions{.batch = 1, .replacement = true, .sample_file = ""}, 1,
                                      3);
  Vector x = run.model();
  const std::size_t P = x.size();
  for (std::uint32_t r = 1; r <= 3; ++r) {
    Vector mean(P, 0.0);
    double tau_eff = 0;
    for (std::uint32_t i = 0; i < shards.size(); ++i) {
      std::vector<std::uint32_t> order(shards[i].size());
      oracle.shuffle(i, r, 0, order.data());
      Vector y = x, g(P), v(P, 0.0);
      for (const std::uint32_t row : order) {
        const std::span<const std::uint32_t> rows(&row, 1);
        run.problem().model().gradient(run.pool().exec(0), {y.data(), nullptr, 1, P, P}, std::span(&rows, 1), {g.data(), nullptr, 1, P, P},
                                       nullptr);
        for (std::size_t j = 0; j < P; ++j) {
          v[j] = rule.momentum * v[j] + g[j] + rule.proximal_mu * (y[j] - x[j]);
          y[j] -= kStep * v[j];
        }
      }
      const double w = run.problem().weights()[i], norm = rule.norm(static_cast<double>(order.size()));
      tau_eff += w * norm;
      test::add(w / norm, test::minus(x, y), mean);
    }
    test::add(-tau_eff, mean, x);
    run.play(r, r);
    ASSERT_LE(test::relative_distance(run.model(), x), 1e-12) << "round " << r << ", " << rule.keys;
  }
}

TEST(NormalisedAverage, IsFedNova) {
  expect_fednova({"", 0, 0, [](double steps) { return steps; }});
  expect_fednova({"momentum = 0.9", 0.9, 0, [](double t) { return (t - 0.9 * (1 - std::pow(0.9, t)) / 0.1) / 0.1; }});
  expect_fednova({"proximal_mu = 0.5", 0, 0.5, [](double t) { return (1 - std::pow(1 - 0.2 * 0.5, t)) / (0.2 * 0.5); }});
}

TEST(NormalisedAverage, IsTheWeightedOneWhenAllClientsWorkAlike) {
  ScenarioText s = test::uneven_quadratics();
  s.local = "kind = 'sgd'\nsteps = 4\nbatch = 1\nlearning_rate = 0.2";
  const Vector weighted = model_after(s, 5);
  s.server = "kind = 'sgd'\naverage = 'normalised'";
  EXPECT_LE(test::relative_distance(model_after(s, 5), weighted), 1e-12);
  s.server = "kind = 'sgd'\naverage = 'uniform'";
  EXPECT_GT(test::relative_distance(model_after(s, 5), weighted), 1e-4);
  s.model += "\nweights = 'uniform'";
  const Vector uniform = model_after(s, 5);
  s.server = "kind = 'sgd'";
  EXPECT_EQ(model_after(s, 5), uniform);
}

TEST(NormalisedAverage, NeedsLocalSteps) {
  ScenarioText s = test::quadratics();
  s.server = "kind = 'sgd'\naverage = 'normalised'";
  EXPECT_THROW(OneRun<double>(s.str()), ConfigError);
}

// ---- the memory of absent clients ----

ScenarioText with_memory(const std::string& absent, int cohort = 1) {
  ScenarioText s = test::quadratics();
  s.local = "kind = 'gradient'\nlearning_rate = 0.3";
  s.up = "kind = 'top_k'\nk = 2";
  s.feedback = "kind = 'ef14'";
  s.participation = "kind = 'cyclic'\nclients = " + std::to_string(cohort) + "\n" + absent;
  return s;
}

TEST(AbsentState, DroppedMemoryIsNoMemoryWhereNobodyComesTwiceInARow) {
  ScenarioText none = with_memory("");
  none.feedback = "kind = 'none'";
  EXPECT_EQ(model_after(with_memory("absent = 'drop'"), 20), model_after(none, 20));
  EXPECT_NE(model_after(with_memory(""), 20), model_after(none, 20));
}

TEST(AbsentState, DecayReachesFromDropToKeep) {
  const auto decay = [](const char* factor) { return with_memory(std::string("absent = 'decay'\nabsent_decay = ") + factor, 2); };
  EXPECT_EQ(model_after(decay("1.0"), 20), model_after(with_memory("", 2), 20));
  EXPECT_EQ(model_after(decay("0.0"), 20), model_after(with_memory("absent = 'drop'", 2), 20));
  EXPECT_NE(model_after(decay("0.5"), 20), model_after(decay("1.0"), 20));
}

// Carried along from round to round or taken anew over all clients, skipped rounds included.
TEST(AbsentState, TheMeanMemoryOfAllClientsCanBeCarriedAlong) {
  const std::filesystem::path trace = std::filesystem::temp_directory_path() / ("fedbits_trace_" + std::to_string(::getpid()));
  std::ofstream(trace) << "1,0\n1,3\n2,1\n2,3\n5,0\n5,1\n6,2\n9,0\n10,3\n10,4\n";
  const std::vector<std::pair<std::string, AbsentState>> rules = {{"absent = 'keep'", AbsentState::keep},
                                                                  {"absent = 'decay'\nabsent_decay = 0.7", AbsentState::decay},
                                                                  {"absent = 'drop'", AbsentState::drop},
                                                                  {"absent = 'server'", AbsentState::server}};
  for (const auto& [rule, state] : rules) {
    const Absence<double> absence({.state = state, .decay = 0.7, .slot = "error"});
    ScenarioText text = with_memory("");
    text.participation = "kind = 'trace'\npath = '" + trace.string() + "'\n" + rule;
    text.evaluate = "every = 1";  // 2 of 5 clients: it pays
    test::OneRun<double> run(text.str());
    std::size_t moved = 0;
    for (std::uint32_t round = 1; round <= 12; ++round) {
      run.play(round, round);
      const std::vector<double> carried = run->round().memory_sum(round + 1);
      std::vector<double> anew(carried.size(), 0.0);
      const std::span<const double> mean = absence.rule().replaces() ? run->state().slot(kAbsentMean) : std::span<const double>();
      for (std::uint32_t i = 0; i < 5; ++i) absence.add_memory(round + 1, i, run.problem().weights()[i], mean, run->clients(), anew);
      for (std::size_t j = 0; j < anew.size(); ++j) {
        EXPECT_NEAR(carried[j], anew[j], 1e-14) << rule << ", round " << round;
        moved += anew[j] != 0 ? 1 : 0;
      }
    }
    EXPECT_GT(moved, 10u) << rule;
    EXPECT_GT(run->process().size_bytes(), 0u) << "it was carried along";
  }
  std::filesystem::remove(trace);
}

// Clients 0 .. 3; 1 was there in round 2, 2 in round 4, 0 and 3 never. As the server has them, each sends its memory when it is asked.
class FourClients final : public CohortRunner<double> {
 public:
  explicit FourClients(AbsenceRule rule) : absence(rule), memory(rule, 4, 3) {
    clients.declare({.name = "error", .owner = SlotOwner::client, .double_buffered = true});
    if (rule.replaces()) state.declare({.name = kAbsentMean, .owner = SlotOwner::server});
    for (const auto& [client, round] : std::map<std::uint32_t, std::uint32_t>{{1, 2}, {2, 4}}) {
      clients.set_acknowledged(client, round);
      memory.receive(round, std::span(&client, 1), std::vector<std::uint8_t>{1});
    }
    for (std::uint32_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < 3; ++j) clients.of_client("error", i)[j] = 1 + i;
  }
  [[nodiscard]] double first(std::uint32_t i) { return clients.of_client("error", i)[0]; }

  void open_round(const RoundView<double>&, const RoundOpening<double>&) override {}
  void skip_round(std::uint32_t) override {}
  MessageBatch<double> exchange(const RoundView<double>&, int) override { return {}; }
  void close_round(const RoundView<double>&, std::span<const std::uint8_t>) override {}
  [[nodiscard]] std::span<const double> error_memory(std::uint32_t position) override {
    return clients.of_client("error", cohort[position]);
  }
  void persist(Archive&) override {}

  std::vector<std::uint32_t> cohort = {0, 1, 2};
  ClientState<double> clients{4, 3, 3};
  ServerState<double> state{4, 3};
  Absence<double> absence;
  AbsentMemory<double> memory;
  Ledger ledger{4};
};

TEST(AbsentState, IsSettledByTheRoundsMissed) {
  FourClients decay({.state = AbsentState::decay, .decay = 0.5, .slot = "error"});
  std::vector<double> sum(3, 0.0);
  decay.absence.add_memory(5, 1, 1, {}, decay.clients, sum);
  decay.absence.settle(5, decay.cohort, {}, decay.clients);
  decay.memory.charge_returning(5, decay.cohort, decay.ledger);
  EXPECT_EQ(decay.first(0), 1);              // has never been there
  EXPECT_EQ(decay.first(1), 2 * 0.5 * 0.5);  // missed rounds 3 and 4
  EXPECT_EQ(sum[0], decay.first(1));
  EXPECT_EQ(decay.first(2), 3);  // missed none
  EXPECT_EQ(decay.ledger.round_down_bits(), 0u);

  FourClients server({.state = AbsentState::server, .slot = "error"});
  server.cohort = {2, 3};
  server.memory.learn(server.cohort, server, server.state, server.ledger);
  EXPECT_EQ(server.ledger.round_up().bits, 2u * 3 * 64);
  server.cohort = {0, 1, 2};
  server.memory.charge_returning(5, server.cohort, server.ledger);
  server.absence.settle(5, server.cohort, server.memory.replacement(server.state), server.clients);
  EXPECT_EQ(server.first(0), 1);
  EXPECT_EQ(server.first(1), 3.5);
  EXPECT_EQ(server.first(2), 3);
  EXPECT_EQ(server.ledger.round_down_bits(), 3u * 64);
}

// 0.1 0.1 is no double: a sum that contracts the product and the addition is not 0.
TEST(AbsentState, SumsOfMemoriesRoundEachProduct) {
  FourClients server({.state = AbsentState::server, .slot = "error"});
  const double tenth = 0.1;
  volatile double rounded = tenth * tenth;
  const std::vector<double> mean(3, tenth), nothing(3, 0.0);
  std::ranges::fill(server.clients.of_client("error", 2), tenth);
  for (const std::uint32_t client : {1u, 2u}) {  // one that comes back, and one that missed no round
    std::vector<double> sum(3, -rounded);
    server.absence.add_memory(5, client, tenth, mean, server.clients, sum);
    EXPECT_EQ(sum, nothing) << "client " << client;
  }
  std::vector<double> sum(3, -rounded);
  server.absence.add_replacements(5, std::vector<double>{0, tenth, tenth, 0}, mean, server.clients, sum);
  EXPECT_EQ(sum, nothing);
}

TEST(AbsentState, AgesAreThoseOfClientsThatWereThere) {
  const FourClients four({});
  EXPECT_EQ(four.memory.residual_age(5, std::vector<std::uint32_t>{0, 1, 2}), 2);  // 3 and 1
  EXPECT_TRUE(std::isnan(four.memory.residual_age(5, std::vector<std::uint32_t>{0, 3})));
  ScenarioText s = with_memory("", 2);
  s.rounds = 5;
  const auto rows = test::run_text(s.str()).front().rows;
  EXPECT_TRUE(std::isnan(rows[0].residual_age) && std::isnan(rows[1].residual_age) && std::isnan(rows[2].residual_age));
  EXPECT_EQ(rows[3].residual_age, 2);    // client 0 was in round 1; 4 is new
  EXPECT_EQ(rows[4].residual_age, 2.5);  // 1 was in round 1, 2 in round 2
}

TEST(AbsentState, NeedsAMemory) {
  ScenarioText s = with_memory("absent = 'drop'");
  s.feedback = "kind = 'ef21'";
  s.up += "\nunit = 'gradient'";
  EXPECT_THROW(OneRun<double>(s.str()), ConfigError);
}

// ---- rounds without anybody ----

class SkippedRounds : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(file_); }
  ScenarioText traced(const std::vector<int>& rounds_of_all, const std::string& down = "kind = 'identity'") {
    std::ofstream out(file_);
    for (const int round : rounds_of_all)
      for (int client = 0; client < 5; ++client) out << round << "," << client << "\n";
    ScenarioText s = test::quadratics();
    s.local = "kind = 'gradient'\nlearning_rate = 0.3";
    s.up = "kind = 'top_k'\nk = 2";
    s.feedback = "kind = 'ef14'";
    s.participation = "kind = 'trace'\npath = '" + file_.string() + "'";
    s.server = "kind = 'sgd'\nmomentum = 0.5";
    s.more = "[compressor.down]\n" + down;
    s.evaluate = "every = 1";
    return s;
  }
  std::filesystem::path file_ = std::filesystem::path(testing::TempDir()) / ("skipped" + std::to_string(::getpid()) + ".csv");
};

TEST_F(SkippedRounds, ChangeAndCostNothing) {
  ScenarioText s = traced({2, 3, 5});
  s.rounds = 6;
  const RunResult result = test::run_text(s.str()).front();
  for (const std::size_t r : {1, 4, 6}) {
    const RoundRow &row = result.rows[r], &before = result.rows[r - 1];
    EXPECT_EQ(row.clients, 0u);
    EXPECT_EQ(row.bits_up + row.bits_down, 0u);
    EXPECT_EQ(row.train_loss, before.train_loss);
    EXPECT_TRUE(std::isnan(row.compensated_norm_sq) && std::isnan(row.measured_delta) && std::isnan(row.density));
  }
  EXPECT_EQ(result.rows[5].clients, 5u);
  EXPECT_EQ(result.record.status, RunStatus::done);
  const auto is_count = [](const ResolvedConstant& c) { return c.name == "skipped_rounds" && c.value == 3; };
  EXPECT_EQ(std::ranges::count_if(result.record.constants, is_count), 1);
}

TEST_F(SkippedRounds, LeaveTheSameModelAndTheSameBits) {
  for (const std::string down : {"kind = 'identity'", "kind = 'top_k'\nk = 3"}) {
    ScenarioText every = traced({1, 2, 3}, down);
    every.rounds = 3;
    const RunResult all = test::run_text(every.str()).front();
    ScenarioText gaps = traced({2, 5, 6}, down);
    gaps.rounds = 6;
    const RunResult some = test::run_text(gaps.str()).front();
    EXPECT_EQ(all.record.checksum, some.record.checksum) << down;
    EXPECT_EQ(all.record.bits_up, some.record.bits_up) << down;
    EXPECT_EQ(all.record.bits_down, some.record.bits_down) << down;
  }
}

TEST(PoissonParticipation, OfEverybodyIsFullParticipation) {
  ScenarioText s = with_memory("");
  s.participation = "kind = 'poisson'\np = 1.0\nestimate = 'unbiased'";
  const Vector poisson = model_after(s, 5);
  s.participation = "kind = 'full'";
  EXPECT_EQ(model_after(s, 5), poisson);
}

}  // namespace
}  // namespace fl
