// A few kinds of devices, each with its share of the clients: client i has the kind at which the cumulated shares, from the slowest kind
// on, pass its quantile u_i (timing/client_quantiles.hpp).
#include "fl_core/config/table_field.hpp"
#include "timing/device_rates_fields.hpp"
#include "timing/device_tiers.hpp"
#include "timing/shares.hpp"

namespace fl {
namespace {

struct DeviceTierOptions {
  std::string name;
  double share = 0;
  DeviceRatesOptions rates;
};
void describe(Schema& schema, DeviceTierOptions& tier) {
  schema.field("name", tier.name, "of the kind, in results");
  schema.field("share", tier.share, "of the clients").above(0).at_most(1).required();
  describe_rates(schema, tier.rates, "of such a client");
}
void validate(const DeviceTierOptions& tier, Problems& problems) {
  if (tier.name.empty()) problems.push_back({"name", "is missing"});
}

struct TierDevicesOptions {
  // An example: halves that differ by a factor of ten.
  std::vector<DeviceTierOptions> tiers = {{"slow", 0.5, {1e10, 5e9, 0}}, {"fast", 0.5, {1e11, 5e10, 0}}};
  QuantileOptions quantiles;
};
void describe(Schema& schema, TierDevicesOptions& options) {
  table_list_field(schema, "tiers", options.tiers, "the kinds of devices, whose shares sum to 1");
  describe_quantiles(schema, options.quantiles, "of faster kinds");
}
void validate(const TierDevicesOptions& options, Problems& problems) {
  std::vector<std::string> names;
  std::vector<double> shares;
  for (const DeviceTierOptions& tier : options.tiers) {
    names.push_back(tier.name);
    shares.push_back(tier.share);
  }
  check_tiers(names, shares, problems);
  validate_quantiles(options.quantiles, problems);
}

std::vector<DeviceKind> device_kinds(const TierDevicesOptions& options) {
  std::vector<DeviceKind> kinds;
  for (const DeviceTierOptions& tier : options.tiers) kinds.push_back({tier.name, tier.share, tier.rates.rates()});
  return kinds;
}

class TierDevices final : public Devices {
 public:
  explicit TierDevices(const TierDevicesOptions& options) : quantiles_(options.quantiles), tiers_(device_kinds(options)) {}
  void open(const ClientFacts& clients) override { tiers_.open(quantiles_, clients); }
  [[nodiscard]] DeviceRates rates(std::uint32_t client) const override { return tiers_.rates(client); }
  [[nodiscard]] std::vector<std::string> tiers() const override { return tiers_.names(); }
  [[nodiscard]] std::size_t tier(std::uint32_t client) const override { return tiers_.kind(client); }

 private:
  QuantileOptions quantiles_;
  DeviceTiers tiers_;
};

FL_REGISTER_DEVICES(TierDevices, TierDevicesOptions, "tiers", "a few kinds of devices with shares of the clients", "");

}  // namespace
}  // namespace fl
