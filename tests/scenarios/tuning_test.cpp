#include "scenarios/tuning.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>

#include "fl_core/error.hpp"
#include "server/run_store.hpp"
#include "tests/support/run_text.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class TuningTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "fedbits_tuning_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Five quadratics of different minimisers and a sweep over compressors.
  [[nodiscard]] static std::string study(const std::string& values, const std::string& tune = "", const std::string& more = "") {
    return "name = 'tuning'\nrounds = 40\nprecision = 'float64'\n[data]\nkind = 'quadratics'\nclients = 5\ndimension = 20\nzeta_sq = 1.0\n"
           "[partition]\nkind = 'natural'\nclients = 5\n[model]\nkind = 'quadratic'\n[local]\nkind = 'gradient'\nlearning_rate = 0.1\n"
           "[feedback.up]\nkind = 'ef14'\n[evaluate]\nevery = 10\n[sweep]\nseeds = 2\n" +
           tune + "[[sweep.axis]]\nkey = 'compressor.up'\nvalues = [" + values + "]\n" + more;
  }
  std::vector<TunedOption> tune(std::vector<Cell>& cells) const {
    return tune_cells(cells, DataCatalog(""), {.workers = 2, .store = folder_, .note = {}, .signal = {}});
  }
  [[nodiscard]] std::vector<TunedOption> tune(const std::string& text) const {
    std::vector<Cell> cells = parse_cells(text, "study.toml");
    return tune(cells);
  }
  [[nodiscard]] std::size_t num_runs() const { return RunStore::open(folder_, RunStore::Mode::read).list().size(); }
  [[nodiscard]] std::string refusal(const std::string& text) const {
    try {
      (void)tune(text);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }
  fs::path folder_;
};

const std::string kTop = "{label='top', kind='top_k', k=3}";
const std::string kHard = "{label='hard', kind='hard_threshold', match_bits_of='top'}";
const std::string kGrid = "[sweep.tune]\nseeds = 2\nkey = 'local.learning_rate'\nvalues = [0.001, 0.5, 2.5]\n";

double number(const Value& value) { return std::get<double>(value.data); }

TEST_F(TuningTest, NothingHappensWhereNothingIsToBeFound) {
  std::vector<Cell> cells = parse_cells(study(kTop), "study.toml");
  const std::uint64_t before = cells[0].hash;
  EXPECT_TRUE(tune(cells).empty());
  EXPECT_EQ(cells[0].hash, before);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(TuningTest, FindsTheBestStepSizeOfEveryMethodOnOtherSeeds) {
  std::vector<Cell> cells = parse_cells(study(kTop + ", {label='none', kind='identity'}", kGrid), "study.toml");
  const std::vector<TunedOption> found = tune(cells);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(num_runs(), 2u * 3 * 2) << "an equal budget: methods x values x seeds";
  for (const RunRecord& run : RunStore::open(folder_, RunStore::Mode::read).list()) EXPECT_GE(run.seed, kTuningSeeds);
  for (const TunedOption& tuned : found) {
    EXPECT_EQ(tuned.option, "local.learning_rate");
    EXPECT_FALSE(tuned.at_edge);
    EXPECT_EQ(number(tuned.value), 0.5);
  }
  for (const Cell& cell : cells) EXPECT_THAT(cell.resolved_toml, HasSubstr("learning_rate = 0.5\n"));
  EXPECT_EQ(cells[0].scenario.seeds.data, 1u) << "the study's own seeds";
}

TEST_F(TuningTest, SaysWhenTheBestIsAtTheEdge) {
  const std::string grid = "[sweep.tune]\nseeds = 1\nkey = 'local.learning_rate'\nvalues = [0.001, 0.01, 0.1]\n";
  for (const TunedOption& tuned : tune(study(kTop, grid))) EXPECT_TRUE(tuned.at_edge);
}

TEST_F(TuningTest, MatchesBitsWithinTwoPercent) {
  std::vector<Cell> cells = parse_cells(study(kTop + "," + kHard), "study.toml");
  const std::vector<TunedOption> found = tune(cells);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].option, "compressor.up.threshold");
  EXPECT_NEAR(found[0].bits, found[0].target_bits, kMatchTolerance * found[0].target_bits);
  // Found again from runs of those seeds, and set in both cells of the study.
  for (std::size_t i = 2; i < 4; ++i) {
    EXPECT_THAT(cells[i].resolved_toml, HasSubstr("threshold = " + to_string(found[0].value)));
    EXPECT_FALSE(cells[i].needs_tuning());
  }
}

TEST_F(TuningTest, MatchesBitsForEveryStepSize) {
  const std::vector<TunedOption> found = tune(study(kTop + "," + kHard, kGrid));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[1].axis_labels[0].second, "hard");
  EXPECT_EQ(found[1].option, "local.learning_rate");
  EXPECT_NEAR(found[2].bits, found[2].target_bits, kMatchTolerance * found[2].target_bits);
}

TEST_F(TuningTest, GoesOnWhereItWas) {
  std::vector<Cell> first = parse_cells(study(kTop + "," + kHard, kGrid), "study.toml"), second = first;
  (void)tune(first);
  const std::size_t runs = num_runs();
  (void)tune(second);
  EXPECT_EQ(num_runs(), runs) << "nothing is run twice";
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].hash, second[i].hash);
}

TEST_F(TuningTest, RefusesWhatItCannotFind) {
  EXPECT_THAT(refusal(study(kTop + ", {label='hard', kind='hard_threshold', match_bits_of='tip'}")), HasSubstr("did you mean \"top\"?"));
  EXPECT_THAT(refusal(study(kTop + "," + kHard, "", "[[sweep.exclude]]\ncompressor.up = 'top'\n")), HasSubstr("which the sweep excludes"));
  EXPECT_THAT(refusal(study(kTop + ", {label='hard', kind='hard_threshold', match_bits_of='top', match_key='treshold'}")),
              HasSubstr("did you mean \"threshold\"?"));
  EXPECT_THAT(refusal(study(kTop, "[sweep.tune]\nkey = 'local.learning_rate'\nvalues = [1e9, 1e10]\n")), HasSubstr("diverge or fail"));
  EXPECT_THAT(refusal(study(kTop, "[sweep.tune]\nkey = 'local.learning_rate'\nvalues = [0.1]\nmeasure = 'test_accuracy'\n")),
              HasSubstr("the test set is for the result and not for tuning"));
  EXPECT_THAT(refusal(study(kTop, "[sweep.tune]\nkey = 'local.learning_rate'\n")), HasSubstr("need each other"));
}

}  // namespace
}  // namespace fl
