// The gradient of all rows, and how much it differs between clients.
#include "scenarios/measures/measure.hpp"

namespace fl {
namespace {

template <class T>
class GradientMeasure final : public Measure<T> {
 public:
  explicit GradientMeasure(const NoOptions&) {}
  [[nodiscard]] std::vector<MeasureColumn> columns() const override {
    return {{.name = "global_grad_norm_sq",
             .unit = "squared gradient",
             .definition = "abs(grad f(x_r))^2",
             .empty = "gradients of all rows were not computed (`evaluate.gradient`, `evaluate.gradient_every`)",
             .title = "|∇f(x)|²",
             .shown = MeasureColumn::Shown::gap,
             .is_compared = false},
            {.name = "zeta_sq",
             .unit = "squared gradient",
             .definition = "sum over clients of w_i abs(grad f_i(x_r) - grad f(x_r))^2",
             .empty = "as `global_grad_norm_sq`",
             .title = "ζ²",
             .is_compared = false},
            {.name = "gradient_dissimilarity",
             .definition = "B^2: sum over clients of w_i abs(grad f_i(x_r))^2 / abs(grad f(x_r))^2",
             .empty = "as `global_grad_norm_sq`",
             .title = "gradient dissimilarity B²",
             .is_compared = false}};
  }
  [[nodiscard]] MeasureCost cost() const override { return {.gradients = true}; }

  [[nodiscard]] bool reads_training_rows() const override { return false; }
  void measure(const MeasureView<T>& view, MeasureRow& row) override {
    const GradientStatistics gradient = view.evaluation.gradient(view.model);
    row.set("global_grad_norm_sq", gradient.norm_sq);
    row.set("zeta_sq", gradient.zeta_sq);
    row.set("gradient_dissimilarity", gradient.dissimilarity());
  }
};

FL_REGISTER_MEASURE(GradientMeasure, NoOptions, "gradients",
                    "squared norm of the global gradient, and the heterogeneity of clients' gradients", "");

}  // namespace
}  // namespace fl
