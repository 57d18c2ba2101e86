// A round closes D seconds after its opening, or when all messages are there: T = min(D, max_i t_i). What comes later does not count.
#include <algorithm>

#include "server/delivery_policy.hpp"

namespace fl {
namespace {

struct DeadlineOptions {
  double deadline_s = 0;
};
void describe(Schema& schema, DeadlineOptions& options) {
  schema.field("deadline_s", options.deadline_s, "time of a round from its opening; messages that come later do not count")
      .above(0)
      .at_most(1e6)
      .unit("s")
      .required();
}

class DeliveryByDeadline final : public DeliveryPolicy {
 public:
  explicit DeliveryByDeadline(const DeadlineOptions& options) : deadline_s_(options.deadline_s) {}
  [[nodiscard]] double decide(std::span<const double> arrival_s, std::size_t, std::span<std::uint8_t> counts) const override {
    std::ranges::transform(arrival_s, counts.begin(), [this](double t) -> std::uint8_t { return t <= deadline_s_ ? 1 : 0; });
    return std::min(deadline_s_, std::ranges::max(arrival_s));
  }

 private:
  double deadline_s_;
};

FL_REGISTER_DELIVERY(DeliveryByDeadline, DeadlineOptions, "deadline", "closes a round after some seconds, without those who are late",
                     "Bonawitz et al., MLSys 2019");

}  // namespace
}  // namespace fl
