// The accuracy of one model on each client's own rows.
#include "scenarios/measures/measure.hpp"

namespace fl {
namespace {

template <class T>
class ClientAccuracy final : public Measure<T> {
 public:
  explicit ClientAccuracy(const NoOptions&) {}
  [[nodiscard]] std::vector<MeasureColumn> columns() const override {
    return {{.name = "client_accuracy_mean",
             .unit = "share",
             .definition = "accuracy of x_r on each client's own rows, mean over the clients",
             .empty = "not due (`evaluate.clients_every`)",
             .title = "mean client accuracy",
             .better = MeasureColumn::Better::higher,
             .shown = MeasureColumn::Shown::share},
            {.name = "client_accuracy_p10",
             .unit = "share",
             .definition = "10th percentile of the same",
             .empty = "as `client_accuracy_mean`",
             .title = "10th percentile of clients' accuracy",
             .better = MeasureColumn::Better::higher,
             .shown = MeasureColumn::Shown::share},
            {.name = "client_accuracy_p50",
             .unit = "share",
             .definition = "median of the same",
             .empty = "as `client_accuracy_mean`",
             .title = "median client accuracy",
             .better = MeasureColumn::Better::higher,
             .shown = MeasureColumn::Shown::share,
             .is_compared = false},
            {.name = "client_accuracy_p90",
             .unit = "share",
             .definition = "90th percentile of the same",
             .empty = "as `client_accuracy_mean`",
             .title = "90th percentile of clients' accuracy",
             .better = MeasureColumn::Better::higher,
             .shown = MeasureColumn::Shown::share,
             .is_compared = false},
            {.name = "client_accuracy_worst",
             .unit = "share",
             .definition = "smallest of the same",
             .empty = "as `client_accuracy_mean`",
             .title = "accuracy of the worst client",
             .better = MeasureColumn::Better::higher,
             .shown = MeasureColumn::Shown::share},
            {.name = "client_accuracy_deviation",
             .unit = "share",
             .definition = "standard deviation of the same",
             .empty = "as `client_accuracy_mean`",
             .title = "deviation of clients' accuracy",
             .shown = MeasureColumn::Shown::share,
             .is_compared = false}};
  }
  [[nodiscard]] MeasureCost cost() const override { return {.rows = true}; }
  [[nodiscard]] std::string refusal(const MeasureProblem<T>& problem) const override {
    if (problem.train.num_classes > 0) return "";
    return "accuracy needs classes, which data set \"" + problem.train.name + "\" does not have";
  }

  [[nodiscard]] bool reads_training_rows() const override { return false; }
  void measure(const MeasureView<T>& view, MeasureRow& row) override {
    const Spread accuracy = view.evaluation.client_accuracy(view.model);
    row.set("client_accuracy_mean", accuracy.mean);
    row.set("client_accuracy_p10", accuracy.p10);
    row.set("client_accuracy_p50", accuracy.p50);
    row.set("client_accuracy_p90", accuracy.p90);
    row.set("client_accuracy_worst", accuracy.smallest);
    row.set("client_accuracy_deviation", accuracy.deviation);
  }
};

FL_REGISTER_MEASURE(ClientAccuracy, NoOptions, "client_accuracy", "accuracy on each client's own rows, over the clients", "");

}  // namespace
}  // namespace fl
