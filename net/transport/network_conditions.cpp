#include "net/transport/network_conditions.hpp"

#include <charconv>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "fl_core/config/key_error.hpp"
#include "fl_core/config/quantity.hpp"

namespace fl::net {

namespace {

constexpr const char* kEmulate = "--emulate";

// A key with one number, or a probability and a length of time (PROBABILITY:TIME).
struct ConditionKey {
  const char* name;
  QuantityUnits units;
  double least, most;
  double NetworkConditions::*value;
  const char* meaning;
};
const std::vector<ConditionKey>& condition_keys() {
  using C = NetworkConditions;
  static const std::vector<ConditionKey> keys = {
      {"bandwidth", decimal_units(), 1e3, 1e12, &C::bandwidth, "bit/s of each direction of a connection (K, M, G are powers of 1000)"},
      {"down", decimal_units(), 1e3, 1e12, &C::down, "bit/s to clients, in place of bandwidth"},
      {"up", decimal_units(), 1e3, 1e12, &C::up, "bit/s from clients, in place of bandwidth"},
      {"burst", binary_units(), 1460, 1 << 30, &C::burst_bytes, "bytes that pass at once after a pause (default 16K)"},
      {"latency", time_units(), 0, 60, &C::latency_s, "how long a byte is on its way (s, ms or us)"},
      {"jitter", time_units(), 0, 60, &C::jitter_s, "maximum further time, drawn uniformly (s, ms or us)"},
      {"stall", no_units(), 0, 1, &C::stall, "PROBABILITY:TIME: a direction pauses for this time"},
      {"reset", no_units(), 0, 1, &C::reset, "probability that the connection is closed"},
      {"half_open", no_units(), 0, 1, &C::half_open, "probability that the connection stays open and no byte passes any more"},
      {"flip", no_units(), 0, 1, &C::flip, "probability that a bit is changed on its way, which frames notice"},
  };
  return keys;
}

// Returns a number with a unit, such as "10M". Throws ConfigError if it is not one or is out of its bounds.
double number_with_unit(const std::string& text, const ConditionKey& key, QuantityUnits units, double least, double most) {
  const std::optional<double> number = read_quantity(text, units);
  const std::string names = unit_names(units);
  if (!number)
    throw key_error(kEmulate, std::string(key.name) + " must be a number" + (names.empty() ? "" : " with a unit (" + names + ")") +
                                  ", is '" + text + "'");
  if (*number >= least && *number <= most) return *number;
  std::ostringstream bounds;
  bounds << key.name << " must be in [" << least << ", " << most << "], is '" << text << "'";
  throw key_error(kEmulate, bounds.str());
}

void read_stall(const std::string& text, const ConditionKey& key, NetworkConditions& conditions) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) throw key_error(kEmulate, "stall must be PROBABILITY:TIME, as 0.01:2s, is '" + text + "'");
  conditions.stall = number_with_unit(text.substr(0, colon), key, no_units(), 0, 1);
  conditions.stall_s = number_with_unit(text.substr(colon + 1), key, time_units(), 0, 3600);
}

std::uint64_t seed_in(const std::string& text) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size())
    throw key_error(kEmulate, "seed must be a whole number that is not negative, is '" + text + "'");
  return seed;
}

[[noreturn]] void refuse_key(const std::string& name) {
  std::vector<std::string> names{"seed"};
  for (const ConditionKey& key : condition_keys()) names.emplace_back(key.name);
  const std::string near = nearest_name(name, names);
  std::string all;
  for (const std::string& one : names) all += (all.empty() ? "" : ", ") + one;
  throw key_error(kEmulate, "'" + name + "' is not a condition of a network" +
                                (near.empty() ? " (they are " + all + ")" : "; did you mean '" + near + "'?"));
}

void read_pair(const std::string& name, const std::string& value, NetworkConditions& conditions) {
  if (name == "seed") {
    conditions.seed = seed_in(value);
    return;
  }
  for (const ConditionKey& key : condition_keys()) {
    if (name != key.name) continue;
    if (key.value == &NetworkConditions::stall) return read_stall(value, key, conditions);
    conditions.*key.value = number_with_unit(value, key, key.units, key.least, key.most);
    return;
  }
  refuse_key(name);
}

}  // namespace

NetworkConditions parse_network_conditions(const std::string& text) {
  NetworkConditions conditions;
  std::vector<std::string> seen;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) throw key_error(kEmulate, "must consist of KEY=VALUE, as latency=50ms, has '" + word + "'");
    const std::string name = word.substr(0, equals);
    for (const std::string& other : seen)
      if (other == name) throw key_error(kEmulate, "states " + name + " twice");
    seen.push_back(name);
    read_pair(name, word.substr(equals + 1), conditions);
  }
  if (seen.empty()) throw key_error(kEmulate, "is empty; " + describe_network_conditions());
  if (conditions.stall + conditions.reset + conditions.half_open + conditions.flip > 1)
    throw key_error(kEmulate, "stall, reset, half_open and flip are probabilities of one packet, and their sum exceeds 1");
  return conditions;
}

std::string describe_network_conditions() {
  std::string text = "its keys are";
  for (const ConditionKey& key : condition_keys()) text += std::string("\n  ") + key.name + ": " + key.meaning;
  return text + "\n  seed: of jitter and faults (default 1)";
}

}  // namespace fl::net
