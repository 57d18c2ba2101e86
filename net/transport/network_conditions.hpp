// Properties of an emulated network, as `--emulate` states them: "bandwidth=10M latency=50ms jitter=10ms stall=0.01:2s reset=0.001".
// `down`, `up`, `latency` and `jitter` have the names, units and meaning of the keys of [network] (timing/link_fields.hpp).
//
// They delay bytes, break connections and (flip) change bytes, which breaks the connection as well, because every frame has a checksum. So
// they decide when a message arrives, and a run without deadline has the same results under all conditions. Faults are drawn for every
// packet of kPacketBytes bytes of each direction of a connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "fl_core/config/device.hpp"

namespace fl::net {

inline constexpr std::size_t kPacketBytes = 1460;  // what a packet of Ethernet holds of a TCP stream

struct NetworkConditions {
  double bandwidth = 0;                // bit/s of each direction of a connection; 0 = no limit
  double down = 0, up = 0;             // bit/s to and from clients, in place of bandwidth; 0 = bandwidth
  double burst_bytes = 16384;          // pass at once after a pause
  double latency_s = 0, jitter_s = 0;  // a byte arrives after latency + jitter * u seconds, u uniform in [0, 1)
  double stall = 0, stall_s = 0;       // probability of a pause, and its length
  double reset = 0;                    // probability that the connection is closed
  double half_open = 0;                // probability that the connection stays open and no byte passes from then on
  double flip = 0;                     // probability that a bit of the packet is changed
  std::uint64_t seed = 1;              // of jitter and faults
};

// Returns the conditions of a text of KEY=VALUE pairs between spaces. Throws ConfigError (key --emulate) for an unknown key, a value out of
// its bounds and a key that occurs twice.
[[nodiscard]] FL_API NetworkConditions parse_network_conditions(const std::string& text);

// Returns a line for each key: its name, its unit, its bounds and its meaning.
[[nodiscard]] FL_API std::string describe_network_conditions();

}  // namespace fl::net
