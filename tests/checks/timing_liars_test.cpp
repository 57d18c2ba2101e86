// Tests the checks of devices, networks and availabilities with parts that have one fault each.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

#include "checks/check.hpp"
#include "fl_core/config/registry.hpp"
#include "timing/availability.hpp"
#include "timing/devices.hpp"
#include "timing/network.hpp"

namespace fl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr double kNotAgain = std::numeric_limits<double>::infinity();

// The names of the checks that found something in a part of the clock.
std::vector<std::string> found_faults(const std::string& role, const std::string& part) {
  std::vector<std::string> failed;
  for (const checks::Check& check : checks::checks_of(role)) {
    checks::Findings findings;
    check.run(part, findings);
    if (!findings.empty()) failed.push_back(check.name);
  }
  return failed;
}

template <int kFault>
class FaultyDevices final : public Devices {
 public:
  explicit FaultyDevices(const NoOptions&) {}
  [[nodiscard]] DeviceRates rates(std::uint32_t client) const override {
    if (kFault == 1 && client == 1) return {0, 1e9};
    if (kFault == 2) return {1e9, std::numeric_limits<double>::quiet_NaN()};
    if (kFault == 3) return {1e9 + ++calls_};
    return {1e9, 1e9};
  }
  [[nodiscard]] std::size_t tier(std::uint32_t client) const override { return kFault == 4 ? client : 0; }

 private:
  mutable double calls_ = 0;
};
FL_REGISTER_DEVICES(FaultyDevices<0>, NoOptions, "sound_devices", "", "");
FL_REGISTER_DEVICES(FaultyDevices<1>, NoOptions, "no_operations", "", "");
FL_REGISTER_DEVICES(FaultyDevices<2>, NoOptions, "nan_bytes", "", "");
FL_REGISTER_DEVICES(FaultyDevices<3>, NoOptions, "speeds_up", "", "");
FL_REGISTER_DEVICES(FaultyDevices<4>, NoOptions, "nameless_kinds", "", "");

TEST(FaultyTiming, Devices) {
  EXPECT_THAT(found_faults("devices", "sound_devices"), IsEmpty());
  EXPECT_THAT(found_faults("devices", "no_operations"), ElementsAre("rates"));
  EXPECT_THAT(found_faults("devices", "nan_bytes"), testing::Contains("rates"));
  EXPECT_THAT(found_faults("devices", "speeds_up"), ElementsAre("repeats"));
  EXPECT_THAT(found_faults("devices", "nameless_kinds"), ElementsAre("rates"));
}

// Its rate halves every 10 s.
template <int kFault>
class FaultyNetwork final : public Network {
 public:
  explicit FaultyNetwork(const NoOptions&) {}
  [[nodiscard]] LinkRates link(std::uint32_t, double now_s) const override {
    if (now_s > last_) last_ = now_s;
    const double rate = 1e6 * std::pow(0.5, std::fmod(std::floor((kFault == 5 ? last_ : now_s) / 10), 20));
    return {.down = kFault == 1 ? -rate : rate,
            .up = rate,
            .latency_s = kFault == 2 ? kNotAgain : 0,
            .jitter_s = 0,
            .loss = kFault == 3 ? 1.0 : 0.0};
  }
  [[nodiscard]] double next_change(std::uint32_t, double now_s) const override {
    if (kFault == 4) return now_s;
    return kFault == 6 ? kNotAgain : 10 * (std::floor(now_s / 10) + 1);
  }

 private:
  mutable double last_ = 0;
};
FL_REGISTER_NETWORK(FaultyNetwork<0>, NoOptions, "sound_network", "", "");
FL_REGISTER_NETWORK(FaultyNetwork<1>, NoOptions, "backwards", "", "");
FL_REGISTER_NETWORK(FaultyNetwork<2>, NoOptions, "arrives_never", "", "");
FL_REGISTER_NETWORK(FaultyNetwork<3>, NoOptions, "loses_all", "", "");
FL_REGISTER_NETWORK(FaultyNetwork<4>, NoOptions, "changes_now", "", "");
FL_REGISTER_NETWORK(FaultyNetwork<5>, NoOptions, "remembers_times", "", "");
FL_REGISTER_NETWORK(FaultyNetwork<6>, NoOptions, "changes_silently", "", "");

TEST(FaultyTiming, Networks) {
  EXPECT_THAT(found_faults("network", "sound_network"), IsEmpty());
  EXPECT_THAT(found_faults("network", "backwards"), ElementsAre("rates"));
  EXPECT_THAT(found_faults("network", "arrives_never"), ElementsAre("rates"));
  EXPECT_THAT(found_faults("network", "loses_all"), ElementsAre("rates"));
  EXPECT_THAT(found_faults("network", "changes_now"), ElementsAre("changes"));
  EXPECT_THAT(found_faults("network", "remembers_times"), testing::Contains("repeats"));
  EXPECT_THAT(found_faults("network", "changes_silently"), ElementsAre("changes"));
}

// Here for 10 s, away for 10 s.
template <int kFault>
class FaultyAvailability final : public Availability {
 public:
  explicit FaultyAvailability(const NoOptions&) {}
  [[nodiscard]] bool is_here(std::uint32_t, double now_s) const override {
    if (kFault == 3) return ++calls_ % 2 == 0;
    return std::fmod(std::floor(now_s / 10), 2) == 0;
  }
  [[nodiscard]] double next_change(std::uint32_t, double now_s) const override {
    const double next = 10 * (std::floor(now_s / 10) + 1);
    if (kFault == 1) return next - 10;
    return kFault == 2 ? next + 10 : next;
  }

 private:
  mutable std::size_t calls_ = 0;
};
FL_REGISTER_AVAILABILITY(FaultyAvailability<0>, NoOptions, "sound_availability", "", "");
FL_REGISTER_AVAILABILITY(FaultyAvailability<1>, NoOptions, "changed_before", "", "");
FL_REGISTER_AVAILABILITY(FaultyAvailability<2>, NoOptions, "misses_a_change", "", "");
FL_REGISTER_AVAILABILITY(FaultyAvailability<3>, NoOptions, "counts_questions", "", "");

TEST(FaultyTiming, Availabilities) {
  EXPECT_THAT(found_faults("availability", "sound_availability"), IsEmpty());
  EXPECT_THAT(found_faults("availability", "changed_before"), ElementsAre("changes"));
  EXPECT_THAT(found_faults("availability", "misses_a_change"), ElementsAre("changes"));
  EXPECT_THAT(found_faults("availability", "counts_questions"), testing::Contains("repeats"));
}

}  // namespace
}  // namespace fl
