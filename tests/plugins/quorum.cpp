// A delivery: when a share of the awaited messages is there, the round stays open for the same time once more, `slack` times.
#include <algorithm>
#include <cmath>
#include <vector>

#include "server/delivery_policy.hpp"

namespace fl {

struct QuorumOptions {
  double share = 0.5, slack = 0.5;
};
inline void describe(Schema& schema, QuorumOptions& options) {
  schema.field("share", options.share, "of the awaited messages").above(0).at_most(1);
  schema.field("slack", options.slack, "further time, as a multiple of the time until then").at_least(0);
}

namespace {

class Quorum final : public DeliveryPolicy {
 public:
  explicit Quorum(const QuorumOptions& options) : options_(options) {}

  double decide(std::span<const double> arrival_s, std::size_t awaited, std::span<std::uint8_t> counts) const override {
    std::vector<double> times(arrival_s.begin(), arrival_s.end());
    std::ranges::sort(times);
    const auto quorum = static_cast<std::size_t>(std::ceil(options_.share * static_cast<double>(awaited)));
    const double closes = std::min((1 + options_.slack) * times[std::max<std::size_t>(quorum, 1) - 1], times.back());
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = std::isfinite(arrival_s[i]) && arrival_s[i] <= closes ? 1 : 0;
    return closes;
  }

 private:
  QuorumOptions options_;
};

FL_REGISTER_DELIVERY(Quorum, QuorumOptions, "quorum", "waits for a share of the messages, and some time for the others", "");

}  // namespace
}  // namespace fl
