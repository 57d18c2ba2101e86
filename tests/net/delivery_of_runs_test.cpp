// Tests the delivery of runs over a network: that of the scenario, and that of the server's options.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/net/memory_peers.hpp"
#include "tests/net/presence_run.hpp"
#include "tests/support/every_method.hpp"

namespace fl {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Seven clients, three of them in a round.
std::string text_with_delivery(const std::string& delivery, const std::string& label = "ef21") {
  const std::vector<test::Method> all = test::methods();
  test::Method method = *std::ranges::find(all, label, &test::Method::label);
  method.more += "[participation]\nkind = 'uniform'\nclients = 3\n" + delivery;
  return test::text_of(method, "float32");
}

test::NetworkRun run_on(test::MemoryPeers& peers, const std::string& text, const net::Presence& presence = {}) {
  test::NetworkRun run;
  net::RemoteSource clients(
      peers, [] { return true; }, presence);
  try {
    CellRunner runner(DataCatalog(""), {.threads = 1, .source = &clients});
    run.result = runner.run(test::cell_of(text), [](const RoundRow&) { return true; });
  } catch (const std::exception& error) {
    run.error = error.what();
  }
  return run;
}

// All messages arrive, one after another: exactly those that are awaited count, also in the second phase of a method.
TEST(DeliveryOfRuns, TheFirstMessagesCountAndNoOthers) {
  for (const std::string label : {"ef21", "powersgd"}) {
    test::MemoryPeers peers({"0-2", "3-6"}), others({"0-2", "3-6"});
    const test::NetworkRun run = run_on(peers, text_with_delivery("[delivery]\nkind = 'first'\nover_selection = 1.5\n", label));
    ASSERT_EQ(run.error, "");
    for (const RoundRow& row : run.result.rows) {
      if (row.round == 0) continue;
      EXPECT_EQ(row.clients, 5U) << "3 * 1.5, rounded up";
      EXPECT_EQ(row.refused, 2U) << label << ", round " << row.round;
    }
    const test::NetworkRun by_option = run_on(others, text_with_delivery("", label), {.over_select = 1.5});
    ASSERT_EQ(by_option.error, "");
    EXPECT_EQ(by_option.result.record.checksum, run.result.record.checksum) << "the option makes the same policy";
  }
}

TEST(DeliveryOfRuns, ADeadlineThatEveryoneMeetsChangesNothing) {
  test::MemoryPeers peers({"0-2", "3-6"});
  const test::NetworkRun run = run_on(peers, text_with_delivery("[delivery]\nkind = 'deadline'\ndeadline_s = 1000\n"));
  ASSERT_EQ(run.error, "");
  EXPECT_EQ(run.result.record.checksum, test::run_simulated(text_with_delivery("")).record.checksum);
}

// The clock reads the bits of the messages, wherever they come from.
TEST(DeliveryOfRuns, SimulatedTimesAreThoseOfASimulatedRun) {
  const std::string timing =
      "[network]\nkind = 'lognormal'\ndown = '1M'\nup = '100K'\nlatency = '10ms'\njitter = '5ms'\n"
      "[devices]\nkind = 'lognormal'\nflops = '1M'\nbandwidth = '1M'\n";
  for (const std::string label : {"ef14", "ef21", "powersgd"}) {
    test::MemoryPeers peers({"0-2", "3-6"});
    const test::NetworkRun run = run_on(peers, text_with_delivery(timing, label));
    const RunResult simulated = test::run_simulated(text_with_delivery(timing, label));
    ASSERT_EQ(run.error, "") << label;
    EXPECT_EQ(run.result.record.checksum, simulated.record.checksum) << label;
    ASSERT_EQ(run.result.rows.size(), simulated.rows.size());
    for (std::size_t r = 0; r < simulated.rows.size(); ++r)
      EXPECT_EQ(run.result.rows[r].simulated_s, simulated.rows[r].simulated_s) << label << ", round " << r;
    EXPECT_GT(simulated.rows.back().simulated_s, 0) << label;
  }
}

TEST(DeliveryOfRuns, AWrittenDeadlineEndsARoundAsTheOptionDoes) {
  const std::vector<test::Method> all = test::methods();
  test::Method method = *std::ranges::find(all, "ef21", &test::Method::label);
  method.more += "[delivery]\nkind = 'deadline'\ndeadline_s = 0.6\n";
  const auto silent_until_4 = [](const net::wire::Header& header) {
    return header.has_open() && header.open().round() >= 2 && header.open().round() < 4 ? test::Fault::mute : test::Fault::none;
  };
  const test::PresenceRun run = test::run_with_presence(test::text_of(method, "float32"), {}, {{"0-3"}, {"4-6", silent_until_4}});
  ASSERT_EQ(run.error, "");
  EXPECT_LT(run.longest_round_s, 1.6);
  for (const RoundRow& row : run.result.rows) EXPECT_EQ(row.refused, row.round == 2 || row.round == 3 ? 3U : 0U) << row.round;
}

TEST(DeliveryOfRuns, OptionsAndScenarioThatDisagreeAreRefusedWithBoth) {
  test::MemoryPeers peers({"0-6"});
  const auto error = [&peers](const std::string& delivery, const net::Presence& presence) {
    return run_on(peers, text_with_delivery("[delivery]\n" + delivery + "\n"), presence).error;
  };
  EXPECT_THAT(error("kind = 'deadline'\ndeadline_s = 3", {.deadline_s = 2}),
              AllOf(HasSubstr("delivery.kind"), HasSubstr("[delivery] says \"deadline\" (deadline_s = 3.0)"),
                    HasSubstr("--deadline means \"deadline\" (deadline_s = 2.0)")));
  EXPECT_THAT(error("kind = 'deadline'\ndeadline_s = 2", {.over_select = 2}), AllOf(HasSubstr("\"deadline\""), HasSubstr("--over-select")));
  EXPECT_THAT(error("kind = 'first'\nover_selection = 2", {.deadline_s = 2, .over_select = 2}),
              HasSubstr("--over-select and --deadline means \"first\" (over_selection = 2.0, deadline_s = 2.0)"));
  EXPECT_EQ(error("kind = 'first'\nover_selection = 2\ndeadline_s = 1000", {.deadline_s = 1000, .over_select = 2}), "");
  EXPECT_EQ(error("kind = 'all'", {.deadline_s = 1000}), "");
}

// A plain delivery: the round closes when half of the asked clients have answered.
class HalfOfThem final : public DeliveryPolicy {
 public:
  explicit HalfOfThem(const NoOptions&) {}
  [[nodiscard]] double decide(std::span<const double> arrival_s, std::size_t, std::span<std::uint8_t> counts) const override {
    std::vector<double> times(arrival_s.begin(), arrival_s.end());
    std::ranges::sort(times);
    const double closes = times[(times.size() - 1) / 2];
    std::ranges::transform(arrival_s, counts.begin(), [closes](double t) { return std::isfinite(t) && t <= closes ? 1 : 0; });
    return closes;
  }
};
FL_REGISTER_DELIVERY(HalfOfThem, NoOptions, "half_of_them", "", "");

// Peers whose clients 4-6 never answer: the others are more than half, and nobody waits for the rest.
TEST(DeliveryOfRuns, APolicyOfItsOwnClosesRoundsOverSockets) {
  const std::vector<test::Method> all = test::methods();
  test::Method method = *std::ranges::find(all, "ef21", &test::Method::label);
  method.more += "[delivery]\nkind = 'half_of_them'\n";
  const auto silent = [](const net::wire::Header& header) { return header.has_open() ? test::Fault::mute : test::Fault::none; };
  const test::PresenceRun run = test::run_with_presence(test::text_of(method, "float32"), {}, {{"0-3"}, {"4-6", silent}});
  ASSERT_EQ(run.error, "");
  for (const RoundRow& row : run.result.rows) EXPECT_EQ(row.refused, row.round == 0 ? 0U : 3U) << row.round;
}

}  // namespace
}  // namespace fl
