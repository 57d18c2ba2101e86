// Computing takes no time.
#include "timing/devices.hpp"

namespace fl {
namespace {

class NoDevices final : public Devices {
 public:
  explicit NoDevices(const NoOptions&) {}
  [[nodiscard]] DeviceRates rates(std::uint32_t) const override { return {}; }
};

FL_REGISTER_DEVICES(NoDevices, NoOptions, "none", "computing takes no time", "");

}  // namespace
}  // namespace fl
