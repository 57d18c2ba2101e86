// A client can be reached for a share of each day, which begins at another time for each client.
//
//   here at t  <=>  (t - phase_i) mod period < share * period
//   phase_i = spread * period * u_i, or, with Z time zones, spread * period * floor(Z u_i) / Z
// with the quantiles u_i of timing/client_quantiles.hpp. Periodic availability of phones, which train while they are charged at night:
// K. Bonawitz et al., "Towards federated learning at scale: system design", MLSys 2019; H. Eichner et al., "Semi-cyclic stochastic gradient
// descent", ICML 2019.
#include <cmath>

#include "fl_core/config/quantity.hpp"
#include "timing/availability.hpp"
#include "timing/client_quantiles.hpp"
#include "timing/on_times.hpp"

namespace fl {
namespace {

struct DayAndNightOptions {
  double period = 86400, share = 0.3, spread = 1;
  std::int64_t zones = 0;
  QuantileOptions quantiles;
};
void describe(Schema& schema, DayAndNightOptions& options) {
  constexpr double kMostZones = 1e6;
  quantity_field(schema, "period", options.period, time_units(), "length of a day").at_least(1e-6).at_most(1e12).unit("s");
  schema.field("share", options.share, "share of each day in which a client can be reached").above(0).at_most(1);
  schema.field("spread", options.spread, "share of a day over which the clients' days begin; 0: all begin at time 0")
      .at_least(0)
      .at_most(1);
  schema.field("zones", options.zones, "number of time zones within the spread; 0: each client has its own")
      .at_least(0)
      .at_most(kMostZones);
  describe_quantiles(schema, options.quantiles, "later in the day");
}
void validate(const DayAndNightOptions& options, Problems& problems) {
  validate_quantiles(options.quantiles, problems);
  if (options.quantiles.follows != Follows::nothing && options.spread == 0)
    problems.push_back({"follows", "has no effect, because with spread = 0 all days begin at the same time"});
}

class DayAndNight final : public Availability {
 public:
  explicit DayAndNight(const DayAndNightOptions& options) : options_(options) {}

  void open(const ClientFacts& clients) override {
    ClientQuantiles quantiles;
    quantiles.open(options_.quantiles, clients, Purpose::availability);
    days_.clear();
    for (std::uint32_t i = 0; i < clients.num_clients; ++i) days_.push_back(day_of(quantiles.quantile(i)));
  }
  [[nodiscard]] bool is_here(std::uint32_t client, double now_s) const override { return days_[client].is_on(now_s); }
  [[nodiscard]] double next_change(std::uint32_t client, double now_s) const override { return days_[client].next_change(now_s); }

 private:
  [[nodiscard]] OnTimes day_of(double u) const {
    const double P = options_.period, Z = static_cast<double>(options_.zones);
    const double place = options_.zones == 0 ? u : std::floor(Z * u) / Z;
    const double from = std::fmod(options_.spread * place * P, P), until = from + options_.share * P;
    if (options_.share >= 1) return OnTimes({{0, P}}, P);
    if (until <= P) return OnTimes({{from, until}}, P);
    return OnTimes({{0, until - P}, {from, P}}, P);
  }

  DayAndNightOptions options_;
  std::vector<OnTimes> days_;  // [N]
};

FL_REGISTER_AVAILABILITY(
    DayAndNight, DayAndNightOptions, "day_and_night", "a share of each day, which begins at the client's own time",
    "Bonawitz et al., \"Towards federated learning at scale: system design\", MLSys 2019; Eichner et al., \"Semi-cyclic "
    "stochastic gradient descent\", ICML 2019");

}  // namespace
}  // namespace fl
