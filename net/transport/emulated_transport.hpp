// A transport with the conditions of an emulated network (net/transport/network_conditions.hpp) in front of another transport.
#pragma once

#include <cstdint>
#include <memory>

#include "net/transport/connection.hpp"
#include "net/transport/link_schedule.hpp"
#include "net/transport/network_conditions.hpp"

namespace fl::net {

// Returns a transport whose connections carry the bytes of `inner` with these conditions, in both directions, after the handshake. A
// connection with a fault `reset` is closed. One with a fault `half_open` stays open: reads wait until it is closed here, and written
// bytes are lost.
[[nodiscard]] FL_API std::shared_ptr<Transport> emulated_transport(std::shared_ptr<Transport> inner, const NetworkConditions& conditions,
                                                                   std::uint32_t place);

}  // namespace fl::net
