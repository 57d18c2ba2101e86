// Tests the policies that decide when a round closes and whose messages count, and their table in scenarios.
#include "server/delivery_policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "fl_core/config/error.hpp"
#include "scenarios/experiment/server_side.hpp"
#include "tests/support/run_text.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double kNever = std::numeric_limits<double>::infinity();

std::unique_ptr<DeliveryPolicy> policy_of(const std::string& kind, const std::vector<std::pair<std::string, double>>& options = {}) {
  Part part = default_part("delivery", kind);
  Schema schema = part.options.schema();
  for (const auto& [name, value] : options) EXPECT_EQ(schema.find(name)->assign(Value{value}), std::nullopt);
  return make_delivery(part);
}

struct Decided {
  double closes_s;
  std::vector<std::uint8_t> counts;
};

Decided decided(const DeliveryPolicy& policy, const std::vector<double>& arrival_s, std::size_t awaited) {
  Decided result{.closes_s = 0, .counts = std::vector<std::uint8_t>(arrival_s.size(), 7)};
  result.closes_s = policy.decide(arrival_s, awaited, result.counts);
  return result;
}

const std::vector<double> kArrivals = {3, 1, 2, kNever};

TEST(DeliveryPolicies, AllWaitsForEverybody) {
  const auto all = policy_of("all");
  EXPECT_TRUE(all->waits_for_all());
  EXPECT_EQ(all->over_selection(), 1);
  const Decided waits = decided(*all, kArrivals, 2), closes = decided(*all, {3, 1, 2, 8}, 2);
  EXPECT_EQ(waits.closes_s, kNever);
  EXPECT_THAT(waits.counts, ElementsAre(1, 1, 1, 0)) << "if it closed now";
  EXPECT_EQ(closes.closes_s, 8);
  EXPECT_THAT(closes.counts, ElementsAre(1, 1, 1, 1));
}

TEST(DeliveryPolicies, DeadlineClosesInTime) {
  const auto deadline = policy_of("deadline", {{"deadline_s", 2.5}});
  EXPECT_FALSE(deadline->waits_for_all());
  const Decided late = decided(*deadline, kArrivals, 4), early = decided(*deadline, {0.5, 1, 2, 0.25}, 4),
                exact = decided(*deadline, {2.5, 1, 2.6, 0.25}, 4), nobody = decided(*deadline, {kNever, kNever}, 2);
  EXPECT_EQ(late.closes_s, 2.5);
  EXPECT_THAT(late.counts, ElementsAre(0, 1, 1, 0));
  EXPECT_EQ(early.closes_s, 2) << "all are there";
  EXPECT_THAT(early.counts, ElementsAre(1, 1, 1, 1));
  EXPECT_EQ(exact.closes_s, 2.5);
  EXPECT_THAT(exact.counts, ElementsAre(1, 1, 0, 1)) << "in time is up to the deadline";
  EXPECT_EQ(nobody.closes_s, 2.5);
  EXPECT_THAT(nobody.counts, ElementsAre(0, 0));
}

TEST(DeliveryPolicies, FirstTakesTheFirstMessages) {
  const auto first = policy_of("first", {{"over_selection", 2}});
  EXPECT_FALSE(first->waits_for_all());
  EXPECT_EQ(first->over_selection(), 2);
  EXPECT_EQ(policy_of("first")->over_selection(), 1.3);
  const Decided two = decided(*first, kArrivals, 2), four = decided(*first, kArrivals, 4), tie = decided(*first, {2, 1, 2, 2}, 2);
  EXPECT_EQ(two.closes_s, 2);
  EXPECT_THAT(two.counts, ElementsAre(0, 1, 1, 0));
  EXPECT_EQ(four.closes_s, kNever) << "one is missing";
  EXPECT_THAT(four.counts, ElementsAre(1, 1, 1, 0));
  EXPECT_EQ(tie.closes_s, 2);
  EXPECT_THAT(tie.counts, ElementsAre(1, 1, 0, 0)) << "never more than are awaited";
}

