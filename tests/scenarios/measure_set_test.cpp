// Tests measures that a scenario asks for: the rounds in which they run, their inputs, that they change nothing, and that a measure that is
// not requested costs nothing.
#include "scenarios/file/measure_set.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "fl_core/state/checksum.hpp"
#include "tests/support/plain_loop.hpp"
#include "tests/support/run_text.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

using test::OneRun;
using test::run_text;
using test::ScenarioText;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Events that the probe below recorded, over all its objects.
struct ProbeLog {
  int made = 0, rounds_begun = 0;
  std::vector<std::uint32_t> rounds{};
  bool had_messages = true, had_updates = true;
};
ProbeLog g_probe_log;

struct ProbeOptions {
  std::string when = "evaluations";
  bool messages = false, updates = false, classes = false;
};
inline void describe(Schema& schema, ProbeOptions& options) {
  schema.field("when", options.when, "when it is due");
  schema.field("messages", options.messages, "needs messages");
  schema.field("updates", options.updates, "needs updates");
  schema.field("classes", options.classes, "needs classes");
}

template <class T>
class Probe final : public Measure<T> {
 public:
  explicit Probe(const ProbeOptions& options) : options_(options) { ++g_probe_log.made; }
  [[nodiscard]] std::vector<MeasureColumn> columns() const override {
    return {{.name = "probe_round", .definition = "the round", .type = MeasureColumn::Type::count},
            {.name = "probe_update", .definition = "squared norm of the mean update"}};
  }
  [[nodiscard]] MeasureTimes when() const override {
    if (options_.when == "each_round") return MeasureTimes::each_round;
    if (options_.when == "messages") return MeasureTimes::messages;
    if (options_.when == "start") return MeasureTimes::start;
    return options_.when == "end" ? MeasureTimes::end : MeasureTimes::evaluations;
  }
  [[nodiscard]] MeasureCost cost() const override { return {.messages = options_.messages, .updates = options_.updates}; }
  [[nodiscard]] std::string refusal(const MeasureProblem<T>& problem) const override {
    return options_.classes && problem.train.num_classes == 0 ? "needs classes" : "";
  }
  void before_round(std::uint32_t, std::span<const T>) override { ++g_probe_log.rounds_begun; }
  void measure(const MeasureView<T>& view, MeasureRow& row) override {
    g_probe_log.rounds.push_back(view.round);
    g_probe_log.had_messages = g_probe_log.had_messages && view.messages.size() == view.cohort.size();
    row.set_count("probe_round", view.round);
    if (!options_.updates) return;
    g_probe_log.had_updates = g_probe_log.had_updates && view.updates.K == view.cohort.size();
    double squares = 0;
    for (std::size_t j = 0; j < view.model.size(); ++j) {
      double mean = 0;
      for (std::uint32_t i = 0; i < view.updates.K; ++i) mean += view.cohort_weight[i] * static_cast<double>(view.updates.row(i)[j]);
      squares += mean * mean;
    }
    row.set("probe_update", squares);
  }

 private:
  ProbeOptions options_;
};
FL_REGISTER_MEASURE(Probe, ProbeOptions, "probe", "for tests: tells what it saw", "");

ScenarioText small_problem(const std::string& measures, int rounds = 10) {
  ScenarioText s = test::quadratics();
  s.rounds = rounds;
  s.local = "kind = 'gradient'\nlearning_rate = 0.25";
  s.up = "kind = 'top_k'\nk = 5";
  s.feedback = "kind = 'ef14'";
  s.evaluate = "every = 4\nmeasure_every = 3\n" + (measures.empty() ? "" : "measures = " + measures + "\n");
  return s;
}

ProbeLog seen_with(const std::string& measures, const std::string& more = "") {
  g_probe_log = {};
  ScenarioText s = small_problem(measures);
  s.more = more;
  (void)run_text(s.str());
  return g_probe_log;
}

// Returns the values of a column by round, those that were measured.
std::vector<std::pair<std::uint64_t, double>> column_of(const RunResult& result, const std::string& name) {
  std::vector<std::pair<std::uint64_t, double>> values;
  const std::size_t place = place_of(result.record.columns, name);
  for (const RoundRow& row : result.rows)
    if (!std::isnan(row.more.at(place))) values.emplace_back(row.round, row.more[place]);
  return values;
}

