// Tests the kinds of links.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/timing/timed_parts.hpp"
#include "timing/network.hpp"
#include "timing/piece_times.hpp"

namespace fl {
namespace {

using test::open_network;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kNeverAgain = std::numeric_limits<double>::infinity();
constexpr std::size_t kLinks = 2000;

Value text_value(const std::string& text) { return Value{text}; }

TEST(NetworksTest, ConstantLinksTakeUnits) {
  const auto network = open_network("constant",
                                    {{"down", text_value("100M")},
                                     {"up", Value{2e7}},
                                     {"latency", text_value("50ms")},
                                     {"jitter", text_value("10us")},
                                     {"loss", Value{0.5}}},
                                    {.num_clients = 2});
  const LinkRates link = network->link(1, 1e9);
  EXPECT_EQ(link, (LinkRates{1e8, 2e7, 0.05, 1e-5, 0.5}));
  EXPECT_EQ(network->next_change(1, 3), kNeverAgain);
}

TEST(NetworksTest, LognormalRatesShareTheClientsQuantile) {
  const auto network =
      open_network("lognormal", {{"down", Value{1e8}}, {"up", Value{1e7}}, {"down_sigma", Value{1.0}}, {"up_sigma", Value{0.5}}},
                   {.num_clients = kLinks});
  double mean = 0;
  for (std::uint32_t i = 0; i < kLinks; ++i) {
    const LinkRates link = network->link(i, 0);
    EXPECT_NEAR(std::log(link.down / 1e8), 2 * std::log(link.up / 1e7), 1e-9) << "a client is fast in both directions";
    mean += std::log(link.down / 1e8) / kLinks;
  }
  EXPECT_NEAR(mean, 0, 4 / std::sqrt(1.0 * kLinks));
}

TEST(NetworksTest, PresetsHaveTheirFigures) {
  const auto preset = [](const std::string& name) {
    return open_network("preset", {{"preset", Value{name}}}, {.num_clients = 1})->link(0, 0);
  };
  EXPECT_EQ(preset("data_center"), (LinkRates{1e11, 1e11, 1e-5}));
  EXPECT_EQ(preset("lan"), (LinkRates{1e9, 1e9, 1e-4}));
  EXPECT_EQ(preset("3g"), (LinkRates{1.6e6, 768e3, 0.15}));
  double last = kNeverAgain;
  for (const char* name : {"data_center", "lan", "wifi", "5g", "4g", "3g"}) {
    EXPECT_LT(preset(name).up, last) << name;
    last = preset(name).up;
  }
  EXPECT_THAT(test::refusal([&] { (void)preset("wfii"); }), HasSubstr("did you mean \"wifi\"?"));
}

TEST(NetworksTest, PresetsAreMixedWithShares) {
  Value wifi, mobile, tiers;
  wifi.data = Value::Table{{"preset", text_value("wifi")}, {"share", Value{0.75}}, {"jitter", text_value("5ms")}};
  mobile.data = Value::Table{{"name", text_value("train")}, {"share", Value{0.25}}, {"down", text_value("2M")}, {"up", text_value("1M")}};
  tiers.data = Value::List{wifi, mobile};
  const auto network = open_network("tiers", {{"tiers", tiers}}, {.num_clients = kLinks});
  EXPECT_THAT(network->tiers(), ElementsAre("train", "wifi"));
  double slow = 0;
  for (std::uint32_t i = 0; i < kLinks; ++i) {
    slow += network->tier(i) == 0 ? 1.0 / kLinks : 0;
    EXPECT_EQ(network->link(i, 0), network->tier(i) == 0 ? (LinkRates{2e6, 1e6}) : (LinkRates{193.7e6, 22.6e6, 7e-3, 5e-3}));
  }
  EXPECT_NEAR(slow, 0.25, 4 * std::sqrt(0.25 * 0.75 / kLinks));
}

// ---- traces

const std::string kTraceHead = "time_s,client,down,up,latency\n";

TEST(NetworksTest, ATraceHoldsUntilItsNextLine) {
  const test::TextFile file("rates.csv", kTraceHead + "0,*,100,10,0.5\n0,1,200,20,0\n30,*,300,30,0.25\n60,*,400,40,0\n");
  const auto network = open_network("trace", {{"path", Value{file.path()}}, {"jitter", Value{2.0}}}, {.num_clients = 3});
  EXPECT_EQ(network->link(0, 0), (LinkRates{100, 10, 0.5, 2}));
  EXPECT_EQ(network->link(2, 29.999), (LinkRates{100, 10, 0.5, 2}));
  EXPECT_EQ(network->link(2, 30), (LinkRates{300, 30, 0.25, 2}));
  EXPECT_EQ(network->link(2, 1e9), (LinkRates{400, 40, 0, 2}));
  EXPECT_EQ(network->link(1, 1e9), (LinkRates{200, 20, 0, 2}));
  EXPECT_EQ(network->next_change(0, 0), 30);
  EXPECT_EQ(network->next_change(0, 30), 60);
  EXPECT_EQ(network->next_change(0, 60), kNeverAgain);
  EXPECT_EQ(network->next_change(1, 0), kNeverAgain);
}

TEST(NetworksTest, ATraceWithoutClientsIsEverybodys) {
  const test::TextFile file("all.csv", "down,up,time_s\n100,10,0\n200,20,5\n");
  const auto network = open_network("trace", {{"path", Value{file.path()}}, {"latency", text_value("20ms")}}, {.num_clients = 2});
  EXPECT_EQ(network->link(1, 4), (LinkRates{100, 10, 0.02}));
  EXPECT_EQ(network->link(0, 5), (LinkRates{200, 20, 0.02}));
}

TEST(NetworksTest, ATraceRepeats) {
  const test::TextFile file("again.csv", "time_s,down,up\n0,100,10\n20,200,20\n");
  const auto network =
      open_network("trace", {{"path", Value{file.path()}}, {"repeat", Value{true}}, {"period", text_value("60s")}}, {.num_clients = 1});
  for (const double cycle : {0.0, 60.0, 60e6}) {
    EXPECT_EQ(network->link(0, cycle + 19).down, 100);
    EXPECT_EQ(network->link(0, cycle + 20).down, 200);
    EXPECT_EQ(network->link(0, cycle + 59).down, 200);
    EXPECT_EQ(network->next_change(0, cycle), cycle + 20);
    EXPECT_EQ(network->next_change(0, cycle + 20), cycle + 60);
  }
}

TEST(NetworksTest, ErrorsOfATraceNameItsLine) {
  const auto refused = [](const std::string& text, test::PartSettings settings = {}) {
    const test::TextFile file("bad_rates.csv", text);
    settings.emplace_back("path", Value{file.path()});
    return test::refusal([&] { (void)open_network("trace", settings, {.num_clients = 2}); });
  };
  EXPECT_THAT(refused(kTraceHead + "1,*,100,10,0\n"), AllOf(HasSubstr("bad_rates.csv:2: "), HasSubstr("gap before it")));
  EXPECT_THAT(refused(kTraceHead + "0,*,100,10,0\n5,*,1,1,0\n3,*,1,1,0\n"), HasSubstr("bad_rates.csv:4: times of a client must ascend: 3"));
  EXPECT_THAT(refused(kTraceHead + "0,*,100,10,0\n0,*,1,1,0\n"), HasSubstr("times of a client must ascend"));
  EXPECT_THAT(refused(kTraceHead + "0,*,100,0,0\n"), HasSubstr("bad_rates.csv:2: up must be above 0, is 0"));
  EXPECT_THAT(refused(kTraceHead + "0,*,-3,10,0\n"), HasSubstr("down must be above 0, is -3"));
  EXPECT_THAT(refused(kTraceHead + "0,*,inf,10,0\n"), HasSubstr("down must be a finite number"));
  EXPECT_THAT(refused(kTraceHead + "0,*,3,10,-1\n"), HasSubstr("latency must be at least 0"));
  EXPECT_THAT(refused(kTraceHead + "0,1,3,10,0\n"), HasSubstr("has no line for client 0"));
  EXPECT_THAT(refused(kTraceHead), HasSubstr("has no line of numbers"));
  EXPECT_THAT(refused(kTraceHead + "0,*,1,1,0\n60,*,1,1,0\n", {{"repeat", Value{true}}, {"period", Value{60.0}}}),
              HasSubstr("time_s must be below network.period = 60"));
  EXPECT_THAT(refused(kTraceHead + "0,*,1,1,0\n", {{"repeat", Value{true}}}), HasSubstr("period: is missing"));
  EXPECT_THAT(refused(kTraceHead + "0,*,1,1,0\n", {{"period", Value{60.0}}}), HasSubstr("no effect without repeat"));
}

// Whatever is rounded: the piece at the next time is the next piece, and times go on.
TEST(PieceTimesTest, TheNextTimeIsInTheNextPiece) {
  for (const double period : {0.3, 1.0, 86400.0, 1e-3}) {
    const PieceTimes times({0, 0.1 * period, 0.7 * period}, period);
    double t = 0;
    for (std::size_t i = 0; i < 20'000; ++i) {
      EXPECT_EQ(times.piece(t), i % 3);
      const double next = times.next(t);
      ASSERT_GT(next, t);
      EXPECT_EQ(times.piece(std::nextafter(next, 0.0)), i % 3);
      t = next;
    }
    EXPECT_NEAR(t, 20'000 / 3 * period + 0.7 * period, 1e-6 * t);
  }
}

}  // namespace
}  // namespace fl
