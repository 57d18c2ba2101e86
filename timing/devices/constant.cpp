// All clients have the same device.
#include "timing/device_rates_fields.hpp"

namespace fl {
namespace {

struct ConstantDevicesOptions {
  DeviceRatesOptions rates;
};
void describe(Schema& schema, ConstantDevicesOptions& options) { describe_rates(schema, options.rates, "of each client"); }

class ConstantDevices final : public Devices {
 public:
  explicit ConstantDevices(const ConstantDevicesOptions& options) : rates_(options.rates.rates()) {}
  [[nodiscard]] DeviceRates rates(std::uint32_t) const override { return rates_; }

 private:
  DeviceRates rates_;
};

FL_REGISTER_DEVICES(ConstantDevices, ConstantDevicesOptions, "constant", "the same device for every client", "");

}  // namespace
}  // namespace fl
