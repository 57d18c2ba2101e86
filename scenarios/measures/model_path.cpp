// The norm of the model, the distance by which the last round moved it, and the length of its path so far.
#include <cmath>

#include "scenarios/measures/measure.hpp"

namespace fl {
namespace {

template <class T>
class ModelPath final : public Measure<T> {
 public:
  explicit ModelPath(const NoOptions&) {}
  [[nodiscard]] std::vector<MeasureColumn> columns() const override {
    return {{.name = "model_norm", .unit = "parameters", .definition = "abs(x_r)", .title = "|x|", .is_compared = false},
            {.name = "model_change",
             .unit = "parameters",
             .definition = "abs(x_r - x_(r-1))",
             .empty = "not due; round 0",
             .title = "change of the model in a round",
             .shown = MeasureColumn::Shown::gap},
            {.name = "model_path",
             .unit = "parameters",
             .definition = "sum of abs(x_s - x_(s-1)) over the rounds s until r",
             .title = "length of the model's path"}};
  }
  void before_round(std::uint32_t, std::span<const T> model) override {
    if (!before_.empty()) path_ += distance_from_before(model);
    before_.assign(model.begin(), model.end());
  }
  [[nodiscard]] bool reads_training_rows() const override { return false; }
  void measure(const MeasureView<T>& view, MeasureRow& row) override {
    double norm = 0;
    for (const T x : view.model) norm += static_cast<double>(x) * static_cast<double>(x);
    const double change = before_.empty() ? 0 : distance_from_before(view.model);
    row.set("model_norm", std::sqrt(norm));
    if (view.round > 0) row.set("model_change", change);
    row.set("model_path", path_ + change);
  }
  void persist(Archive& archive) override {
    archive.section("model_path");
    archive.value(path_);
    archive.list(before_);
  }

 private:
  [[nodiscard]] double distance_from_before(std::span<const T> model) const {
    double sum = 0;
    for (std::size_t j = 0; j < model.size(); ++j) {
      const double d = static_cast<double>(model[j]) - static_cast<double>(before_[j]);
      sum += d * d;
    }
    return std::sqrt(sum);
  }

  std::vector<T> before_;  // x_(r-1) [P]; empty at the start
  double path_ = 0;        // until x_(r-1)
};

FL_REGISTER_MEASURE(ModelPath, NoOptions, "model_path", "norm of the model, its change in a round, and the length of its path", "");

}  // namespace
}  // namespace fl
