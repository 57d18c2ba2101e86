// A rule of aggregation: in each coordinate the mean of the messages without the `trim` smallest and the `trim` largest numbers, times the
// sum of the weights.
#include <algorithm>
#include <vector>

#include "server/aggregation_rule.hpp"

namespace fl {

struct TrimmedMeanOptions {
  std::int64_t trim = 1;
};
inline void describe(Schema& schema, TrimmedMeanOptions& options) {
  schema.field("trim", options.trim, "messages that are left out on either side").at_least(0);
}

namespace {

class TrimmedMean final : public AggregationRule {
 public:
  explicit TrimmedMean(const TrimmedMeanOptions& options) : trim_(static_cast<std::size_t>(options.trim)) {}

  void combine(const Exec&, std::span<const double> weights, BatchView<const double> rows, std::span<double> out) const override {
    double total = 0;
    for (const double weight : weights) total += weight;
    std::vector<double> values(weights.size());
    const std::size_t left_out = std::min(trim_, (values.size() - 1) / 2);
    for (std::size_t j = 0; j < out.size(); ++j) {
      for (std::uint32_t i = 0; i < values.size(); ++i) values[i] = rows.row(i)[j];
      std::ranges::sort(values);
      double sum = 0;
      for (std::size_t i = left_out; i < values.size() - left_out; ++i) sum += values[i];
      out[j] = total * sum / static_cast<double>(values.size() - 2 * left_out);
    }
  }

 private:
  std::size_t trim_;
};

FL_REGISTER_AGGREGATION(TrimmedMean, TrimmedMeanOptions, "trimmed_mean", "the mean of the numbers in the middle", "Yin et al., ICML 2018");

}  // namespace
}  // namespace fl
