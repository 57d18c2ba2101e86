// Over-selection: a round that is made for m messages asks more than m clients, and closes when m messages are there. T = t_(m), the m-th
// smallest time of arrival; of equal times those of the smaller client ids come first. With a deadline D, T = min(D, t_(m)).
//
// Source: K. Bonawitz, H. Eichner, W. Grieskamp, D. Huba, A. Ingerman, V. Ivanov, C. Kiddon, J. Konecny, S. Mazzocchi, B. McMahan, T. Van
// Overveldt, D. Petrou, D. Ramage, J. Roselander, "Towards Federated Learning at Scale: System Design", MLSys 2019: 130% of the clients.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "server/delivery_policy.hpp"

namespace fl {
namespace {

struct FirstOptions {
  double over_selection = 1.3;
  double deadline_s = 0;  // 0 = none
};
void describe(Schema& schema, FirstOptions& options) {
  schema
      .field("over_selection", options.over_selection,
             "clients that are asked, as a multiple of those that [participation] states, rounded up")
      .at_least(1)
      .at_most(1e6);
  schema.field("deadline_s", options.deadline_s, "time of a round from its opening; unset: it waits for the awaited messages")
      .above(0)
      .at_most(1e6)
      .unit("s");
}

class DeliveryOfFirst final : public DeliveryPolicy {
 public:
  explicit DeliveryOfFirst(const FirstOptions& options)
      : over_selection_(options.over_selection),
        deadline_s_(options.deadline_s > 0 ? options.deadline_s : std::numeric_limits<double>::infinity()) {}
  [[nodiscard]] double over_selection() const override { return over_selection_; }
  [[nodiscard]] double decide(std::span<const double> arrival_s, std::size_t awaited, std::span<std::uint8_t> counts) const override {
    std::vector<std::uint32_t> arrived;
    for (std::uint32_t i = 0; i < arrival_s.size(); ++i)
      if (arrival_s[i] <= deadline_s_ && std::isfinite(arrival_s[i])) arrived.push_back(i);
    const auto is_before = [&](std::uint32_t a, std::uint32_t b) {
      return arrival_s[a] != arrival_s[b] ? arrival_s[a] < arrival_s[b] : a < b;
    };
    double closing = deadline_s_;
    if (arrived.size() >= awaited) {
      const auto last = arrived.begin() + static_cast<std::ptrdiff_t>(awaited) - 1;
      std::ranges::nth_element(arrived, last, is_before);
      closing = arrival_s[*last];
      arrived.resize(awaited);
    }
    std::ranges::fill(counts, std::uint8_t{0});
    for (const std::uint32_t i : arrived) counts[i] = 1;
    return closing;
  }

 private:
  double over_selection_, deadline_s_;
};

FL_REGISTER_DELIVERY(DeliveryOfFirst, FirstOptions, "first", "asks more clients than it needs, and takes the first messages",
                     "Bonawitz et al., MLSys 2019");

}  // namespace
}  // namespace fl
