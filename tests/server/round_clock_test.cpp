// Tests the clock of simulated time against closed forms, and runs with a clock against runs without one.
#include "server/round_clock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "fl_core/random/random.hpp"
#include "scenarios/experiment/server_side.hpp"
#include "tests/support/run_scenario.hpp"
#include "tests/support/run_text.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

using testing::AllOf;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kForever = std::numeric_limits<double>::infinity();

// Devices, links and availability whose values a test states by client; those that it does not state take no time.
struct StatedDevices final : Devices {
  std::vector<double> seconds;  // that the unit of work takes
  [[nodiscard]] DeviceRates rates(std::uint32_t client) const override {
    return client < seconds.size() ? DeviceRates{.operations_per_s = 1 / seconds[client]} : DeviceRates{};
  }
};
struct StatedNetwork final : Network {
  std::vector<LinkRates> links;
  double doubles_at_s = kForever;  // all rates
  [[nodiscard]] LinkRates link(std::uint32_t client, double now_s) const override {
    LinkRates link = client < links.size() ? links[client] : LinkRates{};
    if (now_s >= doubles_at_s) link.down *= 2, link.up *= 2;
    return link;
  }
  [[nodiscard]] double next_change(std::uint32_t, double now_s) const override { return now_s < doubles_at_s ? doubles_at_s : kForever; }
};
// Client i is there from from_s[i] until until_s[i].
struct StatedAvailability final : Availability {
  std::vector<double> from_s, until_s;
  [[nodiscard]] double from(std::uint32_t client) const { return client < from_s.size() ? from_s[client] : 0; }
  [[nodiscard]] double until(std::uint32_t client) const { return client < until_s.size() ? until_s[client] : kForever; }
  [[nodiscard]] bool is_here(std::uint32_t client, double now_s) const override { return from(client) <= now_s && now_s < until(client); }
  [[nodiscard]] double next_change(std::uint32_t client, double now_s) const override {
    return now_s < from(client) ? from(client) : now_s < until(client) ? until(client) : kForever;
  }
};
// One unit of local work, `per_message` units for each message, and two for the server.
struct StatedWork final : ClientWork {
  double local_units = 1, per_message = 0, per_sum = 0, per_step = 0;
  [[nodiscard]] Work local(std::uint32_t, std::uint32_t) const override { return {.operations = local_units}; }
  [[nodiscard]] Work message(int, double) const override { return {.operations = per_message}; }
  [[nodiscard]] Work reading(double) const override { return {}; }
  [[nodiscard]] Work aggregation(int, std::size_t, double) const override { return {.operations = per_sum}; }
  [[nodiscard]] Work step() const override { return {.operations = per_step}; }
};

// A clock with its parts.
struct StatedClock {
  StatedDevices devices;
  StatedNetwork network;
  StatedAvailability availability;
  StatedWork work;
  std::unique_ptr<DeliveryPolicy> delivery = make_delivery(default_part("delivery", "all"));
  ServerRates server;

  [[nodiscard]] RoundClock clock() const { return RoundClock({devices, network, availability, work, *delivery, server, 1}); }
  // Returns the time after one round of all of N clients, and whose messages counted in `counts`.
  double play(RoundClock& clock, std::size_t N, std::uint64_t down, std::uint64_t up, std::vector<std::uint8_t>* counts = nullptr,
              std::uint32_t round = 1, std::size_t awaited = 0) const {
    std::vector<std::uint32_t> cohort(N);
    std::iota(cohort.begin(), cohort.end(), 0U);
    clock.open(round, cohort, awaited, std::vector<std::uint64_t>(N, down));
    const auto said = clock.close_phase(0, std::vector<std::uint64_t>(N, up), std::vector<std::uint8_t>(N, 1));
    if (counts != nullptr) counts->assign(said.begin(), said.end());
    clock.close();
    return clock.now_s();
  }
};

