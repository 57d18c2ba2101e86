// The sizes of the cohort's updates, entry by entry: the sums of absolute values, which decide how much a fixed threshold sends.
//
// With error feedback a threshold t sends an entry of constant size a once in t/a rounds, so that a client sends |u|_1 / t entries a round.
#include <cmath>
#include <vector>

#include "scenarios/measures/measure.hpp"

namespace fl {
namespace {

template <class T>
class UpdateSizes final : public Measure<T> {
 public:
  explicit UpdateSizes(const NoOptions&) {}
  [[nodiscard]] std::vector<MeasureColumn> columns() const override {
    return {{.name = "update_l1",
             .unit = "input",
             .definition = "mean over the cohort of the sum of absolute values of an update before compression",
             .empty = "not due (`evaluate.updates_every`)",
             .title = "l1 norm of updates"},
            {.name = "update_l1_sq",
             .unit = "squared input",
             .definition = "mean over the cohort of the square of that sum",
             .empty = "as `update_l1`",
             .title = "squared l1 norm of updates"}};
  }
  [[nodiscard]] MeasureCost cost() const override { return {.updates = true}; }
  [[nodiscard]] bool reads_training_rows() const override { return false; }

  void measure(const MeasureView<T>& view, MeasureRow& row) override {
    const std::size_t M = view.cohort.size();
    if (M == 0) return;
    std::vector<double> size(M);
    view.pool.parallel_for(static_cast<std::uint32_t>(M), [&](std::uint32_t k, const Exec&) {
      const T* update = view.updates.row(k);
      for (std::size_t j = 0; j < view.updates.P; ++j) size[k] += std::fabs(static_cast<double>(update[j]));
    });
    double mean = 0, square = 0;
    for (const double one : size) {
      mean += one / static_cast<double>(M);
      square += one * one / static_cast<double>(M);
    }
    row.set("update_l1", mean);
    row.set("update_l1_sq", square);
  }
};

FL_REGISTER_MEASURE(UpdateSizes, NoOptions, "update_sizes",
                    "sums of absolute values of the cohort's updates, which a threshold's bits follow", "");

}  // namespace
}  // namespace fl
