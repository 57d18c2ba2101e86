// A measure in one file: how well the updates of a round point the same way. For client i of the cohort it takes the cosine of the angle
// between its update d_i and the mean update of the cohort; columns are the mean over the cohort, the smallest one, and how many clients
// lie below a bound.
//
// docs/how-to-add-a-measure.md walks through this file.
#include <algorithm>
#include <cmath>
#include <vector>

#include "fedbits/plugin.hpp"

namespace fl {
namespace {

// 1. What a scenario file may say, beside `every`, which all measures have.
struct UpdateCosineOptions {
  double below = 0;
};
inline void describe(Schema& schema, UpdateCosineOptions& options) {
  schema.field("below", options.below, "clients whose cosine is below this are counted").at_least(-1).at_most(1);
}

template <class T>
class UpdateCosine final : public Measure<T> {
 public:
  explicit UpdateCosine(const UpdateCosineOptions& options) : below_(options.below) {}

  // 2. The columns: all that tables, pages and reports say about them.
  [[nodiscard]] std::vector<MeasureColumn> columns() const override {
    return {{.name = "update_cosine",
             .definition = "cosine between a client's update and the mean update, mean over the cohort",
             .empty = "not due; round 0; nobody took part",
             .title = "cosine of updates with their mean",
             .better = MeasureColumn::Better::higher},
            {.name = "update_cosine_least",
             .definition = "smallest of the same",
             .empty = "as `update_cosine`",
             .title = "least cosine of an update with the mean",
             .better = MeasureColumn::Better::higher},
            {.name = "update_cosine_below",
             .unit = "clients",
             .definition = "clients of the cohort whose cosine is below the option `below`",
             .empty = "as `update_cosine`",
             .type = MeasureColumn::Type::count,
             .is_compared = false}};
  }

  // 3. When it is due unless the scenario says `every`, and the data that the run must keep for it.
  [[nodiscard]] MeasureTimes when() const override { return MeasureTimes::messages; }
  [[nodiscard]] MeasureCost cost() const override { return {.updates = true}; }

  // 4. The values. Sums are taken in double and in one order, so that they are the same with any number of threads.
  void measure(const MeasureView<T>& view, MeasureRow& row) override {
    const std::size_t M = view.cohort.size(), P = view.model.size();
    if (M == 0) return;
    std::vector<double> mean(P, 0.0);
    for (std::uint32_t i = 0; i < M; ++i)
      for (std::size_t j = 0; j < P; ++j) mean[j] += static_cast<double>(view.updates.row(i)[j]) / static_cast<double>(M);
    double sum = 0, least = 1;
    std::uint64_t below = 0;
    for (std::uint32_t i = 0; i < M; ++i) {
      const double cosine = cosine_of(view.updates.row(i), mean);
      sum += cosine;
      least = std::min(least, cosine);
      below += cosine < below_ ? 1 : 0;
    }
    row.set("update_cosine", sum / static_cast<double>(M));
    row.set("update_cosine_least", least);
    row.set_count("update_cosine_below", below);
  }

 private:
  // 0 where a vector is zero.
  static double cosine_of(const T* update, const std::vector<double>& mean) {
    double product = 0, squares = 0, of_mean = 0;
    for (std::size_t j = 0; j < mean.size(); ++j) {
      const auto d = static_cast<double>(update[j]);
      product += d * mean[j];
      squares += d * d;
      of_mean += mean[j] * mean[j];
    }
    return squares > 0 && of_mean > 0 ? product / std::sqrt(squares * of_mean) : 0;
  }

  double below_;
};

// 5. The name in scenario files, a summary and a source for `fedbits list`.
FL_REGISTER_MEASURE(UpdateCosine, UpdateCosineOptions, "update_cosine", "how well the updates of a round point the same way", "");

}  // namespace
}  // namespace fl
