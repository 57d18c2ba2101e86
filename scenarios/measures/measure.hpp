// A measure: columns of rounds.csv, and how a run fills them.
//
//   template <class T>
//   class ModelNorm final : public Measure<T> {
//    public:
//     explicit ModelNorm(const NoOptions&) {}
//     std::vector<MeasureColumn> columns() const override { return {{.name = "model_norm", .definition = "abs(x_r)"}}; }
//     void measure(const MeasureView<T>& view, MeasureRow& row) override { row.set("model_norm", norm_of(view.model)); }
//   };
//   FL_REGISTER_MEASURE(ModelNorm, NoOptions, "model_norm", "Euclidean norm of the model", "");
//
// A scenario asks for it by name (`evaluate.measures = ["model_norm"]`); the store, `fedbits export`, the reference and the report then
// have its columns. A run that does not ask for it neither makes it nor calls it. A measure reads a run through a MeasureView alone: it can
// change neither a model nor a message, so the other columns do not depend on it. docs/how-to-add-a-measure.md walks through an example.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clients/learning/model.hpp"
#include "fl_core/config/measure_column.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/data/dataset.hpp"
#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/thread_pool.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/round/client_measures.hpp"
#include "fl_core/state/archive.hpp"

namespace fl {

struct RoundTimeline;

// Statistics of one number per client, equally weighted. Percentiles are interpolated between order statistics: p of n values lies at place
// p (n - 1).
struct Spread {
  double mean = 0, p10 = 0, p50 = 0, p90 = 0, smallest = 0, deviation = 0;  // deviation: root of the mean squared distance from the mean
};

struct RankingQuality {
  double hit_rate = 0;  // share of test rows with rank <= 10
  double ndcg = 0;      // mean over test rows of 1 / log2(1 + rank) where rank <= 10, else 0
};

struct GradientStatistics {
  double norm_sq = 0;  // |grad f(x)|^2
  double zeta_sq = 0;  // sum_i w_i |grad f_i(x) - grad f(x)|^2

  // B^2 = sum_i w_i |grad f_i(x)|^2 / |grad f(x)|^2, which is 1 when clients are alike: T. Li et al., "Federated optimization in
  // heterogeneous networks", MLSys 2020, definition 3.
  [[nodiscard]] double dissimilarity() const { return 1 + zeta_sq / norm_sq; }
};

// Losses, accuracies and gradients over rows, at any model x [P]: on the GPU if the run has one. A loss may share its pass with a gradient.
template <class T>
class ModelEvaluation {
 public:
  virtual ~ModelEvaluation() = default;
  // f(x), the regulariser included.
  [[nodiscard]] virtual double train_loss(std::span<const T> x) = 0;
  // Returns mean loss and accuracy on the test set, or on the training set if there is no test set.
  [[nodiscard]] virtual Accuracy test(std::span<const T> x) = 0;
  [[nodiscard]] virtual GradientStatistics gradient(std::span<const T> x) = 0;
  // Accuracy on each client's own rows, with the parameters that it keeps.
  [[nodiscard]] virtual Spread client_accuracy(std::span<const T> x) = 0;
  [[nodiscard]] virtual RankingQuality ranking(std::span<const T> x) = 0;
  // The mean of all clients' error memories after the round [P]; empty where the feedback has none.
  [[nodiscard]] virtual std::vector<double> mean_memory() = 0;
};

// The costs of a round, for all clients together.
struct RoundCosts {
  std::uint64_t clients = 0, elements_up = 0, bits_up = 0, bits_down = 0, refused = 0;
  double bits_up_published = 0, bits_up_entropy = 0, residual_age = 0;
  const RoundTimeline* timeline = nullptr;  // in simulated time (timing/round_timeline.hpp); null without a clock, and at the start
};

// The problem of a run.
template <class T>
struct MeasureProblem {
  const Model<T>& model;
  const LayerTable& layers;
  const Dataset<T>& train;
  const Dataset<T>* test;           // null where there is no test set
  std::span<const Shard> shards;    // [N] each client's rows of `train`
  std::span<const double> weights;  // [N] w_i of f = sum_i w_i f_i
  bool has_optimum;                 // f* is known, or will be when the run begins
  bool has_clock = false;           // the run has simulated time
  bool has_rows = true;             // false: the rows are in other processes, `train` is their form, and no client has any here
};

// A run between two rounds, as a measure sees it. Everything is read-only and valid until measure() returns.
template <class T>
struct MeasureView {
  std::uint32_t round = 0, num_rounds = 0;                   // r, and the scenario's `rounds`
  std::span<const T> model{};                                // x_r [P]
  std::span<const double> average{};                         // the weighted average of x_0 .. x_(r-1) [P], of evaluate.average; else empty
  double f_star = std::numeric_limits<double>::quiet_NaN();  // NaN: not known
  const MeasureProblem<T>& problem;
  ModelEvaluation<T>& evaluation;
  ThreadPool& pool;

