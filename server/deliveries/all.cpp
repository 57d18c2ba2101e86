// A round waits for every client that it has asked: T = max_i t_i.
#include <algorithm>
#include <cmath>

#include "server/delivery_policy.hpp"

namespace fl {
namespace {

class DeliveryOfAll final : public DeliveryPolicy {
 public:
  explicit DeliveryOfAll(const NoOptions&) {}
  [[nodiscard]] bool waits_for_all() const override { return true; }
  [[nodiscard]] double decide(std::span<const double> arrival_s, std::size_t, std::span<std::uint8_t> counts) const override {
    std::ranges::transform(arrival_s, counts.begin(), [](double t) -> std::uint8_t { return std::isfinite(t) ? 1 : 0; });
    return std::ranges::max(arrival_s);
  }
};

FL_REGISTER_DELIVERY(DeliveryOfAll, NoOptions, "all", "waits for every client of the round", "");

}  // namespace
}  // namespace fl
