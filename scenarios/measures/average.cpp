// The gap of the weighted average of the models so far, which theorems of convex optimisation bound.
#include "scenarios/measures/measure.hpp"

namespace fl {
namespace {

template <class T>
class AverageModel final : public Measure<T> {
 public:
  explicit AverageModel(const NoOptions&) {}
  [[nodiscard]] std::vector<MeasureColumn> columns() const override {
    return {{.name = "average_f_gap",
             .unit = "loss",
             .definition = "f - f\\* at the weighted average of x_0 .. x_(r-1)",
             .empty = "`evaluate.average = false`; not evaluated; without f\\*",
             .title = "f − f* at the average model",
             .shown = MeasureColumn::Shown::gap,
             .is_compared = false}};
  }
  [[nodiscard]] MeasureCost cost() const override { return {.rows = true}; }
  [[nodiscard]] std::string refusal(const MeasureProblem<T>& problem) const override {
    return problem.has_optimum ? "" : "needs f*: a convex model and evaluate.optimum = true, or the path of a file that holds x*";
  }

  [[nodiscard]] bool reads_training_rows() const override { return false; }
  void measure(const MeasureView<T>& view, MeasureRow& row) override {
    const std::vector<T> at(view.average.begin(), view.average.end());
    row.set("average_f_gap", view.evaluation.train_loss(at) - view.f_star);
  }
};

FL_REGISTER_MEASURE(AverageModel, NoOptions, "average", "f - f* at the weighted average of the models", "");

}  // namespace
}  // namespace fl
