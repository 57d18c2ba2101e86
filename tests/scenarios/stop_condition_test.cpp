// Tests runs that end by a column of a measure that the scenario asks for.
#include "scenarios/file/stop_condition.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fl_core/config/error.hpp"
#include "tests/support/run_text.hpp"

namespace fl {
namespace {

using testing::HasSubstr;

std::string stopping_study(const std::string& evaluate, const std::string& stop) {
  return "name = 'stops'\nrounds = 40\nprecision = 'float64'\n[data]\nkind = 'quadratics'\nclients = 5\ndimension = 20\nzeta_sq = 1.0\n"
         "[partition]\nkind = 'natural'\nclients = 5\n[model]\nkind = 'quadratic'\n[local]\nkind = 'gradient'\nlearning_rate = 0.1\n"
         "[compressor.up]\nkind = 'top_k'\nk = 3\n[feedback.up]\nkind = 'ef14'\n[evaluate]\nevery = 3\n" +
         evaluate + (stop.empty() ? "" : "\n[stop]\n" + stop) + "\n";
}

std::string stop_refusal(const std::string& evaluate, const std::string& stop) {
  try {
    (void)test::run_text(stopping_study(evaluate, stop));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(StopCondition, IsAColumnASignAndANumber) {
  const std::optional<StopCondition> least = parse_stop_condition("model_path >= 1.5"), most = parse_stop_condition("a<=-1e-3");
  ASSERT_TRUE(least && most);
  EXPECT_EQ(least->column, "model_path");
  EXPECT_TRUE(least->is_met(1.5) && !least->is_met(1.4) && !least->is_met(kNotMeasured));
  EXPECT_EQ(most->column, "a");
  EXPECT_TRUE(most->is_met(-0.001) && !most->is_met(0) && !most->is_met(kNotMeasured));
  for (const char* text :
       {"", "model_path", "model_path > 1", "model_path = 1", ">= 1", "model_path >= ", "model_path >= x", "a >= inf", "a >= 1 b"})
    EXPECT_FALSE(parse_stop_condition(text)) << text;
}

// A run that plays on says in which evaluation the path first has that length; the run that stops ends there, with the same rows.
TEST(StopCondition, EndsTheRunInTheFirstEvaluationThatMeetsIt) {
  for (const std::string measures : {"measures = ['model_path']", "measures = [{ kind = 'model_path', every = 7 }]"}) {
    const RunResult whole = test::run_text(stopping_study("measures = ['model_path']", "")).at(0);
    ASSERT_EQ(whole.record.rounds, 40u);
    const std::size_t column = place_of(whole.record.columns, "model_path");
    ASSERT_LT(column, whole.record.columns.size());
    const double length = 0.99 * whole.rows.at(18).more.at(column);
    std::size_t expected = 0;
    for (std::size_t r = 3; expected == 0; r += 3)
      if (whole.rows.at(r).more.at(column) >= length) expected = r;
    ASSERT_EQ(expected, 18u);
    const RunResult stopped = test::run_text(stopping_study(measures, "measures = ['model_path >= " + std::to_string(length) + "']")).at(0);
    EXPECT_EQ(stopped.record.rounds, expected) << measures;
    EXPECT_EQ(stopped.record.status, RunStatus::done);
    EXPECT_EQ(stopped.rows.back().more.at(column), whole.rows.at(expected).more.at(column));
    EXPECT_EQ(stopped.rows.back().train_loss, whole.rows.at(expected).train_loss);
  }
}

TEST(StopCondition, IsRefusedWhereNoMeasureHasTheColumn) {
  EXPECT_THAT(stop_refusal("measures = ['model_path']", "measures = ['model_paht >= 1']"),
              HasSubstr("stop.measures: evaluate.measures has no column \"model_paht\"; did you mean \"model_path\"?"));
  EXPECT_THAT(stop_refusal("", "measures = ['model_path >= 1']"), HasSubstr("add the measure there"));
  EXPECT_THAT(stop_refusal("measures = ['model_path']", "measures = ['model_path > 1']"),
              HasSubstr("stop.measures: must be conditions such as"));
}

// Scenarios without such a condition have the text, and so the hash, that they had.
TEST(StopCondition, IsNotWrittenWhereThereIsNone) {
  const Cell cell = parse_cells(stopping_study("", "f_gap = 1e-9"), "test.toml").at(0);
  EXPECT_THAT(cell.resolved_toml, testing::Not(HasSubstr("measures")));
}

}  // namespace
}  // namespace fl
