// The keys of a link, which say the same as the conditions of an emulated network (docs/protocol.md): rates in bit/s ("10M", "100G"), times
// in seconds ("50ms", "10us").
#pragma once

#include <string>

#include "fl_core/config/quantity.hpp"
#include "timing/network.hpp"

namespace fl {

inline constexpr double kFastestLink_bits = 1e18, kLongestDelay_s = 1e6, kMostLoss = 0.99;

struct LinkOptions {
  double down = 0, up = 0, latency = 0, jitter = 0, loss = 0;

  [[nodiscard]] LinkRates link() const { return {down, up, latency, jitter, loss}; }
};

// Adds `down` and `up`. The documentation is about `whose`: "each client".
inline void describe_rates(Schema& schema, LinkOptions& options, const std::string& whose, bool is_required) {
  Field& down = quantity_field(schema, "down", options.down, decimal_units(), "rate to " + whose);
  down.above(0).at_most(kFastestLink_bits).unit("bit/s").is_required = is_required;
  Field& up = quantity_field(schema, "up", options.up, decimal_units(), "rate from " + whose);
  up.above(0).at_most(kFastestLink_bits).unit("bit/s").is_required = is_required;
}

// Adds `latency`, `jitter` and `loss`.
inline void describe_delays(Schema& schema, LinkOptions& options) {
  quantity_field(schema, "latency", options.latency, time_units(), "time of a bit on its way")
      .at_least(0)
      .at_most(kLongestDelay_s)
      .unit("s");
  quantity_field(schema, "jitter", options.jitter, time_units(), "a message is late by up to this time, uniformly")
      .at_least(0)
      .at_most(kLongestDelay_s)
      .unit("s");
  schema.field("loss", options.loss, "share of the packets that are lost, which are sent again").at_least(0).at_most(kMostLoss);
}

}  // namespace fl
