// Tests the attribution of bits: every bit has a cause, data that cost no bits can be derived from sent data, and the server's copies
// change only by messages.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "tests/support/run_scenario.hpp"
#include "tests/support/run_text.hpp"
#include "tests/support/traced.hpp"

namespace fl {
namespace {

using test::OneRun;
using test::ScenarioText;
using test::Vector;

bool same_bits(std::span<const double> a, std::span<const double> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// ---- derived slots ----

// previous_model: what a client was sent in the round before.
void expect_previous_model(const std::string& local, const std::string& feedback) {
  ScenarioText s = test::uneven_quadratics();
  s.local = local;
  s.up = "kind = 'natural'";
  s.feedback = feedback;
  s.start = "kind = 'zero'\nshift = 1";
  OneRun<double> run(s.str());
  Vector derived(run.problem().P(), 0.0);
  for (std::uint32_t round = 1; round <= 12; ++round) {
    const Vector sent = run.model();  // w of this round: an identity sends it bit for bit
    const std::span<const double> slot = run->shared().slot("previous_model");
    if (round > 1) {
      EXPECT_TRUE(same_bits(derived, slot)) << feedback << ", round " << round;
    }
    run.play(round, round);
    derived = sent;
  }
  EXPECT_EQ(run->round().ledger().total_down_bits(DownCause::missed_slots), 0u);
}

TEST(DerivedSlots, MarinaAndDashaRememberTheModelThatWasSent) {
  expect_previous_model("kind = 'gradient_difference'\nbatch = 2\nlearning_rate = 0.1", "kind = 'marina'\np = 0.3");
  expect_previous_model("kind = 'mvr'\nbatch = 2\nlearning_rate = 0.1", "kind = 'dasha'\na = 0.5");
}

// history of LAG, with sampled clients: derived from two models in a row, or sent and paid for.
TEST(DerivedSlots, LagsHistoryFollowsFromTheModelsThatWereSent) {
  constexpr std::size_t kMemory = 3;
  ScenarioText s = test::problem("kind = 'lag'\nxi = 0.5\nmemory = 3");
  s.participation = "kind = 'uniform'\nclients = 2";
  OneRun<double> run(s.str());
  struct Client {
    std::uint32_t last = 0;
    Vector model, history = Vector(kMemory, 0.0);
  };
  std::map<std::uint32_t, Client> clients;
  std::size_t missed = 0, derived = 0;
  for (std::uint32_t round = 1; round <= 60; ++round) {
    const Vector sent = run.model();
    run.play(round, round);
    const std::span<const double> slot = run->shared().slot("history");
    for (const std::uint32_t id : run->round().plan().cohort) {
      Client& client = clients[id];
      if (client.last + 1 == round && round > 1) {
        double moved = 0;
        for (std::size_t j = 0; j < sent.size(); ++j) moved += (sent[j] - client.model[j]) * (sent[j] - client.model[j]);
        client.history[(round - 2) % kMemory] = moved;
        EXPECT_TRUE(same_bits(client.history, slot)) << "client " << id << " in round " << round;
        ++derived;
      } else if (round > 1) {
        client.history.assign(slot.begin(), slot.end());
        ++missed;
      }
      client.last = round;
      client.model = sent;
    }
  }
  EXPECT_GT(derived, 20U);
  EXPECT_GT(missed, 20U);
  EXPECT_EQ(run->round().ledger().total_down_bits(DownCause::missed_slots), missed * kMemory * 64);
}

// ---- the server's copies ----

// Clients whose own shifts are spoilt between rounds send other messages; what the server holds still follows from these alone.
TEST(Ef21PlusServer, HoldsCopiesThatMessagesMove) {
  OneRun<double> run(test::problem("kind = 'ef21_plus'").str());
  std::vector<Vector> copies = test::zeros();
  const std::vector<double>& weights = run.problem().weights();
  std::size_t restarts = 0;
  for (std::uint32_t round = 1; round <= 30; ++round) {
    run.play(round, round);
    Vector mean(copies[0].size(), 0.0);
    for (std::uint32_t i = 0; i < copies.size(); ++i) {
      const bool restarted = !run->runner().payload(1, i)->silent;
      const Vector c = test::message_of(run, i, restarted ? 1 : 0);
      restarts += restarted ? 1 : 0;
      for (std::size_t j = 0; j < c.size(); ++j) {
        copies[i][j] = (restarted ? 0.0 : copies[i][j]) + c[j];
        mean[j] += weights[i] * copies[i][j];
      }
      EXPECT_TRUE(same_bits(copies[i], run->state().copy("server_shift", i))) << "client " << i << ", round " << round;
      run->clients().of_client("shift", i)[round % c.size()] += 0.5;
    }
    const std::span<const double> held = run->state().slot("shift_mean");
    for (std::size_t j = 0; j < mean.size(); ++j) EXPECT_NEAR(held[j], mean[j], 1e-9) << "round " << round;
  }
  EXPECT_GT(restarts, 0U);
}

// ---- causes ----

double sum_of(const RunRecord& record, const std::string& prefix) {
  double sum = 0;
  for (const ResolvedConstant& constant : record.constants)
    if (constant.name.starts_with(prefix)) sum += constant.value;
  return sum;
}
double value_of(const RunRecord& record, const std::string& name) {
  for (const ResolvedConstant& constant : record.constants)
    if (constant.name == name) return constant.value;
  return 0;
}

TEST(WhoPays, EveryBitHasACause) {
  struct CauseCase {
    std::string feedback, more, local = "kind = 'gradient'\nlearning_rate = 0.2\nbatch = 2";
    std::vector<std::string> causes;
  };
  const std::vector<CauseCase> cases = {
      {.feedback = "kind = 'ef14'",
       .more = "",
       .causes = {"bits_up_channel_model", "bits_up_headers", "bits_down_model", "bits_down_changes", "bits_down_catch_up"}},
      {.feedback = "kind = 'lag'\nxi = 500.0", .more = "", .causes = {"bits_up_silence", "bits_down_missed_slots"}},
      {.feedback = "kind = 'ef14'", .more = "absent = 'server'", .causes = {"bits_up_absence", "bits_down_absence"}},
      {.feedback = "kind = 'ef21_plus'", .more = "", .causes = {"bits_up_channel_model", "bits_up_channel_restart"}},
      {.feedback = "kind = 'scaffold'",
       .more = "",
       .local = "kind = 'scaffold'\nsteps = 2\nbatch = 2\nlearning_rate = 0.1",
       .causes = {"bits_up_channel_model", "bits_up_channel_control", "bits_down_slots"}},
  };
  for (const CauseCase& c : cases) {
    ScenarioText s = test::problem(c.feedback);
    s.local = c.local;
    s.up = "kind = 'top_k'\nk = 1";
    s.participation = "kind = 'uniform'\nclients = 2\n" + c.more;
    s.rounds = 25;
    const RunRecord record = test::run_text(s.str()).front().record;
    EXPECT_EQ(sum_of(record, "bits_up_"), static_cast<double>(record.bits_up)) << c.feedback;
    EXPECT_EQ(sum_of(record, "bits_down_"), static_cast<double>(record.bits_down)) << c.feedback;
    for (const std::string& cause : c.causes) EXPECT_GT(value_of(record, cause), 0) << c.feedback << ": " << cause;
  }
}

// Ten clients in turns of five: half of them take part twice, the others once.
TEST(WhoPays, SharesOfClients) {
  ScenarioText s = test::quadratics("clients = 10\nzeta_sq = 1");
  s.partition = "kind = 'natural'\nclients = 10";
  s.participation = "kind = 'cyclic'\nclients = 5";
  s.rounds = 3;
  const RunRecord record = test::run_text(s.str()).front().record;
  const double message = 8 + 20 * 64;
  EXPECT_EQ(value_of(record, "client_bits_up_min"), message);
  EXPECT_EQ(value_of(record, "client_bits_up_max"), 2 * message);
  EXPECT_EQ(value_of(record, "client_bits_up_median"), 1.5 * message);
  EXPECT_DOUBLE_EQ(value_of(record, "client_bits_up_share_of_busiest_tenth"), 2.0 / 15);
  EXPECT_EQ(value_of(record, "client_bits_down_max"), 2 * message);
}

}  // namespace
}  // namespace fl
