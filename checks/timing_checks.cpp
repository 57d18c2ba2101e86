// Checks of devices, networks and availabilities: rates can be divided by, times of changes are true, and answers depend on nothing but the
// client and the time.
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "checks/check.hpp"
#include "checks/timing_cases.hpp"
#include "fl_core/config/registry.hpp"
#include "timing/availability.hpp"
#include "timing/devices.hpp"
#include "timing/network.hpp"

namespace fl::checks {

namespace {

const std::vector<std::size_t>& client_counts() {
  static const std::vector<std::size_t> counts = {1, 2, 7, 64};
  return counts;
}

// From the first moment to a month.
const std::vector<double>& moments() {
  static const std::vector<double> times = {0, 1e-3, 0.5, 1, 59, 60, 61.25, 3600, 5e4, 86400, 2.6e6};
  return times;
}

// Calls check(part, N, make_another, place) with an open part, for several numbers of clients and seeds.
template <class Part, class Check>
void for_each_open(const std::string& role, const std::string& name, Findings& findings, const Check& check) {
  const TimingFile file(timing_file_text(role));
  for (const std::size_t N : client_counts())
    for (const std::uint64_t seed : {1, 2}) {
      if (N < 2 && (name == "csv" || name == "trace")) continue;  // the file names client 1
      FindingPlace place(findings, name + ", " + std::to_string(N) + " clients, seed " + std::to_string(seed));
      place.guard([&] {
        const TimedClients clients(N);
        const auto make = [&] {
          auto part = make_timing_part<Part>(role, name, file.path());
          part->open(clients.facts(seed, file.path()));
          return part;
        };
        const std::unique_ptr<Part> part = make();
        check(*part, static_cast<std::uint32_t>(N), make, place);
      });
    }
}

bool is_rate(double rate) { return rate > 0; }  // infinite rates need no time
bool is_delay(double delay) { return delay >= 0 && std::isfinite(delay); }

template <class Part>
void expect_tiers(const Part& part, std::uint32_t N, FindingPlace& place) {
  const std::vector<std::string> names = part.tiers();
  place.expect(!names.empty(), "it has no kind of clients: tiers() is empty");
  for (std::uint32_t i = 0; i < N; ++i) place.expect(part.tier(i) < names.size(), "a client is of a kind that tiers() does not name");
}

void device_rates(const std::string& part, Findings& findings) {
  for_each_open<Devices>("devices", part, findings, [](const Devices& devices, std::uint32_t N, const auto&, FindingPlace& place) {
    expect_tiers(devices, N, place);
    for (std::uint32_t i = 0; i < N; ++i) {
      const DeviceRates rates = devices.rates(i);
      place.expect(is_rate(rates.operations_per_s) && is_rate(rates.bytes_per_s), "a rate is not above 0");
      place.expect(is_rate(rates.memory_bytes), "a client has no memory");
      place.expect(rates.seconds({}) == 0, "no work takes time");
    }
  });
}

void same_devices(const std::string& part, Findings& findings) {
  for_each_open<Devices>("devices", part, findings, [](const Devices& devices, std::uint32_t N, const auto& make, FindingPlace& place) {
    const auto other = make();
    for (std::uint32_t i = N; i-- > 0;) {
      const DeviceRates a = devices.rates(i), b = other->rates(i), again = devices.rates(i);
      const auto is_same = [&a](const DeviceRates& c) {
        return a.operations_per_s == c.operations_per_s && a.bytes_per_s == c.bytes_per_s && a.memory_bytes == c.memory_bytes;
      };
      place.expect(is_same(b) && is_same(again) && devices.tier(i) == other->tier(i), "a client has another device when it is asked again");
    }
  });
}

void link_rates(const std::string& part, Findings& findings) {
  for_each_open<Network>("network", part, findings, [](const Network& network, std::uint32_t N, const auto&, FindingPlace& place) {
    expect_tiers(network, N, place);
    for (std::uint32_t i = 0; i < N; ++i)
      for (const double now : moments()) {
        const LinkRates link = network.link(i, now);
        place.expect(is_rate(link.down) && is_rate(link.up), "a rate is not above 0");
        place.expect(is_delay(link.latency_s) && is_delay(link.jitter_s), "a delay is negative or not finite");
        place.expect(link.loss >= 0 && link.loss < 1, "the share of lost packets is not in [0, 1)");
      }
  });
}

void link_changes(const std::string& part, Findings& findings) {
  for_each_open<Network>("network", part, findings, [](const Network& network, std::uint32_t N, const auto&, FindingPlace& place) {
    for (std::uint32_t i = 0; i < N; ++i)
      for (const double now : moments()) {
        const double next = network.next_change(i, now);
        if (!place.expect(next > now, "the next change is not after the time for which it is asked")) return;
        const double end = std::isinf(next) ? 2 * now + 1e6 : next;
        for (const double share : {0.25, 0.5, 0.999})
          place.expect(network.link(i, now + share * (end - now)) == network.link(i, now), "a link changes before its next change");
      }
  });
}

// Compares answers in the order of time with answers in the opposite order, from another instance.
template <class Part, class Ask>
void compare_orders(const Part& part, const Part& other, std::uint32_t N, const Ask& ask, FindingPlace& place, const char* fault) {
  std::vector<decltype(ask(part, 0U, 0.0))> forward;
  for (const double now : moments())
    for (std::uint32_t i = 0; i < N; ++i) forward.push_back(ask(part, i, now));
  for (auto now = moments().rbegin(); now != moments().rend(); ++now)
    for (std::uint32_t i = N; i-- > 0;) {
      place.expect(ask(other, i, *now) == forward.back(), fault);
      forward.pop_back();
    }
}

void same_links(const std::string& part, Findings& findings) {
  const auto ask = [](const Network& network, std::uint32_t i, double now) {
    return std::pair(network.link(i, now), network.next_change(i, now));
  };
  for_each_open<Network>("network", part, findings, [&](const Network& network, std::uint32_t N, const auto& make, FindingPlace& place) {
    compare_orders<Network>(network, *make(), N, ask, place, "a client has another link when times are asked for in another order");
  });
}

void availability_changes(const std::string& part, Findings& findings) {
  for_each_open<Availability>(
      "availability", part, findings, [](const Availability& availability, std::uint32_t N, const auto&, FindingPlace& place) {
        for (std::uint32_t i = 0; i < N; ++i)
          for (const double now : moments()) {
            const double next = availability.next_change(i, now);
            const bool is_here = availability.is_here(i, now);
            if (!place.expect(next > now, "the next change is not after the time for which it is asked")) return;
            const double end = std::isinf(next) ? 2 * now + 1e6 : next;
            for (const double share : {0.25, 0.5, 0.999})
              place.expect(availability.is_here(i, now + share * (end - now)) == is_here, "a client comes or goes before the next change");
            place.expect(std::isinf(next) || availability.is_here(i, next) != is_here,
                         "a client neither comes nor goes at the next change");
          }
      });
}

void same_availability(const std::string& part, Findings& findings) {
  const auto ask = [](const Availability& availability, std::uint32_t i, double now) {
    return std::pair(availability.is_here(i, now), availability.next_change(i, now));
  };
  for_each_open<Availability>(
      "availability", part, findings, [&](const Availability& availability, std::uint32_t N, const auto& make, FindingPlace& place) {
        compare_orders<Availability>(availability, *make(), N, ask, place,
                                     "a client is here or not, depending on the order in which times are asked for");
      });
}

}  // namespace

const std::vector<Check>& device_checks() {
  static const std::vector<Check> checks = {
      {"rates", "rates and memory are above 0, and each client is of a kind that has a name", device_rates},
      {"repeats", "a client has the same device whenever it is asked", same_devices},
  };
  return checks;
}

const std::vector<Check>& network_checks() {
  static const std::vector<Check> checks = {
      {"rates", "rates are above 0, delays are finite, and not all packets are lost", link_rates},
      {"changes", "a link stays the same until its next change, which lies ahead", link_changes},
      {"repeats", "a link depends on the client and the time alone", same_links},
  };
  return checks;
}

const std::vector<Check>& availability_checks() {
  static const std::vector<Check> checks = {
      {"changes", "a client stays or is away until the next change, which lies ahead", availability_changes},
      {"repeats", "availability depends on the client and the time alone", same_availability},
  };
  return checks;
}

}  // namespace fl::checks