TEST(RoundClock, EqualClientsTakeRoundsTimesTheStatedSum) {
  StatedClock stated;
  stated.devices.seconds.assign(7, 0.3);
  stated.network.links.assign(7, {.down = 1e6, .up = 2.5e5, .latency_s = 0.02, .jitter_s = 0, .loss = 0.2});
  stated.work.local_units = 2;
  stated.work.per_message = 0.5;
  stated.work.per_sum = 3;
  stated.work.per_step = 1;
  stated.server.device.operations_per_s = 100;
  RoundClock clock = stated.clock();
  const double sum = 0.02 + 8000 / (1e6 * 0.8) + 2 * 0.3 + 0.5 * 0.3 + 0.02 + 1000 / (2.5e5 * 0.8) + 0.03 + 0.01;
  for (std::uint32_t round = 1; round <= 200; ++round)
    EXPECT_NEAR(stated.play(clock, 7, 8000, 1000, nullptr, round), round * sum, 1e-12 * round * sum) << round;
  const ClientTimes& times = clock.last().clients[3];
  EXPECT_NEAR(times.down_s, 0.02 + 0.01, 1e-12);
  EXPECT_NEAR(times.compute_s, 0.6, 1e-12);
  EXPECT_NEAR(times.message_s, 0.15, 1e-12);
  EXPECT_NEAR(times.up_s, 0.02 + 0.005, 1e-12);
}

// The largest of n exponential times with mean 1 has the mean H_n and the variance sum 1/k^2.
TEST(RoundClock, ARoundLastsAsLongAsItsSlowestClient) {
  constexpr std::size_t kClients = 50;
  constexpr std::uint32_t kRounds = 400;
  double sum = 0, mean = 0, variance = 0;
  for (std::size_t k = 1; k <= kClients; ++k) {
    mean += 1.0 / static_cast<double>(k);
    variance += 1.0 / static_cast<double>(k * k);
  }
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    StatedClock stated;
    RandomSequence random(3, Purpose::synthetic_data, round);
    for (std::size_t i = 0; i < kClients; ++i) stated.devices.seconds.push_back(-std::log(1 - random.uniform()));
    RoundClock clock = stated.clock();
    sum += stated.play(clock, kClients, 0, 0);
  }
  EXPECT_NEAR(sum / kRounds, mean, 4 * std::sqrt(variance / kRounds));
}

// Messages of s_1 <= ... <= s_n bits that begin together on a link of rate C end at T_k = sum_{j <= k} (s_j - s_{j-1}) (n - j + 1) / C.
TEST(Transfers, ASharedLinkIsAProcessorThatIsShared) {
  const StatedNetwork fast;
  constexpr double kRate = 1000;
  const std::vector<double> sizes = {700, 100, 400, 400, 900};
  std::vector<Transfer> transfers;
  for (std::uint32_t i = 0; i < sizes.size(); ++i) transfers.push_back({.client = i, .start_s = 2, .bits = sizes[i]});
  const std::vector<double> ends = departures(fast, LinkDirection::up, kRate, transfers);
  std::vector<double> sorted = sizes;
  std::ranges::sort(sorted);
  double end = 2, before = 0;
  for (std::size_t j = 0; j < sorted.size(); ++j) {
    end += (sorted[j] - before) * static_cast<double>(sorted.size() - j) / kRate;
    before = sorted[j];
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] != sorted[j]) continue;
      EXPECT_NEAR(ends[i], end, 1e-12 * end) << "message " << i;
    }
  }
}

TEST(Transfers, SlowLinksLeaveTheirShareToTheOthers) {
  StatedNetwork network;
  network.links = {{.up = 100}, {}, {}};
  const std::vector<Transfer> transfers = {{0, 0, 100}, {1, 0, 450}, {2, 0, 900}};
  // 100 + 450 + 450 bit/s until t = 1, when two messages have passed; then 1000 bit/s for the 450 bits that are left.
  EXPECT_THAT(departures(network, LinkDirection::up, 1000, transfers), ElementsAre(1, 1, DoubleNear(1.45, 1e-12)));
}

