// Quality of recommendations: each test row's item among 99 that its user has not met.
#include "scenarios/measures/measure.hpp"

namespace fl {
namespace {

template <class T>
class Ranking final : public Measure<T> {
 public:
  explicit Ranking(const NoOptions&) {}
  [[nodiscard]] std::vector<MeasureColumn> columns() const override {
    return {{.name = "hit_rate_10",
             .unit = "share",
             .definition = "test rows whose item is among the first 10 of 100, in [0, 1]",
             .empty = "not due (`evaluate.ranking_every`)",
             .title = "hit rate at 10",
             .better = MeasureColumn::Better::higher,
             .shown = MeasureColumn::Shown::share},
            {.name = "ndcg_10",
             .definition = "normalised discounted cumulative gain of the same ranking",
             .empty = "as `hit_rate_10`",
             .title = "NDCG at 10",
             .better = MeasureColumn::Better::higher,
             .shown = MeasureColumn::Shown::share}};
  }
  [[nodiscard]] MeasureCost cost() const override { return {.rows = true}; }
  [[nodiscard]] std::string refusal(const MeasureProblem<T>& problem) const override {
    if (problem.train.vocabulary.num_users > 0 && problem.test != nullptr && problem.model.num_outputs() == 1) return "";
    return "needs ratings with a test set (data.leave_one_out = true) and a model with one score for a row (kind = \"ncf\")";
  }

  void measure(const MeasureView<T>& view, MeasureRow& row) override {
    const RankingQuality quality = view.evaluation.ranking(view.model);
    row.set("hit_rate_10", quality.hit_rate);
    row.set("ndcg_10", quality.ndcg);
  }
};

FL_REGISTER_MEASURE(Ranking, NoOptions, "ranking", "hit rate and NDCG at 10 of ratings", "");

}  // namespace
}  // namespace fl