std::string config_error_of(const std::string& text) {
  try {
    (void)run_text(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(MeasureSet, IsDueAsItSaysOrAsTheScenarioDoes) {
  EXPECT_THAT(seen_with("[{kind='probe', when='each_round'}]").rounds, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
  EXPECT_THAT(seen_with("['probe']").rounds, ElementsAre(0, 4, 8, 10));
  EXPECT_THAT(seen_with("[{kind='probe', when='messages', messages=true}]").rounds, ElementsAre(3, 6, 9, 10));
  EXPECT_THAT(seen_with("[{kind='probe', when='start'}]").rounds, ElementsAre(0));
  EXPECT_THAT(seen_with("[{kind='probe', when='end'}]").rounds, ElementsAre(10));
  EXPECT_THAT(seen_with("[{kind='probe', every=7}]").rounds, ElementsAre(0, 7, 10));
  EXPECT_THAT(seen_with("[{kind='probe', every=7, updates=true}]").rounds, ElementsAre(7, 10)) << "there are no updates at the start";
  const ProbeLog often = seen_with("[{kind='probe', every=1, messages=true, updates=true}]");
  EXPECT_TRUE(often.had_messages && often.had_updates) << "the run keeps what a measure needs in the rounds in which it is due";
}

// A run that stops early has a last round too.
TEST(MeasureSet, TheEndIsWhereTheRunStops) {
  const ProbeLog seen = seen_with("[{kind='probe', when='end'}]", "[stop]\nbits_up = 1\n");
  EXPECT_THAT(seen.rounds, ElementsAre(4)) << "the first evaluation after the bits were sent";
}

TEST(MeasureSet, ARunThatDoesNotAskPaysNothing) {
  const ProbeLog seen = seen_with("");
  EXPECT_EQ(seen.made, 0);
  EXPECT_EQ(seen.rounds_begun, 0);
  const RunResult result = run_text(small_problem("").str()).at(0);
  EXPECT_THAT(result.record.columns, IsEmpty());
  for (const RoundRow& row : result.rows) EXPECT_EQ(row.more.capacity(), 0u);
  EXPECT_EQ(result.record.scenario.find("measures"), std::string::npos) << "its hash is what it was before there were measures";
}

// The model is measured right, and every other number is what it is without the measures.
TEST(MeasureSet, ValuesAreThoseOfTheModelAndNothingElseChanges) {
  OneRun<double> run(small_problem("['model_path', {kind='probe', every=1, messages=true, updates=true}]").str());
  std::vector<test::Vector> models;
  const RunResult result = run->run([&](const RoundRow&) {
    const std::vector<double> x = run.model();
    models.emplace_back(x.begin(), x.end());
    return true;
  });
  const test::Vector zero(models[0].size(), 0.0);
  ASSERT_EQ(result.record.columns.size(), 5u);
  for (const auto& [round, norm] : column_of(result, "model_norm"))
    EXPECT_NEAR(norm, std::sqrt(test::distance_sq(models[round], zero)), 1e-14) << round;
  double path = 0;
  const auto paths = column_of(result, "model_path");
  for (std::size_t r = 0; r <= 10; ++r) {
    if (r > 0) path += std::sqrt(test::distance_sq(models[r], models[r - 1]));
    for (const auto& [round, value] : paths) {
      if (round == r) {
        EXPECT_NEAR(value, path, 1e-13) << r;
      }
    }
  }
  EXPECT_EQ(paths.size(), 4u);
  EXPECT_EQ(column_of(result, "model_change").size(), 3u);
  EXPECT_EQ(column_of(result, "probe_round").size(), 10u);
  // g = mean gradient at x_(r-1): what f's gradient was in the row before, where both were measured.
  ScenarioText every = small_problem("[{kind='probe', every=1, updates=true}]");
  every.evaluate += "gradient = 'every'\ngradient_every = 1\n";
  const RunResult gradients = run_text(every.str()).at(0);
  for (const auto& [round, square] : column_of(gradients, "probe_update"))
    EXPECT_NEAR(square, gradients.rows[round - 1].global_grad_norm_sq, 1e-12 * square) << round;

  const RunResult plain = run_text(small_problem("").str()).at(0);
  EXPECT_EQ(result.record.checksum, plain.record.checksum);
  ASSERT_EQ(result.rows.size(), plain.rows.size());
  for (std::size_t r = 0; r < plain.rows.size(); ++r) EXPECT_EQ(bits_of_columns(result.rows[r]), bits_of_columns(plain.rows[r])) << r;
}

// A measure that keeps something from round to round goes on from a checkpoint as if there had been none.
TEST(MeasureSet, ARunThatGoesOnHasTheSameValues) {
  const std::string text = small_problem("['model_path', {kind='probe', every=2}]").str();
  std::string name = (std::filesystem::temp_directory_path() / "fedbits_measures_XXXXXX").string();
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  const RunResult whole = run_text(text).at(0);
  const Cell cell = parse_cells(text, "test.toml").at(0);
  for (const std::uint64_t stop : {1, 5, 8}) {
    CheckpointPlan plan;
    plan.file = std::filesystem::path(name) / "run.checkpoint";
    EXPECT_EQ(CellRunner(DataCatalog(""), {})
                  .run(
                      cell, [=](const RoundRow& row) { return row.round != stop; }, plan)
                  .record.status,
              RunStatus::interrupted);
    plan.resume = true;
    const RunResult resumed = CellRunner(DataCatalog(""), {.threads = 3, .block = 2}).run(cell, {}, plan);
    EXPECT_EQ(resumed.record.columns, whole.record.columns);
    ASSERT_EQ(resumed.rows.size(), whole.rows.size());
    for (std::size_t r = 0; r < whole.rows.size(); ++r) EXPECT_TRUE(same_bits(resumed.rows[r], whole.rows[r])) << stop << ": round " << r;
    std::filesystem::remove(plan.file);
  }
  std::filesystem::remove_all(name);
}

TEST(MeasureSet, WhatCannotBeMeasuredIsRefusedBeforeTheRun) {
  EXPECT_THAT(config_error_of(small_problem("[{kind='probe', classes=true}]").str()),
              HasSubstr("evaluate.measures: measure \"probe\" needs classes"));
  EXPECT_THAT(config_error_of(small_problem("['losses']").str()),
              HasSubstr("\"losses\" need not be requested: every run has its columns, as evaluate.every says; drop it"));
  EXPECT_THAT(config_error_of(small_problem("['probe', 'probe']").str()), HasSubstr("column \"probe_round\" occurs twice"));
  EXPECT_THAT(config_error_of(small_problem("['prob']").str()), HasSubstr("did you mean \"probe\"?"));
  EXPECT_THAT(config_error_of(small_problem("[{kind='probe', every=-1}]").str()), HasSubstr("its every must be >= 0"));
}

TEST(MeasureSet, ColumnNamesThatNoTableCanHaveAreRefused) {
  const auto fault = [](const std::string& name) { return fault_of(MeasureColumn{.name = name, .definition = "d"}); };
  for (const char* name : {"a", "model_norm", "x_2_y"}) EXPECT_EQ(fault(name), "") << name;
  for (const char* name : {"", "A", "2a", "_a", "a-b", "a.b", "a b", "ä", "a\n", "a,b", "=a", "a\"b"}) EXPECT_NE(fault(name), "") << name;
  EXPECT_EQ(fault(std::string(64, 'a')), "");
  EXPECT_THAT(fault(std::string(65, 'a')), HasSubstr("more than 64 characters"));
  EXPECT_THAT(fault_of(MeasureColumn{.name = "a"}), HasSubstr("has no definition"));
  EXPECT_THAT(fault_of(MeasureColumn{.name = "a", .definition = "d", .empty = ""}), HasSubstr("does not say when it is empty"));
  EXPECT_THAT(fault_of(MeasureColumn{.name = "a", .definition = "a\nb"}), HasSubstr("control characters"));
  EXPECT_THAT(fault_of(MeasureColumn{.name = "a", .definition = std::string(1001, 'd')}), HasSubstr("more than 1000 characters"));
}

// Each column that every run has belongs to one measure (but for the number of the round and the clock), and the types agree.
TEST(MeasureSet, EveryColumnIsDescribedOnce) {
  std::set<std::string> described;
  for (const MeasureColumn& column : standard_columns()) {
    EXPECT_TRUE(described.insert(column.name).second) << column.name;
    EXPECT_EQ(fault_of(column), "");
    const auto found = std::ranges::find(kRoundColumns, column.name, &RoundColumn::name);
    ASSERT_NE(found, kRoundColumns.end()) << column.name;
    EXPECT_EQ(column.type == MeasureColumn::Type::count, std::holds_alternative<std::uint64_t RoundRow::*>(found->member)) << column.name;
  }
  EXPECT_EQ(described.size(), kRoundColumns.size());
}

}  // namespace
}  // namespace fl
