// The distance between x and the virtual iterate x - mean e of the theory.
#include <cmath>

#include "fl_core/ops/norms.hpp"
#include "scenarios/measures/measure.hpp"

namespace fl {
namespace {

template <class T>
class VirtualDrift final : public Measure<T> {
 public:
  explicit VirtualDrift(const NoOptions&) {}
  [[nodiscard]] std::vector<MeasureColumn> columns() const override {
    return {{.name = "virtual_drift",
             .unit = "input",
             .definition = "abs(mean of all clients' error memories): the distance between x_r and the virtual iterate",
             .empty = "not evaluated; the feedback has no error memory",
             .is_compared = false}};
  }

  [[nodiscard]] MeasureCost cost() const override { return {.memories = true}; }

  [[nodiscard]] bool reads_training_rows() const override { return false; }
  void measure(const MeasureView<T>& view, MeasureRow& row) override {
    const std::vector<double> mean = view.evaluation.mean_memory();
    if (!mean.empty()) row.set("virtual_drift", std::sqrt(sum_of_squares(mean.data(), mean.size())));
  }
};

FL_REGISTER_MEASURE(VirtualDrift, NoOptions, "virtual_drift", "norm of the mean of all clients' error memories", "");

}  // namespace
}  // namespace fl
