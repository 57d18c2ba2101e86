// Messages take no time.
#include "timing/network.hpp"

namespace fl {
namespace {

class NoNetwork final : public Network {
 public:
  explicit NoNetwork(const NoOptions&) {}
  [[nodiscard]] LinkRates link(std::uint32_t, double) const override { return {}; }
};

FL_REGISTER_NETWORK(NoNetwork, NoOptions, "none", "messages take no time", "");

}  // namespace
}  // namespace fl
