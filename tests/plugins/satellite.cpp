// A network: a link by satellite, whose rate falls to `share` of itself in the second half of each orbit.
#include <cmath>

#include "timing/network.hpp"

namespace fl {

struct SatelliteOptions {
  double orbit_s = 5400, share = 0.1;
};
inline void describe(Schema& schema, SatelliteOptions& options) {
  schema.field("orbit_s", options.orbit_s, "time of an orbit").above(0).unit("s");
  schema.field("share", options.share, "of the rate that is left").above(0).at_most(1);
}

namespace {

class Satellite final : public Network {
 public:
  explicit Satellite(const SatelliteOptions& options) : options_(options) {}

  LinkRates link(std::uint32_t, double now_s) const override {
    const double share = half(now_s) % 2 == 0 ? 1 : options_.share;
    return {.down = 5e7 * share, .up = 1e7 * share, .latency_s = 0.04};
  }
  double next_change(std::uint32_t, double now_s) const override { return static_cast<double>(half(now_s) + 1) * options_.orbit_s / 2; }

 private:
  std::int64_t half(double now_s) const {
    auto number = static_cast<std::int64_t>(2 * now_s / options_.orbit_s);
    if (static_cast<double>(number + 1) * options_.orbit_s / 2 <= now_s) ++number;
    return number;
  }
  SatelliteOptions options_;
};

FL_REGISTER_NETWORK(Satellite, SatelliteOptions, "satellite", "a link that is worse in half of each orbit", "");

}  // namespace
}  // namespace fl
