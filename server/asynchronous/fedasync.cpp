// FedAsync: the server mixes the model of each client whose message has arrived into its own.
//
//   x <- (1 - a_i) x + a_i y_i        with a_i = mixing s(tau_i) and the client's model y_i = w_i - s c_i, where w_i is that at which it
//   began
//
// Source: C. Xie, S. Koyejo, I. Gupta, "Asynchronous federated optimization", OPT 2020, algorithm 1.
#include "server/async_rule.hpp"
#include "server/staleness.hpp"

namespace fl {
namespace {

struct FedAsyncOptions {
  double mixing = 0.6;
  Staleness staleness;
};
void describe(Schema& schema, FedAsyncOptions& options) {
  schema.field("mixing", options.mixing, "share of a client's model in the server's next one, for tau = 0").above(0).at_most(1);
  describe_staleness(schema, options.staleness);
}
void validate(const FedAsyncOptions& options, Problems& problems) { validate_staleness(options.staleness, problems); }

class FedAsync final : public AsyncRule {
 public:
  explicit FedAsync(const FedAsyncOptions& options) : options_(options) {}
  [[nodiscard]] std::size_t buffer() const override { return 1; }
  [[nodiscard]] double weight(std::uint32_t tau) const override { return options_.staleness.weight(tau); }
  [[nodiscard]] bool ignores_age() const override { return options_.staleness.kind == Staleness::Kind::constant; }
  [[nodiscard]] std::optional<double> mixing() const override { return options_.mixing; }

 private:
  FedAsyncOptions options_;
};

FL_REGISTER_ASYNCHRONOUS(FedAsync, FedAsyncOptions, "fedasync", "every client's model is mixed into the server's when it arrives",
                         "Xie et al., OPT 2020");

}  // namespace
}  // namespace fl
