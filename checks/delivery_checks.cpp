// Checks of delivery policies: who counts, when a round closes, and that a decision is the same whether arrivals become known one by one or
// all at once.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "checks/check.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/random/random.hpp"
#include "server/delivery_policy.hpp"

namespace fl::checks {

namespace {

constexpr double kNotYet = std::numeric_limits<double>::infinity();

struct Decision {
  double closes_s = 0;
  std::vector<std::uint8_t> counts;
  friend bool operator==(const Decision&, const Decision&) = default;
};

struct DeliveryCase {
  std::vector<double> arrival_s;
  std::size_t awaited = 1;
};

// Returns a policy with its default options. An option without a default that is a number has the value 2.5.
std::unique_ptr<DeliveryPolicy> make_delivery_policy(const std::string& part) {
  Options options = Registry::instance().default_options("delivery", part);
  Schema schema = options.schema();
  for (Field& field : schema.fields())
    if (field.is_required && !field.is_set() && field.type.starts_with("number")) static_cast<void>(field.assign(Value{2.5}));
  return make_part<DeliveryPolicy>("delivery", part, options, Device::cpu, Precision::float64);
}

Decision decide(const DeliveryPolicy& policy, const std::vector<double>& arrival_s, std::size_t awaited) {
  Decision decision{.closes_s = 0, .counts = std::vector<std::uint8_t>(arrival_s.size(), 0)};
  decision.closes_s = policy.decide(arrival_s, awaited, decision.counts);
  return decision;
}

std::string text_of(const DeliveryCase& one) {
  std::string text = std::to_string(one.awaited) + " of " + std::to_string(one.arrival_s.size()) + " awaited, arrivals";
  for (std::size_t i = 0; i < std::min<std::size_t>(8, one.arrival_s.size()); ++i)
    text += ' ' + (std::isinf(one.arrival_s[i]) ? std::string("never") : std::to_string(one.arrival_s[i]));
  return text + (one.arrival_s.size() > 8 ? " ..." : "");
}

// Times of every size, some of them equal, 0 or never.
std::vector<DeliveryCase> delivery_cases() {
  std::vector<DeliveryCase> cases = {{{3, 1, 2, kNotYet}, 2}, {{kNotYet}, 1}, {{0}, 1}, {{2, 2, 2}, 1}, {{1e-9, 1e9}, 2}};
  RandomSequence random(1, Purpose::participation, 0, 0);
  for (const std::size_t clients : {1, 2, 3, 7, 64})
    for (const double scale : {0.1, 2.0, 100.0, 1e5})
      for (std::size_t trial = 0; trial < 8; ++trial) {
        DeliveryCase one{.arrival_s = {}, .awaited = 1 + random.below(clients)};
        for (std::size_t i = 0; i < clients; ++i) {
          const bool is_lost = trial % 2 == 0 && random.below(4) == 0;
          one.arrival_s.push_back(is_lost ? kNotYet : scale * static_cast<double>(random.below(20)) / 10);
        }
        cases.push_back(std::move(one));
      }
  return cases;
}

// Plays a round in which arrivals become known one after another.
Decision decide_as_they_arrive(const DeliveryPolicy& policy, const DeliveryCase& one) {
  std::vector<double> known(one.arrival_s.size(), kNotYet);
  for (;;) {
    const Decision decision = decide(policy, known, one.awaited);
    double next = kNotYet;
    for (std::size_t i = 0; i < known.size(); ++i)
      if (known[i] == kNotYet) next = std::min(next, one.arrival_s[i]);
    if (next == kNotYet || next > decision.closes_s) return decision;
    for (std::size_t i = 0; i < known.size(); ++i)
      if (one.arrival_s[i] == next) known[i] = next;
  }
}

void who_counts(const std::string& part, Findings& findings) {
  for (const DeliveryCase& one : delivery_cases()) {
    FindingPlace place(findings, part + ", " + text_of(one));
    place.guard([&] {
      const Decision decision = decide(*make_delivery_policy(part), one.arrival_s, one.awaited);
      for (std::size_t i = 0; i < one.arrival_s.size(); ++i) {
        const bool counts = decision.counts[i] != 0;
        place.expect(!counts || std::isfinite(one.arrival_s[i]), "a message that has not arrived counts");
        place.expect(!counts || one.arrival_s[i] <= decision.closes_s, "a message counts that arrives after the round has closed");
      }
    });
  }
}

void closing_time(const std::string& part, Findings& findings) {
  for (DeliveryCase one : delivery_cases()) {
    FindingPlace place(findings, part + ", " + text_of(one));
    place.guard([&] {
      const auto policy = make_delivery_policy(part);
      const double closes_s = decide(*policy, one.arrival_s, one.awaited).closes_s;
      if (!place.expect(closes_s >= 0, "the round closes before it opens, or at a time that is no number")) return;
      const bool is_complete = std::ranges::all_of(one.arrival_s, [](double t) { return std::isfinite(t); });
      place.expect(!is_complete || std::isfinite(closes_s), "all messages are there, and the round does not close");
      std::ranges::fill(one.arrival_s, kNotYet);
      place.expect(decide(*policy, one.arrival_s, one.awaited).closes_s > 0, "the round closes at its opening, before a message can come");
      if (policy->waits_for_all())
        place.expect(decide(*policy, one.arrival_s, one.awaited).closes_s == kNotYet,
                     "it closes without all messages, although waits_for_all() says that it does not");
    });
  }
}

void repeated_decisions(const std::string& part, Findings& findings) {
  for (const DeliveryCase& one : delivery_cases()) {
    FindingPlace place(findings, part + ", " + text_of(one));
    place.guard([&] {
      const auto policy = make_delivery_policy(part);
      const Decision first = decide(*policy, one.arrival_s, one.awaited);
      place.expect(decide(*policy, one.arrival_s, one.awaited) == first, "the same arrivals have another answer");
      place.expect(decide(*make_delivery_policy(part), one.arrival_s, one.awaited) == first,
                   "the same arrivals have another answer from a policy of its own");
    });
  }
}

void one_by_one(const std::string& part, Findings& findings) {
  for (const DeliveryCase& one : delivery_cases()) {
    FindingPlace place(findings, part + ", " + text_of(one));
    place.guard([&] {
      const auto policy = make_delivery_policy(part);
      const Decision at_once = decide(*policy, one.arrival_s, one.awaited);
      place.expect(decide_as_they_arrive(*policy, one) == at_once,
                   "arrivals that become known one by one lead to another decision than all of them at once");
      std::vector<double> known = one.arrival_s;
      std::ranges::replace_if(
          known, [&at_once](double t) { return t > at_once.closes_s; }, kNotYet);
      place.expect(decide(*policy, known, one.awaited) == at_once, "the decision depends on messages that come after the round has closed");
    });
  }
}

void asked_clients(const std::string& part, Findings& findings) {
  FindingPlace place(findings, part);
  place.guard([&] {
    const double factor = make_delivery_policy(part)->over_selection();
    place.expect(std::isfinite(factor) && factor >= 1, "it asks fewer clients than the round is made for, or no finite number");
  });
}

}  // namespace

const std::vector<Check>& delivery_checks() {
  static const std::vector<Check> checks = {
      {"counts", "a message counts only if it has arrived before the round closes", who_counts},
      {"closes", "a round closes after its opening, and at the latest when all messages are there", closing_time},
      {"repeats", "the same arrivals have the same answer", repeated_decisions},
      {"online", "arrivals that become known one by one have the result of all at once", one_by_one},
      {"asked", "at least the awaited clients are asked", asked_clients},
  };
  return checks;
}

}  // namespace fl::checks