TEST(DeliveryPolicies, FirstMayHaveADeadline) {
  const auto first = policy_of("first", {{"over_selection", 2}, {"deadline_s", 2.5}});
  const Decided enough = decided(*first, kArrivals, 2), late = decided(*first, kArrivals, 3), few = decided(*first, {9, kNever, 1, 8}, 2);
  EXPECT_EQ(enough.closes_s, 2);
  EXPECT_THAT(enough.counts, ElementsAre(0, 1, 1, 0));
  EXPECT_EQ(late.closes_s, 2.5);
  EXPECT_THAT(late.counts, ElementsAre(0, 1, 1, 0));
  EXPECT_EQ(few.closes_s, 2.5);
  EXPECT_THAT(few.counts, ElementsAre(0, 0, 1, 0));
}

// ---- scenarios

test::ScenarioText with_delivery(const std::string& lines) {
  test::ScenarioText text = test::quadratics();
  text.local = "kind = 'gradient'\nlearning_rate = 0.1";
  if (!lines.empty()) text.more = "[delivery]\n" + lines + "\n";
  return text;
}

std::string refusal_of(const std::string& lines) {
  try {
    (void)test::run_text(with_delivery(lines).str());
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(DeliveryOfScenarios, AllIsNotWritten) {
  const Cell without = parse_cells(with_delivery("").str(), "test.toml").at(0),
             all = parse_cells(with_delivery("kind = 'all'").str(), "test.toml").at(0),
             deadline = parse_cells(with_delivery("kind = 'deadline'\ndeadline_s = 2").str(), "test.toml").at(0),
             first = parse_cells(with_delivery("kind = 'first'").str(), "test.toml").at(0);
  EXPECT_EQ(without.hash, all.hash);
  EXPECT_THAT(without.resolved_toml, Not(HasSubstr("delivery")));
  EXPECT_THAT(deadline.resolved_toml, HasSubstr("[delivery]\nkind = \"deadline\"\ndeadline_s = 2.0\n"));
  EXPECT_THAT(first.resolved_toml, HasSubstr("[delivery]\nkind = \"first\"\nover_selection = 1.3\n"));
  EXPECT_NE(without.hash, deadline.hash);
  EXPECT_NE(deadline.hash, first.hash);
}

TEST(DeliveryOfScenarios, WrongNumbersAreRefused) {
  const auto deadline = [](const std::string& value) { return refusal_of("kind = 'deadline'\ndeadline_s = " + value); };
  EXPECT_THAT(deadline("0"), AllOf(HasSubstr("test.toml:"), HasSubstr("delivery.deadline_s"), HasSubstr("must be > 0")));
  EXPECT_THAT(deadline("-1.5"), AllOf(HasSubstr("delivery.deadline_s"), HasSubstr("is -1.5")));
  EXPECT_THAT(deadline("nan"), AllOf(HasSubstr("delivery.deadline_s"), HasSubstr("must be finite")));
  EXPECT_THAT(deadline("inf"), AllOf(HasSubstr("delivery.deadline_s"), HasSubstr("is inf")));
  EXPECT_THAT(refusal_of("kind = 'deadline'"), AllOf(HasSubstr("delivery.deadline_s"), HasSubstr("missing")));
  EXPECT_THAT(refusal_of("kind = 'first'\nover_selection = 0.9"), AllOf(HasSubstr("delivery.over_selection"), HasSubstr("must be >= 1")));
  EXPECT_THAT(refusal_of("kind = 'first'\ndeadline_s = 0"), AllOf(HasSubstr("delivery.deadline_s"), HasSubstr("must be > 0")));
  EXPECT_THAT(refusal_of("kind = 'frist'"), HasSubstr("did you mean \"first\"?"));
  EXPECT_THAT(refusal_of("kind = 'all'\ndeadline_s = 3"), HasSubstr("deadline_s"));
}

// No result depends on a time that a machine has measured.
TEST(DeliveryOfScenarios, ASimulatedRunHasNoTimesOfArrival) {
  for (const std::string lines : {"kind = 'deadline'\ndeadline_s = 2", "kind = 'first'\nover_selection = 2"})
    EXPECT_THAT(refusal_of(lines), AllOf(HasSubstr("delivery.kind"), HasSubstr("need [network] or [devices] in a simulated run"),
                                         HasSubstr("fedbits serve"), HasSubstr("\"all\"")));
  EXPECT_EQ(refusal_of("kind = 'all'"), "");
  EXPECT_EQ(test::run_text(with_delivery("kind = 'all'").str())[0].record.checksum,
            test::run_text(with_delivery("").str())[0].record.checksum);
}

}  // namespace
}  // namespace fl
