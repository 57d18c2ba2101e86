// The dissimilarity of the cohort's updates, and the drift of its models.
#include "scenarios/measures/measure.hpp"
#include "scenarios/measures/measure_statistics.hpp"

namespace fl {
namespace {

template <class T>
class Updates final : public Measure<T> {
 public:
  explicit Updates(const NoOptions&) {}
  [[nodiscard]] std::vector<MeasureColumn> columns() const override {
    return {{.name = "update_dissimilarity",
             .definition = "mean abs(d_i)^2 / abs(mean d_i)^2 of the cohort's updates before compression",
             .empty = "not due (`evaluate.updates_every`)",
             .title = "update dissimilarity"},
            {.name = "client_drift",
             .unit = "squared parameters",
             .definition = "mean abs(y_i - mean y)^2 of the cohort's models after their local steps",
             .empty = "as `update_dissimilarity`",
             .title = "client drift"}};
  }
  [[nodiscard]] MeasureCost cost() const override { return {.updates = true}; }

  [[nodiscard]] bool reads_training_rows() const override { return false; }
  // Weighted as the server averages. A gradient counts as one local step, which moves a client by gamma times it.
  void measure(const MeasureView<T>& view, MeasureRow& row) override {
    if (view.cohort.empty()) return;
    std::vector<double> weight(view.cohort_weight.begin(), view.cohort_weight.end());
    double sum = 0;
    for (const double w : weight) sum += w;
    for (double& w : weight) w /= sum;
    const UpdateStatistics updates = update_statistics(view.updates, weight, view.pool);
    row.set("update_dissimilarity", updates.dissimilarity);
    row.set("client_drift", view.update_step * view.update_step * updates.variance);
  }
};

FL_REGISTER_MEASURE(Updates, NoOptions, "updates", "dissimilarity of the cohort's updates, and the drift of its models", "");

}  // namespace
}  // namespace fl
