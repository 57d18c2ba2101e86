// FedBuff: the server steps along the weighted sum of every K messages that have arrived.
//
//   x <- x - s sum_i weight_i s(tau_i) c_i        the weights are those of a cohort of these K clients; K = 1: asynchronous SGD
// Clients begin at the model of the time at which they begin. The place of a client whose message has arrived is taken by another at once.
//
// Source: J. Nguyen, K. Malik, H. Zhan, A. Yousefpour, M. Rabbat, M. Malek, D. Huba, "Federated learning with buffered asynchronous
// aggregation", AISTATS 2022, algorithm 1.
#include "server/async_rule.hpp"
#include "server/staleness.hpp"

namespace fl {
namespace {

enum class Refill { arrival, step };
struct FedBuffOptions {
  std::int64_t buffer = 10;
  Refill refill = Refill::arrival;
  Staleness staleness;
};
void describe(Schema& schema, FedBuffOptions& options) {
  schema.field("buffer", options.buffer, "messages for which the server steps once").at_least(1).at_most(1e9).unit("messages");
  schema.choice("refill", options.refill, {{Refill::arrival, "arrival"}, {Refill::step, "step"}},
                "when the place of a client whose message has arrived is taken by another: at once, or when the server has stepped");
  describe_staleness(schema, options.staleness);
}
void validate(const FedBuffOptions& options, Problems& problems) { validate_staleness(options.staleness, problems); }

class FedBuff final : public AsyncRule {
 public:
  explicit FedBuff(const FedBuffOptions& options) : options_(options) {}
  [[nodiscard]] std::size_t buffer() const override { return static_cast<std::size_t>(options_.buffer); }
  [[nodiscard]] double weight(std::uint32_t tau) const override { return options_.staleness.weight(tau); }
  [[nodiscard]] bool ignores_age() const override { return options_.staleness.kind == Staleness::Kind::constant; }
  [[nodiscard]] bool refills_at_steps() const override { return options_.refill == Refill::step; }

 private:
  FedBuffOptions options_;
};

FL_REGISTER_ASYNCHRONOUS(FedBuff, FedBuffOptions, "fedbuff", "a step of the server for every `buffer` messages",
                         "Nguyen et al., AISTATS 2022");

}  // namespace
}  // namespace fl
