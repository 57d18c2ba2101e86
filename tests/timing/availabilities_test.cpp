// Tests when clients can be reached.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/timing/timed_parts.hpp"
#include "timing/availability.hpp"

namespace fl {
namespace {

using test::open_availability;
using testing::AllOf;
using testing::HasSubstr;

constexpr double kNoChange = std::numeric_limits<double>::infinity();

TEST(AvailabilitiesTest, AlwaysIsAlways) {
  const auto always = open_availability("always", {}, {.num_clients = 2});
  EXPECT_TRUE(always->is_here(1, 1e12));
  EXPECT_EQ(always->next_change(1, 0), kNoChange);
}

// ---- markov

std::unique_ptr<Availability> chain(double on, double off, std::size_t clients, std::uint64_t seed = 1, test::PartSettings more = {}) {
  more.insert(more.end(), {{"mean_on_s", Value{on}}, {"mean_off_s", Value{off}}});
  return open_availability("markov", more, {.num_clients = clients, .seed = seed});
}

// Walks along the changes: times on and off have the means, variances and independence of exponential ones, over the borders of blocks too.
TEST(AvailabilitiesTest, MarkovTimesAreExponential) {
  const auto availability = chain(30, 10, 20);
  std::vector<double> on, off;
  for (std::uint32_t client = 0; client < 20; ++client) {
    double time = availability->next_change(client, 0);
    for (int i = 0; i < 1000; ++i) {
      const double next = availability->next_change(client, time);
      (availability->is_here(client, time) ? on : off).push_back(next - time);
      time = next;
    }
  }
  const auto check = [](const std::vector<double>& times, double mean) {
    const auto n = static_cast<double>(times.size());
    double sum = 0, squares = 0, above = 0, products = 0;
    for (const double t : times) {
      sum += t / n;
      squares += t * t / n;
      above += t > 2 * mean ? 1 / n : 0;
    }
    for (std::size_t i = 0; i + 1 < times.size(); ++i) products += (times[i] - mean) * (times[i + 1] - mean) / n;
    EXPECT_NEAR(sum, mean, 4 * mean / std::sqrt(n));
    EXPECT_NEAR(squares, 2 * mean * mean, 4 * std::sqrt(20.0) * mean * mean / std::sqrt(n));
    EXPECT_NEAR(above, std::exp(-2), 4 * std::sqrt(std::exp(-2) / n));
    EXPECT_NEAR(products, 0, 4 * mean * mean / std::sqrt(n));
  };
  check(on, 30);
  check(off, 10);
}

// P(on at t + s | on at t) = p + (1 - p) exp(-s (1 / on + 1 / off)), at times within a block and around its end, which is at 640 s.
TEST(AvailabilitiesTest, MarkovStatesHaveTheProbabilitiesOfTheChain) {
  const std::size_t N = 20'000;
  const auto availability = chain(30, 10, N, 7);
  for (const double t : {0.0, 100.0, 638.0, 640.0, 12345.0})
    for (const double s : {1.0, 5.0, 40.0}) {
      double here = 0, stays = 0;
      for (std::uint32_t i = 0; i < N; ++i) {
        const bool is_here = availability->is_here(i, t);
        here += is_here ? 1 : 0;
        stays += is_here && availability->is_here(i, t + s) ? 1 : 0;
      }
      EXPECT_NEAR(here / N, 0.75, 4 * std::sqrt(0.75 * 0.25 / N)) << t;
      EXPECT_NEAR(stays / here, 0.75 + 0.25 * std::exp(-s * (1 / 30.0 + 1 / 10.0)), 0.02) << t << " " << s;
    }
}

TEST(AvailabilitiesTest, MarkovAnswersDoNotDependOnTheOrderOfQuestions) {
  const auto forward = chain(3, 5, 4), backward = chain(3, 5, 4);
  std::vector<bool> a, b;
  for (double t = 0; t < 1000; t += 0.7)
    for (std::uint32_t i = 0; i < 4; ++i) a.push_back(forward->is_here(i, t));
  std::vector<double> times;
  for (double t = 0; t < 1000; t += 0.7) times.push_back(t);
  for (auto t = times.rbegin(); t != times.rend(); ++t)
    for (std::uint32_t i = 4; i-- > 0;) b.push_back(backward->is_here(i, *t));
  std::reverse(b.begin(), b.end());
  EXPECT_EQ(a, b);
  EXPECT_TRUE(chain(3, 5, 4)->next_change(0, 1e10) > 1e10) << "without a walk from time 0";
}

TEST(AvailabilitiesTest, MarkovSharesFollowTheRows) {
  const std::size_t N = 200;
  const std::vector<std::uint32_t> rows = test::mixed_rows(N);
  const auto availability = open_availability("markov",
                                              {{"mean_on_s", Value{10.0}},
                                               {"mean_off_s", Value{10.0}},
                                               {"share_sigma", Value{1.5}},
                                               {"follows", Value{std::string("rows")}},
                                               {"correlation", Value{1.0}}},
                                              {.num_clients = N, .rows = rows});
  std::vector<double> share(N);
  for (std::uint32_t i = 0; i < N; ++i)
    for (double t = 0; t < 40'000; t += 20) share[i] += availability->is_here(i, t) ? 1.0 / 2000 : 0;
  EXPECT_GT(test::rank_correlation(share, {rows.begin(), rows.end()}), 0.98);
}

TEST(AvailabilitiesTest, MarkovRefusesWhatHasNoEffect) {
  EXPECT_THAT(test::refusal([] { (void)chain(1, 2000, 2); }), HasSubstr("mean_on_s"));
  EXPECT_THAT(test::refusal([] { (void)chain(1, 1, 2, 1, {{"follows", Value{std::string("rows")}}}); }), HasSubstr("share_sigma = 0"));
  EXPECT_THAT(test::refusal([] { (void)chain(0, 1, 2); }), HasSubstr("mean_on_s"));
}

// ---- day and night

TEST(AvailabilitiesTest, DaysHaveTheirShareAndPeriod) {
  for (const double share : {0.1, 0.5, 0.9, 1.0}) {
    const auto days = open_availability("day_and_night", {{"period", Value{100.0}}, {"share", Value{share}}}, {.num_clients = 50});
    for (std::uint32_t i = 0; i < 50; ++i) {
      double here = 0;
      for (int step = 0; step < 10'000; ++step) here += days->is_here(i, 0.01 * step + 0.005) ? 1e-4 : 0;
      EXPECT_NEAR(here, share, 2e-4);
      EXPECT_EQ(days->is_here(i, 12.5), days->is_here(i, 100 * 365 + 12.5));
      EXPECT_EQ(std::isinf(days->next_change(i, 3)), share == 1);
    }
  }
}

TEST(AvailabilitiesTest, DaysBeginInTimeZones) {
  const auto begins_of = [](test::PartSettings settings) {
    settings.insert(settings.end(), {{"period", Value{240.0}}, {"share", Value{0.25}}});
    const auto days = open_availability("day_and_night", settings, {.num_clients = 400});
    std::vector<double> begins;
    for (std::uint32_t i = 0; i < 400; ++i) {
      double time = days->next_change(i, 240);
      if (!days->is_here(i, time)) time = days->next_change(i, time);
      begins.push_back(std::fmod(time, 240));
    }
    std::ranges::sort(begins);
    return begins;
  };
  std::vector<double> zones = begins_of({{"zones", Value{std::int64_t{4}}}});
  EXPECT_NEAR(static_cast<double>(std::ranges::count(zones, 60.0)), 100, 40);
  zones.erase(std::unique(zones.begin(), zones.end()), zones.end());
  EXPECT_THAT(zones, testing::ElementsAre(0, 60, 120, 180));
  const std::vector<double> spread = begins_of({}), narrow = begins_of({{"spread", Value{0.1}}}),
                            together = begins_of({{"spread", Value{0.0}}});
  EXPECT_GT(spread.back() - spread.front(), 220);
  EXPECT_LE(narrow.back(), 24);
  EXPECT_EQ(together.back(), 0);
}

// ---- traces

TEST(AvailabilitiesTest, ATraceHasIntervals) {
  const test::TextFile file("hours.csv", "client,from_s,until_s\n*,0,10\n*,10,20\n*,30,40\n1,5,6\n");
  const auto once = open_availability("trace", {{"path", Value{file.path()}}}, {.num_clients = 2});
  EXPECT_TRUE(once->is_here(0, 0));
  EXPECT_TRUE(once->is_here(0, 10));
  EXPECT_FALSE(once->is_here(0, 20));
  EXPECT_FALSE(once->is_here(0, 1e6));
  EXPECT_EQ(once->next_change(0, 0), 20) << "intervals that touch are one";
  EXPECT_EQ(once->next_change(0, 20), 30);
  EXPECT_EQ(once->next_change(0, 40), kNoChange);
  EXPECT_EQ(once->next_change(1, 0), 5);
  const auto again =
      open_availability("trace", {{"path", Value{file.path()}}, {"repeat", Value{true}}, {"period", Value{40.0}}}, {.num_clients = 2});
  EXPECT_EQ(again->next_change(0, 30), 60) << "the end of a period is no change for a client that is here";
  EXPECT_TRUE(again->is_here(0, 4000));
  EXPECT_EQ(again->next_change(1, 4006), 4045);
}

TEST(AvailabilitiesTest, ErrorsOfATraceNameItsLine) {
  const auto refused = [](const std::string& lines, test::PartSettings settings = {}) {
    const test::TextFile file("bad_hours.csv", "client,from_s,until_s\n" + lines);
    settings.emplace_back("path", Value{file.path()});
    return test::refusal([&] { (void)open_availability("trace", settings, {.num_clients = 2}); });
  };
  EXPECT_THAT(refused("*,5,5\n"), HasSubstr("bad_hours.csv:2: an interval must end after it begins, is 5"));
  EXPECT_THAT(refused("*,-1,5\n"), HasSubstr("from_s must be at least 0"));
  EXPECT_THAT(refused("*,0,5\n*,4,6\n"), AllOf(HasSubstr("bad_hours.csv:3: "), HasSubstr("without overlaps")));
  EXPECT_THAT(refused("*,8,9\n*,4,6\n"), HasSubstr("must ascend"));
  EXPECT_THAT(refused("*,0,nan\n"), HasSubstr("until_s must be a finite number"));
  EXPECT_THAT(refused("1,0,1\n"), HasSubstr("has no line for client 0"));
  EXPECT_THAT(refused("*,0,61\n", {{"repeat", Value{true}}, {"period", Value{60.0}}}), HasSubstr("availability.period = 60"));
}

}  // namespace
}  // namespace fl
