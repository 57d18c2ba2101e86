// Losses and accuracy of the model.
#include <cmath>

#include "scenarios/measures/measure.hpp"

namespace fl {
namespace {

struct LossesOptions {
  bool train_loss = true, test_set = true;
};
inline void describe(Schema& schema, LossesOptions& options) {
  schema.field("train_loss", options.train_loss, "loss over all training rows, and the gap to f*");
  schema.field("test_set", options.test_set, "loss and accuracy on the test set; the runs of tuning go without");
}

template <class T>
class Losses final : public Measure<T> {
 public:
  explicit Losses(const LossesOptions& options) : options_(options) {}
  [[nodiscard]] std::vector<MeasureColumn> columns() const override {
    return {{.name = "f_gap",
             .unit = "loss",
             .definition = "f(x_r) - f\\*",
             .empty = "as `train_loss`, or without f\\*: models that are not convex, a minimum that is not known (docs/maths.md), "
                      "`evaluate.optimum = false`",
             .title = "f(x) − f*",
             .shown = MeasureColumn::Shown::gap},
            {.name = "test_accuracy",
             .unit = "share",
             .definition = "rows (of text: positions) of the test set that x_r labels correctly, in [0, 1]",
             .empty = "not evaluated; no test set; no classes",
             .title = "test accuracy",
             .better = MeasureColumn::Better::higher,
             .shown = MeasureColumn::Shown::share},
            {.name = "train_loss",
             .unit = "loss",
             .definition = "f(x_r), the regulariser included",
             .empty = "not evaluated in this round (`evaluate.every`), or `evaluate.train_loss = false`",
             .title = "training loss"},
            {.name = "perplexity",
             .definition = "exp(`test_loss`)",
             .empty = "not evaluated; no test set; data that are not text",
             .title = "perplexity"},
            {.name = "test_loss",
             .unit = "loss",
             .definition = "mean loss of the test rows, without the regulariser",
             .empty = "not evaluated; no test set",
             .title = "test loss",
             .is_compared = false}};
  }
  [[nodiscard]] MeasureCost cost() const override { return {.rows = true}; }

  [[nodiscard]] bool reads_training_rows() const override { return false; }
  void measure(const MeasureView<T>& view, MeasureRow& row) override {
    if (options_.train_loss) {
      const double loss = view.evaluation.train_loss(view.model);
      row.set("train_loss", loss);
      row.set("f_gap", loss - view.f_star);
    }
    if (!options_.test_set) return;
    const Accuracy test = view.evaluation.test(view.model);
    row.set("test_accuracy", test.accuracy);
    row.set("test_loss", test.loss);
    if (view.problem.train.vocabulary.next_token != NextToken::none) row.set("perplexity", std::exp(test.loss));
  }

 private:
  LossesOptions options_;
};

FL_REGISTER_MEASURE(Losses, LossesOptions, "losses", "losses and accuracy, on the training and on the test set", "");

}  // namespace
}  // namespace fl