TEST(Transfers, AMessageThatBeginsLaterTakesItsShareFromThen) {
  const std::vector<Transfer> transfers = {{0, 0, 1000}, {1, 0.5, 200}};
  // Alone until 0.5 (500 bits), then half of the link each: the second ends at 0.9, the first sends 300 bits more at the whole rate.
  EXPECT_THAT(departures(StatedNetwork(), LinkDirection::down, 1000, transfers),
              ElementsAre(DoubleNear(1.2, 1e-12), DoubleNear(0.9, 1e-12)));
}

TEST(Transfers, RatesMayChangeOnTheWay) {
  StatedNetwork network;
  network.links = {{.down = 100}};
  network.doubles_at_s = 3;
  for (const double shared : {kForever, 1e9}) {  // 300 bits until t = 3, then 200 bit/s
    const std::vector<double> ends = departures(network, LinkDirection::down, shared, std::vector<Transfer>{{0, 0, 500}});
    EXPECT_NEAR(ends[0], 4, 1e-12);
  }
}

TEST(Transfers, NothingPassesFromAClientThatHasLeft) {
  StatedNetwork network;
  network.links = {{.up = 100}, {.up = 100}};
  for (const double shared : {kForever, 150.0}) {
    const std::vector<Transfer> transfers = {{0, 0, 100, 0.5}, {1, 0, 100, 10}, {2, 20, 100, 10}};
    const std::vector<double> ends = departures(network, LinkDirection::up, shared, transfers);
    EXPECT_EQ(ends[0], kForever);
    // Shared: 75 bit/s until 0.5, then its own 100 bit/s for the other 62.5 bits.
    EXPECT_NEAR(ends[1], std::isfinite(shared) ? 0.5 + 0.625 : 1, 1e-12);
    EXPECT_EQ(ends[2], kForever);
  }
}

TEST(RoundClock, ADeadlineLeavesTheSlowOut) {
  StatedClock stated;
  stated.devices.seconds = {1, 5, 2};
  Part deadline = default_part("delivery", "deadline");
  Schema schema = deadline.options.schema();
  ASSERT_FALSE(schema.find("deadline_s")->assign(Value{3.0}));
  stated.delivery = make_delivery(deadline);
  RoundClock clock = stated.clock();
  std::vector<std::uint8_t> counts;
  EXPECT_EQ(stated.play(clock, 3, 0, 0, &counts), 3);
  EXPECT_THAT(counts, ElementsAre(1, 0, 1));
  EXPECT_EQ(stated.play(clock, 3, 0, 0, &counts, 2), 6);
}

TEST(RoundClock, TheFirstMessagesCloseARound) {
  StatedClock stated;
  stated.devices.seconds = {4, 5, 2, 1};
  stated.delivery = make_delivery(default_part("delivery", "first"));
  RoundClock clock = stated.clock();
  std::vector<std::uint8_t> counts;
  EXPECT_EQ(stated.play(clock, 4, 0, 0, &counts, 1, 3), 4);
  EXPECT_THAT(counts, ElementsAre(1, 0, 1, 1));
}

// The server does not wait for who has left: it notices when a client leaves.
TEST(RoundClock, AClientThatLeavesDoesNotCount) {
  StatedClock stated;
  stated.devices.seconds = {1, 5, 2};
  stated.availability.until_s = {kForever, 3, kForever};
  RoundClock clock = stated.clock();
  std::vector<std::uint8_t> counts;
  EXPECT_EQ(stated.play(clock, 3, 0, 8, &counts), 3);
  EXPECT_THAT(counts, ElementsAre(1, 0, 1));
  EXPECT_TRUE(clock.has_left(1));
  EXPECT_FALSE(clock.has_left(0));
}

TEST(RoundClock, ARoundBeginsWhenSomeoneIsThere) {
  StatedClock stated;
  stated.availability.from_s = {7, 5, 9};
  RoundClock clock = stated.clock();
  EXPECT_THAT(clock.wait_for_any(std::vector<std::uint32_t>{0, 2}), ElementsAre(1, 0));
  EXPECT_EQ(clock.now_s(), 7);
  EXPECT_THAT(clock.wait_for_any(std::vector<std::uint32_t>{0, 1, 2}), ElementsAre(1, 1, 0));
  StatedClock empty;
  empty.availability.until_s = {0, 0};
  RoundClock nobody = empty.clock();
  EXPECT_THAT(nobody.wait_for_any(std::vector<std::uint32_t>{0, 1}), ElementsAre(0, 0));
  EXPECT_EQ(nobody.now_s(), 0);
}

