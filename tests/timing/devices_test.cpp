// Tests the kinds of devices.
#include "timing/devices.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/timing/timed_parts.hpp"

namespace fl {
namespace {

using test::open_devices;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::size_t kDevices = 2000;

Value tier_of(const std::string& name, double share, double flops) {
  Value value;
  value.data = Value::Table{{"name", Value{name}}, {"share", Value{share}}, {"flops", Value{flops}}, {"bandwidth", Value{2 * flops}}};
  return value;
}
Value list_of(Value::List list) {
  Value value;
  value.data = std::move(list);
  return value;
}

TEST(DevicesTest, WorkTakesTheLongerOfItsTwoTimes) {
  const auto devices = open_devices("constant", {{"flops", Value{std::string("2G")}}, {"bandwidth", Value{1e9}}}, {.num_clients = 3});
  const DeviceRates rates = devices->rates(2);
  EXPECT_EQ(rates.operations_per_s, 2e9);
  EXPECT_EQ(rates.bytes_per_s, 1e9);
  EXPECT_EQ(rates.seconds({.operations = 4e9, .bytes = 1e9}), 2);
  EXPECT_EQ(rates.seconds({.operations = 4e9, .bytes = 3e9}), 3);
  EXPECT_TRUE(std::isinf(rates.memory_bytes));
  EXPECT_EQ(open_devices("none", {}, {.num_clients = 3})->rates(0).seconds({1e30, 1e30}), 0);
}

TEST(DevicesTest, MemoryIsCountedInPowersOf1024) {
  const auto devices = open_devices("constant", {{"flops", Value{1e9}}, {"bandwidth", Value{1e9}}, {"memory", Value{std::string("2G")}}},
                                    {.num_clients = 1});
  EXPECT_EQ(devices->rates(0).memory_bytes, 2147483648.0);
}

TEST(DevicesTest, LognormalRatesHaveTheirMedianAndSpread) {
  const auto devices = open_devices(
      "lognormal", {{"flops", Value{1e10}}, {"bandwidth", Value{1e9}}, {"flops_sigma", Value{1.0}}, {"bandwidth_sigma", Value{0.0}}},
      {.num_clients = kDevices, .seed = 5});
  std::vector<double> logs;
  for (std::uint32_t i = 0; i < kDevices; ++i) {
    logs.push_back(std::log(devices->rates(i).operations_per_s / 1e10));
    EXPECT_EQ(devices->rates(i).bytes_per_s, 1e9);
  }
  double mean = 0, squares = 0;
  for (const double x : logs) mean += x / kDevices;
  for (const double x : logs) squares += (x - mean) * (x - mean) / kDevices;
  EXPECT_NEAR(mean, 0, 4 / std::sqrt(1.0 * kDevices));
  EXPECT_NEAR(squares, 1, 4 * std::sqrt(2.0 / kDevices));
}

TEST(DevicesTest, TiersHaveTheirShares) {
  const auto devices =
      open_devices("tiers", {{"tiers", list_of({tier_of("fast", 0.2, 1e12), tier_of("slow", 0.5, 1e9), tier_of("middle", 0.3, 1e10)})}},
                   {.num_clients = kDevices});
  EXPECT_THAT(devices->tiers(), ElementsAre("slow", "middle", "fast")) << "from the slowest on";
  std::vector<double> counts(3);
  for (std::uint32_t i = 0; i < kDevices; ++i) {
    ++counts[devices->tier(i)];
    EXPECT_EQ(devices->rates(i).operations_per_s, std::vector<double>({1e9, 1e10, 1e12})[devices->tier(i)]);
  }
  const std::vector<double> shares = {0.5, 0.3, 0.2};
  for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(counts[k] / kDevices, shares[k], 4 * std::sqrt(shares[k] * (1 - shares[k]) / kDevices));
}

// With correlation 1 the clients with the fewest rows have the slowest devices, exactly by shares.
TEST(DevicesTest, TiersFollowTheRows) {
  const std::vector<std::uint32_t> rows = {50, 10, 30, 20, 40, 80, 60, 70};
  const auto tiers = [&](double correlation) {
    const auto devices = open_devices("tiers",
                                      {{"tiers", list_of({tier_of("fast", 0.25, 1e12), tier_of("slow", 0.75, 1e9)})},
                                       {"follows", Value{std::string("rows")}},
                                       {"correlation", Value{correlation}}},
                                      {.num_clients = 8, .rows = rows});
    std::vector<std::size_t> result;
    for (std::uint32_t i = 0; i < 8; ++i) result.push_back(devices->tier(i));
    return result;
  };
  EXPECT_THAT(tiers(1), ElementsAre(0, 0, 0, 0, 0, 1, 0, 1));
  EXPECT_THAT(tiers(-1), ElementsAre(0, 1, 0, 1, 0, 0, 0, 0));
}

TEST(DevicesTest, PresetsAreFiguresTimesEfficiency) {
  const auto preset = [](const std::string& name, test::PartSettings more = {}) {
    more.emplace_back("preset", Value{name});
    return open_devices("preset", more, {.num_clients = kDevices});
  };
  EXPECT_DOUBLE_EQ(preset("server")->rates(0).operations_per_s, 0.3 * 19.5e12);
  EXPECT_DOUBLE_EQ(preset("server")->rates(0).bytes_per_s, 0.8 * 2.039e12);
  EXPECT_DOUBLE_EQ(preset("laptop", {{"efficiency", Value{1.0}}})->rates(0).operations_per_s, 2.6e12);
  const auto phones = preset("phones");
  EXPECT_THAT(phones->tiers(), ElementsAre("entry", "middle", "premium"));
  double premium = 0;
  for (std::uint32_t i = 0; i < kDevices; ++i) premium += phones->tier(i) == 2 ? 1.0 / kDevices : 0;
  EXPECT_NEAR(premium, 0.24, 0.04);
  EXPECT_THAT(test::refusal([&] { (void)preset("phone"); }), HasSubstr("did you mean \"phones\"?"));
}

TEST(DevicesTest, ADeviceForEachClientFromAFile) {
  const test::TextFile file("devices.csv", "bandwidth,client,flops,memory\r\n2e9,*,1e9,4e9\n\n 1e9 , 1 , 5e8 , 1e9\r\n");
  const auto devices = open_devices("csv", {{"path", Value{file.path()}}}, {.num_clients = 3});
  EXPECT_EQ(devices->rates(0).operations_per_s, 1e9);
  EXPECT_EQ(devices->rates(1).operations_per_s, 5e8);
  EXPECT_EQ(devices->rates(1).bytes_per_s, 1e9);
  EXPECT_EQ(devices->rates(2).memory_bytes, 4e9);
}

TEST(DevicesTest, ErrorsOfAFileNameItsLine) {
  const auto refused = [](const std::string& text) {
    const test::TextFile file("bad.csv", text);
    return test::refusal([&] { (void)open_devices("csv", {{"path", Value{file.path()}}}, {.num_clients = 2}); });
  };
  const std::string head = "client,flops,bandwidth\n";
  EXPECT_THAT(refused(head + "0,1e9,1e9\n1,0,1e9\n"), AllOf(HasSubstr("path: "), HasSubstr("bad.csv:3: flops must be above 0, is 0")));
  EXPECT_THAT(refused(head + "*,1e9,-1\n"), HasSubstr("bad.csv:2: bandwidth must be above 0, is -1"));
  EXPECT_THAT(refused(head + "*,1e9,inf\n"), HasSubstr("bad.csv:2: bandwidth must be a finite number, is \"inf\""));
  EXPECT_THAT(refused(head + "*,nan,1\n"), HasSubstr("flops must be a finite number"));
  EXPECT_THAT(refused(head + "*,fast,1\n"), HasSubstr("flops must be a finite number, is \"fast\""));
  EXPECT_THAT(refused(head + "*,1e9\n"), HasSubstr("bad.csv:2: expected 3 cells, as in the first line, has 2"));
  EXPECT_THAT(refused(head + "2,1e9,1e9\n"), HasSubstr("bad.csv:2: client 2, but clients are 0 to 1"));
  EXPECT_THAT(refused(head + "-1,1e9,1e9\n"), HasSubstr("client must be a whole number from 0"));
  EXPECT_THAT(refused(head + "0,1e9,1e9\n"), HasSubstr("has no line for client 1"));
  EXPECT_THAT(refused(head + "*,1e9,1e9\n1,1,1\n1,2,2\n"), HasSubstr("bad.csv:4: the client has a line already: line 3"));
  EXPECT_THAT(refused(head), HasSubstr("has no line of numbers"));
  EXPECT_THAT(refused(""), HasSubstr("has no line of numbers"));
  EXPECT_THAT(refused("client,flosp,bandwidth\n"), HasSubstr("bad.csv:1: the first line must name columns"));
  EXPECT_THAT(refused("client,flosp,bandwidth\n"), HasSubstr("did you mean \"flops\"?"));
  EXPECT_THAT(refused("client,flops\n"), HasSubstr("the column \"bandwidth\" is missing"));
  EXPECT_THAT(refused("client,flops,flops\n"), HasSubstr("the column \"flops\" is there twice"));
  EXPECT_THAT(test::refusal([] {
                (void)open_devices("csv", {{"path", Value{std::string("/no/such.csv")}}}, {.num_clients = 2});
              }),
              HasSubstr("cannot read '/no/such.csv'"));
}

}  // namespace
}  // namespace fl
