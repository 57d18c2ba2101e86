// The weighted sum of the messages: sum_i a_i c_i, with the weights a_i of the estimate (server/aggregator.hpp).
#include "server/aggregation_rule.hpp"

namespace fl {
namespace {

class Mean final : public AggregationRule {
 public:
  explicit Mean(const NoOptions&) {}
  [[nodiscard]] bool is_sum() const override { return true; }
};

FL_REGISTER_AGGREGATION(Mean, NoOptions, "mean", "the weighted sum of the messages", "");

}  // namespace
}  // namespace fl
