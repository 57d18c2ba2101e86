// The same link for every client, with public figures (timing/link_presets.hpp). Kind "tiers" mixes presets.
#include <utility>

#include "timing/link_fields.hpp"
#include "timing/link_presets.hpp"

namespace fl {
namespace {

struct PresetNetworkOptions {
  std::size_t preset = 2;  // wifi
  double jitter = 0, loss = 0;
};
void describe(Schema& schema, PresetNetworkOptions& options) {
  std::vector<std::pair<std::size_t, std::string>> names;
  for (const std::string& name : link_preset_names()) names.emplace_back(names.size(), name);
  schema.choice("preset", options.preset, std::move(names),
                "rates and latency of a kind of link; docs/devices.md has the figures and their sources");
  quantity_field(schema, "jitter", options.jitter, time_units(), "a message is late by up to this time, uniformly")
      .at_least(0)
      .at_most(kLongestDelay_s)
      .unit("s");
  schema.field("loss", options.loss, "share of the packets that are lost, which are sent again").at_least(0).at_most(kMostLoss);
}

class PresetNetwork final : public Network {
 public:
  explicit PresetNetwork(const PresetNetworkOptions& options) : preset_(link_presets()[options.preset]) {
    preset_.link.jitter_s = options.jitter;
    preset_.link.loss = options.loss;
  }
  [[nodiscard]] LinkRates link(std::uint32_t, double) const override { return preset_.link; }
  [[nodiscard]] std::vector<std::string> tiers() const override { return {preset_.name}; }

 private:
  LinkPreset preset_;
};

FL_REGISTER_NETWORK(PresetNetwork, PresetNetworkOptions, "preset", "a data centre, a LAN, Wi-Fi, 5G, 4G or 3G with public figures",
                    "IEEE 802.3; Ookla Speedtest, 2021 and 2022; profiles of WebPageTest");

}  // namespace
}  // namespace fl
