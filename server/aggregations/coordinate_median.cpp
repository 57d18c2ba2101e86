// The weighted median of the messages, coordinate by coordinate: out_j = A median_j, A = sum_i a_i over the messages that arrived.
//
// median_j lies in the middle of the numbers m for which the clients with c_ij <= m have half of the weight A, and so have those with
// c_ij >= m. With equal weights it is the usual median. Clients with more than half of the weight keep it in their range, whatever the
// others send. The factor A keeps the scale of an estimate whose weights do not sum to 1. Source: D. Yin, Y. Chen, K. Ramchandran, P.
// Bartlett, ICML 2018 (for equal weights).
#include <algorithm>
#include <numeric>
#include <vector>

#include "fl_core/memory/workspace.hpp"
#include "server/aggregation_rule.hpp"

namespace fl {
namespace {

class CoordinateMedian final : public AggregationRule {
 public:
  explicit CoordinateMedian(const NoOptions&) {}

  void combine(const Exec& exec, std::span<const double> weights, BatchView<const double> rows, std::span<double> out) const override {
    Workspace::Frame frame(*exec.workspace);
    const std::size_t M = weights.size();
    const std::span<Entry> entries(frame.take<Entry>(M), M);
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    const bool is_equal = std::ranges::all_of(weights, [&](double weight) { return weight == weights.front(); });
    for (std::size_t j = 0; j < out.size(); ++j) {
      for (std::uint32_t i = 0; i < M; ++i) entries[i] = {rows.row(i)[j], weights[i]};
      out[j] = total * (is_equal ? median(entries) : weighted_median(entries, total));
    }
  }

 private:
  struct Entry {
    double value, weight;
    bool operator<(const Entry& other) const { return value < other.value; }
  };

  // Counts decide, so that rounding of the weights' sum does not.
  [[nodiscard]] static double median(std::span<Entry> entries) {
    const auto middle = entries.begin() + static_cast<std::ptrdiff_t>(entries.size() / 2);
    std::nth_element(entries.begin(), middle, entries.end());
    if (entries.size() % 2 == 1) return middle->value;
    return std::midpoint(std::max_element(entries.begin(), middle)->value, middle->value);
  }

  [[nodiscard]] static double weighted_median(std::span<Entry> entries, double total) {
    std::ranges::sort(entries, {}, &Entry::value);
    double below = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      below += entries[i].weight;
      if (below > total / 2 || i + 1 == entries.size()) return entries[i].value;
      if (below == total / 2) return std::midpoint(entries[i].value, entries[i + 1].value);
    }
    return 0;
  }
};

FL_REGISTER_AGGREGATION(CoordinateMedian, NoOptions, "coordinate_median", "the weighted median of the messages in each coordinate",
                        "Yin et al., ICML 2018");

}  // namespace
}  // namespace fl
