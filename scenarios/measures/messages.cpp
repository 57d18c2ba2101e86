// Norms of the round's messages, means over the cohort, and what the operator promised against what happened.
#include <algorithm>
#include <cmath>

#include "scenarios/measures/measure.hpp"

namespace fl {
namespace {

template <class T>
class Messages final : public Measure<T> {
 public:
  explicit Messages(const NoOptions&) {}
  [[nodiscard]] std::vector<MeasureColumn> columns() const override {
    return {{.name = "grad_norm_sq",
             .unit = "squared input",
             .definition = "mean of abs(g)^2, g the compressor's input without memory",
             .empty = "messages were not measured (`evaluate.measure_every`); nothing was delivered; round 0",
             .title = "mean |input|²",
             .shown = MeasureColumn::Shown::gap,
             .is_compared = false},
            {.name = "error_norm_sq",
             .unit = "squared input",
             .definition = "mean of abs(e)^2, e the error memory before the round",
             .empty = "as `grad_norm_sq`",
             .title = "mean |e|²",
             .shown = MeasureColumn::Shown::gap,
             .is_compared = false},
            {.name = "compensated_norm_sq",
             .unit = "squared input",
             .definition = "mean of abs(p)^2, p the vector that was compressed",
             .empty = "as `grad_norm_sq`",
             .shown = MeasureColumn::Shown::gap,
             .is_compared = false},
            {.name = "compression_error_sq",
             .unit = "squared input",
             .definition = "mean of abs(C(p) - p)^2",
             .empty = "as `grad_norm_sq`",
             .is_compared = false},
            {.name = "measured_kappa",
             .unit = "input",
             .definition = "largest abs(C(p) - p) of the cohort",
             .empty = "as `grad_norm_sq`",
             .is_compared = false},
            {.name = "measured_delta",
             .definition = "smallest 1 - abs(C(p) - p)^2 / abs(p)^2 of the cohort",
             .empty = "as `grad_norm_sq`",
             .better = MeasureColumn::Better::higher,
             .is_compared = false},
            {.name = "measured_omega",
             .definition = "largest abs(C(p) - p)^2 / abs(p)^2 of the cohort",
             .empty = "as `grad_norm_sq`",
             .is_compared = false}};
  }
  [[nodiscard]] MeasureCost cost() const override { return {.messages = true}; }

  [[nodiscard]] bool reads_training_rows() const override { return false; }
  void measure(const MeasureView<T>& view, MeasureRow& row) override {
    double error = 0, input = 0, compensated = 0, compression = 0, kappa = 0, delta = 1, omega = 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < view.messages.size(); ++i) {
      const ClientMeasures& m = view.messages[i];
      if (view.delivered[i] == 0 || m.compensated < 0) continue;  // did not arrive, or is left out
      ++count;
      error += m.error;
      input += m.input;
      compensated += m.compensated;
      compression += m.compression_error;
      kappa = std::max(kappa, std::sqrt(m.compression_error));
      if (!(m.compensated > 0)) continue;
      delta = std::min(delta, 1 - m.compression_error / m.compensated);
      omega = std::max(omega, m.compression_error / m.compensated);
    }
    if (count == 0) return;
    const auto M = static_cast<double>(count);
    row.set("error_norm_sq", error / M);
    row.set("grad_norm_sq", input / M);
    row.set("compensated_norm_sq", compensated / M);
    row.set("compression_error_sq", compression / M);
    row.set("measured_kappa", kappa);
    row.set("measured_delta", delta);
    row.set("measured_omega", omega);
  }
};

FL_REGISTER_MEASURE(Messages, NoOptions, "messages", "norms of the messages that arrived and of their errors", "");

}  // namespace
}  // namespace fl