  // The round that was just played, client by client of its cohort of M; empty at the start (round 0) and after a skipped round.
  std::span<const std::uint32_t> cohort{};     // [M] who took part
  std::span<const double> cohort_weight{};     // [M] of the server's average
  std::span<const std::uint8_t> delivered{};   // [M] 1 = the message arrived
  std::span<const ClientMeasures> messages{};  // [M] norms, for MeasureCost::messages
  BatchView<const T> updates{};                // [M,P] vectors before compression, for MeasureCost::updates
  double update_step = 1;                      // an update times this is the way that it moves the model: gamma for gradients
  RoundCosts costs{};
};

// A value of a column: of its type alone.
struct MeasureValue {
  double real = std::numeric_limits<double>::quiet_NaN();
  std::uint64_t count = 0;
  bool is_set = false;
};

// Where a measure puts its values. A column that it does not set is not measured in this row.
class FL_API MeasureRow {
 public:
  // `values` [columns] receives them. All outlive it.
  MeasureRow(const std::string& measure, std::span<const MeasureColumn> columns, std::span<MeasureValue> values)
      : measure_(measure), columns_(columns), values_(values) {}
  // Set a column of the measure. Throw Error for another name, and for a column of the other type.
  void set(std::string_view column, double value);
  void set_count(std::string_view column, std::uint64_t value);

 private:
  [[nodiscard]] MeasureValue& find(std::string_view column, MeasureColumn::Type type);
  const std::string& measure_;
  std::span<const MeasureColumn> columns_;
  std::span<MeasureValue> values_;
};

// When a measure is due unless the scenario says so with `every`: in each round, when losses are (evaluate.every), when norms of the
// messages are (evaluate.measure_every), at the start alone, or after the last round alone. What is due periodically is due in the last
// round too.
enum class MeasureTimes { each_round, evaluations, messages, start, end };

// The inputs that a measure needs beyond those that every run has. The run provides them in rounds in which the measure is due.
struct MeasureCost {
  bool rows = false;       // passes over all rows (losses)
  bool gradients = false;  // gradients of all rows
  bool messages = false;   // norms of each message: MeasureView::messages
  bool memories = false;   // the error memories of all clients: ModelEvaluation::mean_memory
  bool updates = false;    // the cohort's vectors before compression: MeasureView::updates, M x P numbers
};
// Returns "a pass over all rows and the norms of messages", or "little".
[[nodiscard]] FL_API std::string text_of(const MeasureCost& cost);

template <class T>
class Measure {
 public:
  virtual ~Measure() = default;
  // Returns the same columns at every call.
  [[nodiscard]] virtual std::vector<MeasureColumn> columns() const = 0;
  [[nodiscard]] virtual MeasureTimes when() const { return MeasureTimes::evaluations; }
  [[nodiscard]] virtual MeasureCost cost() const { return {}; }
  // Returns why this problem cannot be measured ("needs classes, which ..."), or "".
  [[nodiscard]] virtual std::string refusal(const MeasureProblem<T>& problem) const {
    (void)problem;
    return {};
  }
  // Returns whether it reads rows of MeasureProblem::train itself, beside what it requests of the ModelEvaluation. A run whose training
  // rows are in other processes refuses such a measure.
  [[nodiscard]] virtual bool reads_training_rows() const { return true; }
  // Tells of x_{r-1} [P] before each round r, for measures that follow the model; the others leave it alone.
  virtual void before_round(std::uint32_t round, std::span<const T> model) {
    (void)round;
    (void)model;
  }
  virtual void measure(const MeasureView<T>& view, MeasureRow& row) = 0;
  // Writes or reads what a measure keeps from round to round, so that a run that goes on from a checkpoint has the same values.
  virtual void persist(Archive& archive) { (void)archive; }
};

// The options of a measure with the one that all have.
template <class Options>
struct MeasureOptions {
  std::int64_t every = 0;
  Options own{};
};
template <class Options>
void describe(Schema& schema, MeasureOptions<Options>& options) {
  schema.field("every", options.every, "how often it is measured; the last round always is; 0 = the measure's default")
      .at_least(0)
      .at_most(4294967295.0)
      .unit("rounds");
  describe(schema, options.own);
}
template <class Options>
void validate(const MeasureOptions<Options>& options, std::vector<Problem>& problems) {
  validate_if_declared(options.own, problems);
}

// Registers Class<float> and Class<double>, constructed from OptionsStruct (fl::NoOptions for a measure without options).
#define FL_REGISTER_MEASURE(Class, OptionsStruct, name, summary, source)                                             \
  static const bool FL_JOIN(measure_, __COUNTER__) = [] {                                                            \
    auto& registry = ::fl::Registry::instance();                                                                     \
    registry.describe({"measure", name, summary, source}, ::fl::Options::of<::fl::MeasureOptions<OptionsStruct>>()); \
    const auto add = [&registry]<class T>(T, ::fl::Precision precision) {                                            \
      registry.add("measure", name, ::fl::Device::cpu, precision,                                                    \
                   ::fl::Factory<::fl::Measure<T>>([](const ::fl::Options& o) -> std::unique_ptr<::fl::Measure<T>> { \
                     return std::make_unique<Class<T>>(o.as<::fl::MeasureOptions<OptionsStruct>>().own);             \
                   }));                                                                                              \
    };                                                                                                               \
    add(float(), ::fl::Precision::float32);                                                                          \
    add(double(), ::fl::Precision::float64);                                                                         \
    return true;                                                                                                     \
  }()

}  // namespace fl
