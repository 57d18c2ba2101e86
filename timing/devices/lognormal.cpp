// Devices whose rates are spread lognormally: a client's rates are its quantile of both distributions.
//
//   rate_i = median exp(sigma z_i),   z_i standard normal (timing/client_quantiles.hpp)
// 95% of the clients lie within a factor exp(1.96 sigma) of the median: 2.7 for sigma = 0.5, 7.1 for sigma = 1.
#include <cmath>

#include "timing/client_quantiles.hpp"
#include "timing/device_rates_fields.hpp"

namespace fl {
namespace {

struct LognormalDevicesOptions {
  DeviceRatesOptions median;
  double flops_sigma = 0.5, bandwidth_sigma = 0.5;
  QuantileOptions quantiles;
};
void describe(Schema& schema, LognormalDevicesOptions& options) {
  constexpr double kMostSpread = 5;
  describe_rates(schema, options.median, "of the median client");
  schema.field("flops_sigma", options.flops_sigma, "standard deviation of ln flops").at_least(0).at_most(kMostSpread);
  schema.field("bandwidth_sigma", options.bandwidth_sigma, "standard deviation of ln bandwidth").at_least(0).at_most(kMostSpread);
  describe_quantiles(schema, options.quantiles, "faster");
}
void validate(const LognormalDevicesOptions& options, Problems& problems) { validate_quantiles(options.quantiles, problems); }

class LognormalDevices final : public Devices {
 public:
  explicit LognormalDevices(const LognormalDevicesOptions& options) : options_(options) {}
  void open(const ClientFacts& clients) override { quantiles_.open(options_.quantiles, clients, Purpose::devices); }
  [[nodiscard]] DeviceRates rates(std::uint32_t client) const override {
    const double z = quantiles_.score(client);
    DeviceRates rates = options_.median.rates();
    rates.operations_per_s *= std::exp(options_.flops_sigma * z);
    rates.bytes_per_s *= std::exp(options_.bandwidth_sigma * z);
    return rates;
  }

 private:
  LognormalDevicesOptions options_;
  ClientQuantiles quantiles_;
};

FL_REGISTER_DEVICES(LognormalDevices, LognormalDevicesOptions, "lognormal", "rates spread lognormally around a median",
                    "E. Limpert, W. A. Stahel, M. Abbt, \"Log-normal distributions across the sciences\", BioScience 51(5), 2001");

}  // namespace
}  // namespace fl
