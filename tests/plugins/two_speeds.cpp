// Devices: clients with an odd number are `factor` times slower.
#include "timing/devices.hpp"

namespace fl {

struct TwoSpeedsOptions {
  double flops = 1e9, factor = 4;
};
inline void describe(Schema& schema, TwoSpeedsOptions& options) {
  schema.field("flops", options.flops, "floating-point operations per second of the fast clients").above(0).unit("1/s");
  schema.field("factor", options.factor, "by which the others are slower").at_least(1);
}

namespace {

class TwoSpeeds final : public Devices {
 public:
  explicit TwoSpeeds(const TwoSpeedsOptions& options) : options_(options) {}

  DeviceRates rates(std::uint32_t client) const override { return {options_.flops / (tier(client) == 0 ? options_.factor : 1)}; }
  std::vector<std::string> tiers() const override { return {"slow", "fast"}; }
  std::size_t tier(std::uint32_t client) const override { return client % 2 == 1 ? 0 : 1; }

 private:
  TwoSpeedsOptions options_;
};

FL_REGISTER_DEVICES(TwoSpeeds, TwoSpeedsOptions, "two_speeds", "slow and fast clients in turn", "");

}  // namespace
}  // namespace fl
