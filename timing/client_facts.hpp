// The facts of the clients that devices, links and availability may depend on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace fl {

struct ClientFacts {
  std::size_t num_clients = 0;
  std::uint64_t seed = 1;                 // of all draws: seeds.data, so that compared runs have the same devices
  std::span<const std::uint32_t> rows{};  // [N] training rows of each client; empty: not known
  std::span<const double> labels{};       // [N] mean class number of each client's rows; empty: the data have no classes
  // Returns the path of a file that the scenario names. Throws ConfigError if there is none.
  std::function<std::string(const std::string&)> find_file{};
};

}  // namespace fl
