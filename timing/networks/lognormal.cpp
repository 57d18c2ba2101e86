// Links whose rates are spread lognormally: a client's rates are its quantile of both distributions.
//
//   rate_i = median exp(sigma z_i),   z_i standard normal (timing/client_quantiles.hpp)
// 95% of the clients lie within a factor exp(1.96 sigma) of the median. Latency, jitter and loss are the same for all.
// Source: measured throughputs of TCP transfers are close to lognormal: H. Balakrishnan, M. Stemm, S. Seshan, R. H. Katz, "Analyzing
// stability in wide-area network performance", SIGMETRICS 1997.
#include <cmath>

#include "timing/client_quantiles.hpp"
#include "timing/link_fields.hpp"

namespace fl {
namespace {

struct LognormalNetworkOptions {
  LinkOptions median;
  double down_sigma = 0.5, up_sigma = 0.5;
  QuantileOptions quantiles;
};
void describe(Schema& schema, LognormalNetworkOptions& options) {
  constexpr double kMostSpread = 5;
  describe_rates(schema, options.median, "the median client", true);
  schema.field("down_sigma", options.down_sigma, "standard deviation of ln down").at_least(0).at_most(kMostSpread);
  schema.field("up_sigma", options.up_sigma, "standard deviation of ln up").at_least(0).at_most(kMostSpread);
  describe_delays(schema, options.median);
  describe_quantiles(schema, options.quantiles, "faster");
}
void validate(const LognormalNetworkOptions& options, Problems& problems) { validate_quantiles(options.quantiles, problems); }

class LognormalNetwork final : public Network {
 public:
  explicit LognormalNetwork(const LognormalNetworkOptions& options) : options_(options) {}
  void open(const ClientFacts& clients) override { quantiles_.open(options_.quantiles, clients, Purpose::network); }
  [[nodiscard]] LinkRates link(std::uint32_t client, double) const override {
    const double z = quantiles_.score(client);
    LinkRates link = options_.median.link();
    link.down *= std::exp(options_.down_sigma * z);
    link.up *= std::exp(options_.up_sigma * z);
    return link;
  }

 private:
  LognormalNetworkOptions options_;
  ClientQuantiles quantiles_;
};

FL_REGISTER_NETWORK(LognormalNetwork, LognormalNetworkOptions, "lognormal", "rates spread lognormally around a median",
                    "Balakrishnan, Stemm, Seshan, Katz, \"Analyzing stability in wide-area network performance\", SIGMETRICS 1997");

}  // namespace
}  // namespace fl
