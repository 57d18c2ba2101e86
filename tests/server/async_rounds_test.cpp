// Tests servers that step along messages as they arrive: against rounds that wait, with what has to be refused, and across checkpoints.
#include "server/async_rounds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "scenarios/sweep/cell_runner.hpp"
#include "server/staleness.hpp"
#include "tests/support/run_scenario.hpp"
#include "tests/support/run_text.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kLink = "[network]\nkind = 'constant'\ndown = 4000\nup = 1000\nlatency = 0.25\njitter = 2\n";

// Minibatches of eleven rows at four clients, whose jitter makes their messages arrive in another order than they began.
test::ScenarioText async_study(const std::string& more, const std::string& feedback = "kind = 'ef14'") {
  test::ScenarioText text = test::uneven_quadratics();
  text.rounds = 15;
  text.local = "kind = 'gradient'\nbatch = 2\nlearning_rate = 0.1";
  text.up = "kind = 'top_k'\nk = 3";
  text.feedback = feedback;
  text.evaluate = "every = 1";
  text.more = kLink + more;
  return text;
}

RunResult async_result_of(const test::ScenarioText& text) { return test::run_text(text.str()).at(0); }

std::string refusal_of_asynchronous(const test::ScenarioText& text) {
  try {
    (void)async_result_of(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

void expect_same(const RunResult& left, const RunResult& right, const std::string& what) {
  EXPECT_EQ(left.record.checksum, right.record.checksum) << what;
  ASSERT_EQ(left.rows.size(), right.rows.size()) << what;
  for (std::size_t r = 0; r < left.rows.size(); ++r) {
    EXPECT_EQ(left.rows[r].f_gap, right.rows[r].f_gap) << what << ", row " << r;
    EXPECT_EQ(left.rows[r].simulated_s, right.rows[r].simulated_s) << what << ", row " << r;
    EXPECT_EQ(left.rows[r].bits_up, right.rows[r].bits_up) << what << ", row " << r;
    EXPECT_EQ(left.rows[r].bits_down, right.rows[r].bits_down) << what << ", row " << r;
    EXPECT_EQ(left.rows[r].clients, right.rows[r].clients) << what << ", row " << r;
  }
}

TEST(AsyncRounds, ABufferOfTheWholeCohortIsARoundThatWaits) {
  const std::map<std::string, std::string> feedbacks = {{"kind = 'none'", ""},
                                                        {"kind = 'ef14'", ""},
                                                        {"kind = 'ef21'", ""},
                                                        {"kind = 'ef21_plus'", ""},
                                                        {"kind = 'ef21_sgdm'\nmomentum = 0.5", ""},
                                                        {"kind = 'econtrol'\neta = 0.3", ""}};
  for (const auto& [feedback, _] : feedbacks)
    for (const bool takes_all : {true, false}) {
      test::ScenarioText waits = async_study("", feedback),
                         arrives = async_study(
                             "[asynchronous]\nkind = 'fedbuff'\nrefill = 'step'\nbuffer = " + std::string(takes_all ? "4" : "3") + "\n",
                             feedback);
      if (!takes_all) waits.participation = arrives.participation = "kind = 'uniform'\nclients = 3";
      expect_same(async_result_of(waits), async_result_of(arrives), feedback + (takes_all ? ", all" : ", three"));
    }
}

TEST(AsyncRounds, CompressedModelsGoDownToEachClientThatBegins) {
  const std::string down = "[compressor.down]\nkind = 'top_k'\nk = 5\n";
  test::ScenarioText waits = async_study(down),
                     arrives = async_study(down + "[asynchronous]\nkind = 'fedbuff'\nrefill = 'step'\nbuffer = 4\n");
  expect_same(async_result_of(waits), async_result_of(arrives), "downlink");
}

// Messages of later models are taken before those of earlier ones, so that the steps are others; a step comes sooner than a round.
TEST(AsyncRounds, StepsDoNotWaitForTheSlowest) {
  for (const std::string feedback : {"kind = 'none'", "kind = 'ef14'", "kind = 'ef21'"}) {
    const RunResult waits = async_result_of(async_study("", feedback)),
                    arrives = async_result_of(async_study("[asynchronous]\nkind = 'fedbuff'\nbuffer = 2\n", feedback));
    EXPECT_LT(arrives.rows.back().simulated_s, waits.rows.back().simulated_s) << feedback;
    EXPECT_EQ(arrives.rows.back().clients, 2U);
    EXPECT_LT(arrives.rows.back().f_gap, 0.5 * arrives.rows.front().f_gap) << feedback << ": it learns";
    for (std::size_t r = 1; r < arrives.rows.size(); ++r) EXPECT_GE(arrives.rows[r].simulated_s, arrives.rows[r - 1].simulated_s);
  }
}

// With lognormal times of work, sigma = 0.5, a round of 30 clients lasts as long as the longest of 30 (2.95 medians), and 30 messages of 30
// clients that never wait take the mean (1.13 medians): 0.38 of it. FedScale reports 180 steps of FedBuff in 18,913 s and 100 rounds of
// FedAvg in 27,618 s, which is the same share.
TEST(AsyncRounds, AStepOfABufferTakesTheMeanTimeAndARoundTheLongest) {
  const auto seconds_per_step = [](const std::string& more) {
    test::ScenarioText text = test::quadratics("clients = 300\nzeta_sq = 1");
    text.rounds = 60;
    text.partition = "kind = 'natural'\nclients = 300";
    text.participation = "kind = 'uniform'\nclients = 30";
    text.local = "kind = 'gradient'\nlearning_rate = 0.01";
    text.evaluate = "every = 60\noptimum = false\ngradient = 'never'";
    text.more = "[devices]\nkind = 'lognormal'\nflops = 1e6\nbandwidth = 1e20\nflops_sigma = 0.5\n" + more;
    const RunResult run = async_result_of(text);
    return (run.rows.back().simulated_s - run.rows[10].simulated_s) / 50;
  };
  const double ratio = seconds_per_step("[asynchronous]\nkind = 'fedbuff'\nbuffer = 30\n") / seconds_per_step("");
  EXPECT_NEAR(ratio, 0.38, 0.05);
}

TEST(AsyncRounds, OldMessagesCountLess) {
  const RunResult plain = async_result_of(async_study("[asynchronous]\nkind = 'fedbuff'\nbuffer = 1\n")),
                  less = async_result_of(async_study("[asynchronous]\nkind = 'fedbuff'\nbuffer = 1\nstaleness = 'polynomial'\n")),
                  mixed = async_result_of(async_study("[asynchronous]\nkind = 'fedasync'\nmixing = 0.5\n"));
  EXPECT_EQ(plain.rows.back().simulated_s, less.rows.back().simulated_s) << "the messages have as many bits";
  EXPECT_NE(plain.record.checksum, less.record.checksum);
  EXPECT_NE(less.record.checksum, mixed.record.checksum);
  EXPECT_LT(mixed.rows.back().f_gap, mixed.rows.front().f_gap);
}

// Plays a run until `stop` rounds, and goes on from its checkpoint in another object.
RunResult run_in_two_parts(const std::string& text, std::uint64_t stop) {
  const Cell cell = parse_cells(text, "test.toml").at(0);
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("fedbits_async_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  CheckpointPlan plan;
  plan.file = folder / "run.checkpoint";
  CellRunner runner(DataCatalog(""), {.threads = 1});
  (void)runner.run(
      cell, [stop](const RoundRow& row) { return row.round != stop; }, plan);
  EXPECT_TRUE(std::filesystem::exists(plan.file));
  plan.resume = true;
  RunResult result = runner.run(cell, {}, plan);
  std::filesystem::remove_all(folder);
  return result;
}

TEST(AsyncRounds, ARunGoesOnFromBetweenItsSteps) {
  for (const std::string more :
       {"[asynchronous]\nkind = 'fedbuff'\nbuffer = 2\nstaleness = 'hinge'\n", "[asynchronous]\nkind = 'fedasync'\n",
        "[asynchronous]\nkind = 'fedbuff'\nbuffer = 3\n[compressor.down]\nkind = 'top_k'\nk = 5\n"}) {
    const std::string text = async_study(more).str();
    expect_same(test::run_text(text).at(0), run_in_two_parts(text, 6), more);
  }
}

// ---- order and weights

Flight<double> flight_of(std::uint32_t client, double ends_s) {
  Flight<double> flight;
  flight.order.cohort = {client};
  flight.ends_s = ends_s;
  return flight;
}

TEST(Flights, EndByTimeAndThenByClient) {
  Flights<double> flights;
  for (const auto& [client, ends_s] : std::vector<std::pair<std::uint32_t, double>>{{5, 2.0}, {1, 3.0}, {4, 2.0}, {2, 1.0}})
    flights.add(flight_of(client, ends_s));
  EXPECT_TRUE(flights.contains(4));
  EXPECT_EQ(flights.next_s(), 1.0);
  std::vector<std::uint32_t> order;
  while (!flights.empty()) order.push_back(flights.take().client());
  EXPECT_THAT(order, ElementsAre(2, 4, 5, 1));
  EXPECT_EQ(flights.next_s(), std::numeric_limits<double>::infinity());
}

TEST(Staleness, HasThePublishedFunctions) {
  const Staleness constant, polynomial{.kind = Staleness::Kind::polynomial}, steep{.kind = Staleness::Kind::polynomial, .exponent = 2},
      hinge{.kind = Staleness::Kind::hinge}, own{.kind = Staleness::Kind::hinge, .slope = 1, .tolerance = 0};
  EXPECT_EQ(constant.weight(1000), 1);
  EXPECT_EQ(polynomial.weight(0), 1);
  EXPECT_DOUBLE_EQ(polynomial.weight(3), 0.5);
  EXPECT_DOUBLE_EQ(steep.weight(3), 1.0 / 16);
  EXPECT_EQ(hinge.weight(4), 1);
  EXPECT_DOUBLE_EQ(hinge.weight(6), 1.0 / 21);
  EXPECT_DOUBLE_EQ(own.weight(1), 0.5);
}

// ---- refusals

TEST(AsyncRounds, MethodsThatNeedRoundsAreRefusedWithTheReason) {
  const auto with = [](const std::string& rule, const std::string& feedback = "kind = 'ef14'") {
    return async_study("[asynchronous]\n" + rule + "\n", feedback);
  };
  const std::string fedbuff = "kind = 'fedbuff'\nbuffer = 2";
  test::ScenarioText no_clock = with(fedbuff);
  no_clock.more = "[asynchronous]\n" + fedbuff + "\n";
  EXPECT_THAT(refusal_of_asynchronous(no_clock), AllOf(HasSubstr("asynchronous.kind"), HasSubstr("[network] or [devices]")));
  EXPECT_THAT(refusal_of_asynchronous(with("kind = 'fedbuff'\nbuffer = 5")),
              AllOf(HasSubstr("asynchronous.buffer"), HasSubstr("is 5, more than the 4 clients")));
  EXPECT_THAT(refusal_of_asynchronous(with("kind = 'fedbuff'\nbuffer = 0")), AllOf(HasSubstr("test.toml:"), HasSubstr("must be >= 1")));
  EXPECT_THAT(refusal_of_asynchronous(with(fedbuff + "\nexponent = 2")), HasSubstr("has no effect unless staleness = \"polynomial\""));
  EXPECT_THAT(refusal_of_asynchronous(with("kind = 'fedbuf'")), HasSubstr("did you mean \"fedbuff\"?"));
  EXPECT_THAT(refusal_of_asynchronous(with(fedbuff + "\nstaleness = 'polynomial'", "kind = 'ef21'")),
              AllOf(HasSubstr("asynchronous.staleness"), HasSubstr("'ef21'")));
  EXPECT_THAT(refusal_of_asynchronous(with("kind = 'fedasync'", "kind = 'ef21'")),
              AllOf(HasSubstr("asynchronous.kind"), HasSubstr("'ef21'")));
  EXPECT_THAT(refusal_of_asynchronous(with(fedbuff, "kind = 'ef21'\ninit = 'dense'")), HasSubstr("in the first round"));
  EXPECT_THAT(refusal_of_asynchronous(with(fedbuff, "kind = 'lag'")), HasSubstr("feedback 'lag' has vectors that all clients share"));
  test::ScenarioText deadline = with(fedbuff);
  deadline.more += "[delivery]\nkind = 'deadline'\ndeadline_s = 3\n";
  EXPECT_THAT(refusal_of_asynchronous(deadline), HasSubstr("delivery.kind"));
  test::ScenarioText server = with(fedbuff);
  server.more = kLink + "server_up = 1e6\n[asynchronous]\n" + fedbuff + "\n";
  EXPECT_THAT(refusal_of_asynchronous(server), HasSubstr("network.server_up"));
  test::ScenarioText momentum = with("kind = 'fedasync'");
  momentum.server = "kind = 'sgd'\nmomentum = 0.5";
  EXPECT_THAT(refusal_of_asynchronous(momentum), HasSubstr("server.kind"));
}

TEST(AsyncRounds, OnlyAsynchronousScenariosWriteTheTable) {
  const Cell without = parse_cells(async_study("").str(), "test.toml").at(0),
             with = parse_cells(async_study("[asynchronous]\nkind = 'fedbuff'\n").str(), "test.toml").at(0);
  EXPECT_THAT(without.resolved_toml, testing::Not(HasSubstr("asynchronous")));
  EXPECT_THAT(with.resolved_toml, HasSubstr("[asynchronous]\nkind = \"fedbuff\"\nbuffer = 10\n"));
}

}  // namespace
}  // namespace fl