// ---- runs

// Five clients with links of 1 kbit/s; `more` are further tables.
std::string timed(const std::string& more, const std::string& feedback = "kind = 'ef14'") {
  test::ScenarioText text = test::quadratics();
  text.rounds = 12;
  text.local = "kind = 'gradient'\nlearning_rate = 0.1";
  text.up = "kind = 'top_k'\nk = 3";
  text.feedback = feedback;
  text.evaluate = "every = 1";
  text.more = more;
  return text.str();
}
const std::string kSlowNetwork = "[network]\nkind = 'constant'\ndown = 4000\nup = 1000\nlatency = 0.5\n";

RunResult result_of(const std::string& text) { return test::run_text(text).at(0); }

std::string refusal_of_time(const std::string& more) {
  try {
    (void)result_of(timed(more));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

// Every client gets the same model and sends as many bits as the others, so each round takes what its bits say.
TEST(TimedRuns, TimesFollowTheBitsOfEachRound) {
  const RunResult run = result_of(timed(kSlowNetwork));
  ASSERT_EQ(run.rows.size(), 13U);
  EXPECT_EQ(run.rows[0].simulated_s, 0);
  for (std::size_t r = 1; r < run.rows.size(); ++r) {
    const double seconds = run.rows[r].simulated_s - run.rows[r - 1].simulated_s;
    const double at_least = 1 + static_cast<double>(run.rows[r].bits_down) / 5 / 4000 + static_cast<double>(run.rows[r].bits_up) / 5 / 1000;
    EXPECT_GE(seconds, at_least * (1 - 1e-12)) << r;
    EXPECT_LE(seconds, at_least + 0.2) << r;  // messages differ by some bits
  }
}

TEST(TimedRuns, AClockChangesNoOtherResult) {
  for (const std::string feedback : {"kind = 'ef14'", "kind = 'ef21'", "kind = 'none'"}) {
    RunResult plain = result_of(timed("", feedback)), timed_run = result_of(timed(kSlowNetwork, feedback));
    EXPECT_EQ(plain.record.checksum, timed_run.record.checksum) << feedback;
    EXPECT_EQ(plain.record.bits_up, timed_run.record.bits_up);
    for (std::size_t r = 0; r < plain.rows.size(); ++r) EXPECT_EQ(plain.rows[r].f_gap, timed_run.rows[r].f_gap);
    EXPECT_TRUE(std::isnan(plain.rows.back().simulated_s));
  }
}

TEST(TimedRuns, AnEndlessDeadlineWaitsForAll) {
  const RunResult all = result_of(timed(kSlowNetwork)),
                  late = result_of(timed(kSlowNetwork + "[delivery]\nkind = 'deadline'\ndeadline_s = 1e6\n"));
  EXPECT_EQ(all.record.checksum, late.record.checksum);
  for (std::size_t r = 0; r < all.rows.size(); ++r) EXPECT_EQ(all.rows[r].simulated_s, late.rows[r].simulated_s);
}

TEST(TimedRuns, AClientThatIsLateKeepsItsError) {
  for (const std::string feedback : {"kind = 'ef14'", "kind = 'ef21'"}) {
    const RunResult nobody = result_of(timed(kSlowNetwork + "[delivery]\nkind = 'deadline'\ndeadline_s = 0.75\n", feedback));
    EXPECT_EQ(nobody.rows.back().refused, 5U) << "nobody meets the deadline";
    EXPECT_EQ(nobody.rows.back().f_gap, nobody.rows.front().f_gap) << "the model stays where it is";
    EXPECT_NEAR(nobody.rows.back().simulated_s, 12 * 0.75, 1e-9);
    EXPECT_GT(nobody.record.bits_up, 0U) << "late messages were sent";
  }
}

TEST(TimedRuns, StopAtATime) {
  const RunResult run = result_of(timed(kSlowNetwork + "[stop]\nseconds = 4\n"));
  EXPECT_GE(run.rows.back().simulated_s, 4);
  EXPECT_LT(run.rows[run.rows.size() - 2].simulated_s, 4);
  EXPECT_LT(run.rows.size(), 13U);
}

TEST(TimedRuns, TimeNeedsAClock) {
  EXPECT_THAT(refusal_of_time("[stop]\nseconds = 3\n"), AllOf(HasSubstr("stop.seconds"), HasSubstr("[network] or [devices]")));
  test::ScenarioText text = test::quadratics();
  text.evaluate = "every = 10\nmeasures = ['round_times']";
  EXPECT_THROW((void)result_of(text.str()), ConfigError);
  EXPECT_THAT(refusal_of_time("[delivery]\nkind = 'deadline'\ndeadline_s = 3\n"),
              AllOf(HasSubstr("delivery.kind"), HasSubstr("[network]")));
}

// The value of a column of a run's own measures in a row.
double own_value(const RunResult& run, std::size_t row, const std::string& column) {
  const std::size_t place = place_of(run.record.columns, column);
  return place < run.rows[row].more.size() ? run.rows[row].more[place] : std::nan("");
}

TEST(TimedRuns, MeasuresSayWhereTheTimeWent) {
  test::ScenarioText text = test::quadratics();
  text.rounds = 4;
  text.local = "kind = 'gradient'\nlearning_rate = 0.1";
  text.up = "kind = 'top_k'\nk = 3";
  text.feedback = "kind = 'ef14'";
  text.evaluate = "every = 1\nmeasures = ['round_times', 'collective_times']";
  text.more = kSlowNetwork + "[devices]\nkind = 'constant'\nflops = 1e6\nbandwidth = 1e7\n";
  const RunResult run = result_of(text.str());
  double by_ratio = 0;
  for (std::size_t r = 1; r < run.rows.size(); ++r) {
    const double length = run.rows[r].simulated_s - run.rows[r - 1].simulated_s;
    EXPECT_NEAR(own_value(run, r, "round_s"), length, 1e-12 * length);
    const double works =
        own_value(run, r, "down_s") + own_value(run, r, "compute_s") + own_value(run, r, "message_s") + own_value(run, r, "up_s");
    EXPECT_GT(own_value(run, r, "compute_s"), 0);
    EXPECT_NEAR(own_value(run, r, "idle_share"), 1 - works / length, 1e-9);
    EXPECT_NEAR(own_value(run, r, "message_bits"), static_cast<double>(run.rows[r].bits_up) / 5, 1e-9);
    EXPECT_LE(own_value(run, r, "parameter_server_s"), length);
    EXPECT_NEAR(own_value(run, r, "ring_all_reduce_s"), 8 * 0.5 + 1.6 * own_value(run, r, "message_bits") / 1000, 0.2);
    by_ratio = own_value(run, r, "by_ratio_s");
  }
  // A dense model of 20 values of 32 bits down and three values up: it knows no positions.
  const double computing = own_value(run, 4, "compute_s") + own_value(run, 4, "message_s");
  EXPECT_NEAR(by_ratio / 4, 1 + 640.0 / 4000 + 96.0 / 1000 + computing, 0.1);
}

TEST(TimedRuns, OnlyScenariosWithAClockWriteItsTables) {
  const Cell without = parse_cells(timed(""), "test.toml").at(0), with = parse_cells(timed(kSlowNetwork), "test.toml").at(0);
  EXPECT_THAT(without.resolved_toml,
              AllOf(testing::Not(HasSubstr("[network]")), testing::Not(HasSubstr("[devices]")), testing::Not(HasSubstr("[availability]"))));
  EXPECT_THAT(with.resolved_toml, HasSubstr("[network]\nkind = \"constant\""));
  EXPECT_NE(without.hash, with.hash);
}

}  // namespace
}  // namespace fl
