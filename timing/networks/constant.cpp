// All clients have the same link, which never changes.
#include "timing/link_fields.hpp"

namespace fl {
namespace {

struct ConstantNetworkOptions {
  LinkOptions link;
};
void describe(Schema& schema, ConstantNetworkOptions& options) {
  describe_rates(schema, options.link, "each client", true);
  describe_delays(schema, options.link);
}

class ConstantNetwork final : public Network {
 public:
  explicit ConstantNetwork(const ConstantNetworkOptions& options) : link_(options.link.link()) {}
  [[nodiscard]] LinkRates link(std::uint32_t, double) const override { return link_; }

 private:
  LinkRates link_;
};

FL_REGISTER_NETWORK(ConstantNetwork, ConstantNetworkOptions, "constant", "the same link for every client", "");

}  // namespace
}  // namespace fl
