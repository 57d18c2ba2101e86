// The times at which messages arrive over the clients' links, which may share the server's link.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "fl_core/config/device.hpp"
#include "timing/network.hpp"

namespace fl {

enum class LinkDirection { down, up };

// A message on a client's link.
struct Transfer {
  std::uint32_t client = 0;
  double start_s = 0;                                        // its first bit leaves; infinite: it is never sent
  double bits = 0;                                           // with the packets that are sent again
  double until_s = std::numeric_limits<double>::infinity();  // the client leaves: nothing passes from then on
};

// Returns the time at which the last bit of each message leaves its sender; infinite: never. Each client has one message at a time, at the
// rate of its link, which may change on the way. `shared` (bit/s) is the rate of the server's link, which is divided max-min fairly among
// the messages that are on their way: each of them gets the same rate, unless its own link is slower, whose rest the others have. Infinite:
// a message has the rate of its client's link.
//
// Source of the division: D. Bertsekas, R. Gallager, "Data Networks", second edition, 1992, section 6.5.2.
[[nodiscard]] FL_API std::vector<double> departures(const Network& network, LinkDirection direction, double shared,
                                                    std::span<const Transfer> transfers);

// Returns the same for a message that shares nothing.
[[nodiscard]] FL_API double departure(const Network& network, LinkDirection direction, const Transfer& transfer);

}  // namespace fl
