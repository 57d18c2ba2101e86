// A few kinds of links, each with its share of the clients: client i has the kind at which the cumulated shares, from the slowest uplink
// on, pass its quantile u_i (timing/client_quantiles.hpp).
#include <algorithm>
#include <utility>

#include "fl_core/config/table_field.hpp"
#include "timing/client_quantiles.hpp"
#include "timing/link_fields.hpp"
#include "timing/link_presets.hpp"
#include "timing/shares.hpp"

namespace fl {
namespace {

struct LinkTierOptions {
  std::string name, preset;
  double share = 0;
  LinkOptions link;
};
void describe(Schema& schema, LinkTierOptions& tier) {
  std::string presets;
  for (const std::string& preset : link_preset_names()) presets += (presets.empty() ? "" : ", ") + preset;
  schema.field("name", tier.name, "of the kind, in results; that of the preset by default");
  schema.field("share", tier.share, "of the clients").above(0).at_most(1).required();
  schema.field("preset", tier.preset, "rates and latency of " + presets + ", in place of these keys");
  describe_rates(schema, tier.link, "such a client", false);
  describe_delays(schema, tier.link);
}
void validate(const LinkTierOptions& tier, Problems& problems) {
  const LinkOptions& link = tier.link;
  if (tier.preset.empty()) {
    if (link.down <= 0 || link.up <= 0) problems.push_back({link.down <= 0 ? "down" : "up", "is missing; state down and up, or a preset"});
    if (tier.name.empty()) problems.push_back({"name", "is missing"});
    return;
  }
  if (find_link_preset(tier.preset) == nullptr) {
    std::string all;
    for (const std::string& name : link_preset_names()) all += (all.empty() ? "" : ", ") + name;
    const std::string near = nearest_name(tier.preset, link_preset_names());
    problems.push_back(
        {"preset", "must be one of " + all + ", is \"" + tier.preset + "\"" + (near.empty() ? "" : "; did you mean \"" + near + "\"?")});
  } else if (link.down > 0 || link.up > 0 || link.latency > 0) {
    problems.push_back({"preset", "states down, up and latency; drop these keys, or the preset"});
  }
}

struct LinkKind {
  std::string name;
  double share = 1;
  LinkRates link;
};

LinkKind link_kind(const LinkTierOptions& tier) {
  const LinkPreset* preset = find_link_preset(tier.preset);
  LinkKind kind{tier.name, tier.share, tier.link.link()};
  if (preset == nullptr) return kind;
  kind.link = preset->link;
  kind.link.jitter_s = tier.link.jitter;
  kind.link.loss = tier.link.loss;
  if (kind.name.empty()) kind.name = preset->name;
  return kind;
}

struct TierNetworkOptions {
  // An example: phones at home and on their way.
  std::vector<LinkTierOptions> tiers = {{"", "wifi", 0.5, {}}, {"", "4g", 0.5, {}}};
  QuantileOptions quantiles;
};
void describe(Schema& schema, TierNetworkOptions& options) {
  table_list_field(schema, "tiers", options.tiers, "the kinds of links, whose shares sum to 1");
  describe_quantiles(schema, options.quantiles, "of faster kinds");
}
void validate(const TierNetworkOptions& options, Problems& problems) {
  std::vector<std::string> names;
  std::vector<double> shares;
  for (const LinkTierOptions& tier : options.tiers) {
    names.push_back(link_kind(tier).name);
    shares.push_back(tier.share);
  }
  check_tiers(names, shares, problems);
  validate_quantiles(options.quantiles, problems);
}

class TierNetwork final : public Network {
 public:
  explicit TierNetwork(const TierNetworkOptions& options) : quantiles_(options.quantiles) {
    for (const LinkTierOptions& tier : options.tiers) kinds_.push_back(link_kind(tier));
    std::ranges::stable_sort(kinds_, {}, [](const LinkKind& kind) { return kind.link.up; });
  }
  void open(const ClientFacts& clients) override {
    ClientQuantiles quantiles;
    quantiles.open(quantiles_, clients, Purpose::network);
    std::vector<double> shares;
    for (const LinkKind& kind : kinds_) shares.push_back(kind.share);
    kind_.resize(clients.num_clients);
    for (std::uint32_t i = 0; i < kind_.size(); ++i) kind_[i] = static_cast<std::uint32_t>(kind_at(quantiles.quantile(i), shares));
  }
  [[nodiscard]] LinkRates link(std::uint32_t client, double) const override { return kinds_[kind_[client]].link; }
  [[nodiscard]] std::vector<std::string> tiers() const override {
    std::vector<std::string> names;
    for (const LinkKind& kind : kinds_) names.push_back(kind.name);
    return names;
  }
  [[nodiscard]] std::size_t tier(std::uint32_t client) const override { return kind_[client]; }

 private:
  QuantileOptions quantiles_;
  std::vector<LinkKind> kinds_;      // ascending by rate up
  std::vector<std::uint32_t> kind_;  // [N]
};

FL_REGISTER_NETWORK(TierNetwork, TierNetworkOptions, "tiers", "a few kinds of links, or presets, with shares of the clients", "");

}  // namespace
}  // namespace fl
