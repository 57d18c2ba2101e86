#include "scenarios/sweep/tuning.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "fl_core/config/error.hpp"
#include "scenarios/experiment/federated_problem.hpp"
#include "scenarios/measures/measure.hpp"
#include "scenarios/results/run_store.hpp"
#include "tests/scenarios/tuning_case.hpp"
#include "tests/support/run_text.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;
using namespace fl::test;
using testing::HasSubstr;

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

// A study of mushrooms with test rows.
std::string with_test_rows(const std::string& stop = "") {
  return "name = 'tuning'\nrounds = 30\n" + stop +
         "[data]\nname = 'mushrooms'\nrows = 200\ntest_fraction = 0.5\n[partition]\nkind = 'similarity'\nclients = 4\n"
         "[model]\nkind = 'logistic_regression'\n[local]\nkind = 'gradient'\nlearning_rate = 0.1\n[evaluate]\nevery = 1\n[sweep]\n"
         "seeds = 1\n[sweep.tune]\nseeds = 1\nat = 'rounds'\nkey = 'local.learning_rate'\nvalues = [0.01, 0.1, 1.0]\n";
}

TEST_F(TuningTest, LooksAtTheTestSetOnlyWhereRunsEndByTheirAccuracy) {
  const auto tested = [this](const std::string& text) {
    std::filesystem::remove_all(folder_);
    (void)tune(text);
    const RunStore store = RunStore::open(folder_, RunStore::Mode::read);
    std::set<bool> found;
    for (const RunRecord& run : store.list())
      for (const RoundRow& row : store.rows(run.run)) {
        EXPECT_TRUE(std::isfinite(row.train_loss));
        found.insert(std::isfinite(row.test_accuracy) && std::isfinite(row.test_loss));
      }
    return found;
  };
  EXPECT_EQ(tested(with_test_rows()), std::set<bool>{false});
  EXPECT_EQ(tested(with_test_rows("[stop]\naccuracy = 0.99\n")), std::set<bool>{true});
}

TEST_F(TuningTest, SaysWhenTheBestIsAtTheEdge) {
  const std::string grid = "[sweep.tune]\nseeds = 1\nat = 'rounds'\nkey = 'local.learning_rate'\nvalues = [1e-8, 1e-7]\n";
  const std::vector<TunedOption> found = tune(study(kTop, grid));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].at_edge);
  EXPECT_EQ(found[0].candidates, 2u + kMostExtensions);
  EXPECT_EQ(number(found[0].value), 1e-3) << "four steps of ten";
}

TEST_F(TuningTest, GoesOnBeyondAGridUntilTheBestIsInside) {
  const std::string grid = "[sweep.tune]\nseeds = 1\nat = 'rounds'\nkey = 'local.learning_rate'\nvalues = [0.001, 0.01]\n";
  const std::vector<TunedOption> found = tune(study("{label='none', kind='identity'}", grid));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(number(found[0].value), 1.0) << "0.01 * 10 * 10, and 10 diverges";
  EXPECT_FALSE(found[0].at_edge) << "a neighbour that diverges is a border";
  EXPECT_EQ(found[0].candidates, 5u);
}

TEST_F(TuningTest, GoesOnBelowAGridThatDiverges) {
  const std::string grid = "[sweep.tune]\nseeds = 1\nat = 'rounds'\nkey = 'local.learning_rate'\nvalues = [100.0, 1000.0]\n";
  const std::vector<TunedOption> found = tune(study("{label='none', kind='identity'}", grid));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(number(found[0].value), 1.0);
  EXPECT_FALSE(found[0].at_edge);
}

// The column of a scenario's own measure states which value is best: 1 / (1 + f) is to be large, and is large if f is small.
template <class T>
class TestNearness final : public Measure<T> {
 public:
  explicit TestNearness(const NoOptions&) {}
  [[nodiscard]] std::vector<MeasureColumn> columns() const override {
    return {{.name = "test_nearness", .definition = "1 / (1 + |x|)", .better = MeasureColumn::Better::higher},
            {.name = "test_distance", .definition = "|x|"}};
  }
  void measure(const MeasureView<T>& view, MeasureRow& row) override {
    double square = 0;
    for (const T x : view.model) square += static_cast<double>(x) * static_cast<double>(x);
    row.set("test_nearness", 1 / (1 + std::sqrt(square)));
    row.set("test_distance", std::sqrt(square));
  }
};
FL_REGISTER_MEASURE(TestNearness, NoOptions, "test_nearness", "how near the model is to zero, for a test", "");

TEST_F(TuningTest, TakesAColumnOfTheScenariosOwnMeasures) {
  std::map<std::string, double> value;
  for (const std::string column : {"test_nearness", "test_distance"}) {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
    // Small steps leave the model at its start, which is zero.
    const std::string grid =
        "[sweep.tune]\nseeds = 1\nat = 'rounds'\nkey = 'local.learning_rate'\nvalues = [0.5, 0.01, 0.4]\nmeasure = '" + column + "'\n";
    std::vector<Cell> cells = parse_cells(study("{label='none', kind='identity'}", grid), "study.toml",
                                          {"evaluate.measures=['test_nearness']", "start.kind='zero'", "local.learning_rate=0.1"});
    const std::vector<TunedOption> found = tune(cells);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_LE(number(found[0].value), 0.01);
    value[column] = found[0].measure;
  }
  EXPECT_GT(value["test_nearness"], 0);
  EXPECT_NEAR(value["test_nearness"], 1 / (1 + value["test_distance"]), 1e-3);
  try {
    (void)parse_cells(study(kTop, "[sweep.tune]\nkey = 'local.learning_rate'\nvalues = [0.1]\nmeasure = 'test_nearnes'\n"), "study.toml",
                      {"evaluate.measures=['test_nearness']"});
    FAIL() << "a column that is misspelt";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("sweep.tune.measure: must be \"train_loss\", \"f_gap\" or a column of evaluate.measures"));
    EXPECT_THAT(error.what(), HasSubstr("did you mean \"test_nearness\"?"));
  }
}

TEST_F(TuningTest, GoesOnInRules) {
  const std::string grid = "[sweep.tune]\nseeds = 1\nkey = 'local.learning_rate'\nvalues = ['0.02/L', '0.2/L']\n";
  std::vector<Cell> cells = parse_cells(study("{label='none', kind='identity'}", grid), "study.toml");
  const std::vector<TunedOption> found = tune(cells);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(to_string(found[0].value), "\"10.0*(0.2/L)\"") << "20/L diverges at L = 1, 2/L diverges for no smooth convex function";
  EXPECT_FALSE(found[0].at_edge);
  EXPECT_THAT(cells[0].resolved_toml, HasSubstr("learning_rate = \"10.0*(0.2/L)\"\n"));
}

// A cosine that ends at a fraction of gamma: the larger that is, the further this small step size comes, and 1 is the most.
TEST_F(TuningTest, ABoundOfTheOptionIsNoEdge) {
  const std::string grid = "[sweep.tune]\nseeds = 1\nkey = 'local.final_factor'\nvalues = [0.3, 0.6]\n";
  std::vector<Cell> cells = parse_cells(study("{label='none', kind='identity'}", grid), "study.toml", {"local.schedule=cosine"});
  const std::vector<TunedOption> found = tune(cells);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(number(found[0].value), 1.0);
  EXPECT_EQ(found[0].candidates, 3u) << "1.2 is not taken, so 1 is tried";
  EXPECT_FALSE(found[0].at_edge);
  EXPECT_EQ(found[0].note, "1.0 is a bound of the option");
  EXPECT_EQ(found[0].budget_bits, 0) << "a cosine ends with the rounds, so that candidates are compared there";
}

// Signs of the gradient move the model by gamma in every round: near the minimum it steps to and fro around it. With gamma = 0.32 it comes
// within 0.04 of it in odd rounds and within 0.28 in even ones, with 0.13 within 0.04 and 0.09.
TEST_F(TuningTest, AnOscillatingMethodIsNotJudgedAtItsLuckyPhase) {
  const std::string text =
      "name = 'sign'\nrounds = 41\nprecision = 'float64'\n[data]\nkind = 'quadratics'\nclients = 1\ndimension = 1\nmu = 1.0\nL = 1.0\n"
      "zeta_sq = 0.0\n[partition]\nkind = 'natural'\nclients = 1\n[model]\nkind = 'quadratic'\n[local]\nkind = 'gradient'\n"
      "[compressor.up]\nkind = 'sign'\n[feedback.up]\nkind = 'none'\n[evaluate]\nevery = 1\n[sweep]\nseeds = 1\n"
      "[sweep.tune]\nseeds = 1\nat = 'rounds'\nkey = 'local.learning_rate'\nvalues = [0.01, 0.13, 0.32]\n";
  const std::vector<TunedOption> found = tune(text);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(number(found[0].value), 0.13);
  EXPECT_NEAR(found[0].measure, (0.04 * 0.04 + 0.09 * 0.09) / 4, 1e-4);
  std::map<std::string, double> last;
  for (const RunRecord& run : RunStore::open(folder_, RunStore::Mode::read).list())
    last[run.scenario.find("learning_rate = 0.32") != std::string::npos ? "0.32" : "other"] = run.train_loss;
  EXPECT_NEAR(last["0.32"], 0.04 * 0.04 / 2, 1e-9) << "the last value alone is the best of all";
}

// Gradients of single rows: a large step is fast and stays far from the optimum, a small one is slow and comes near.
std::string noisy_study(const std::string& tune, const std::string& more = "") {
  return "name = 'noisy'\nrounds = 400\nprecision = 'float64'\n[data]\nkind = 'quadratics'\nclients = 5\ndimension = 20\nzeta_sq = 0.0\n"
         "rows_per_client = 50\nnoise = 4.0\noptimum_norm = 5.0\nmu = 1.0\n[partition]\nkind = 'natural'\nclients = 5\n[model]\nkind = "
         "'quadratic'\n[local]\nkind = 'gradient'\nbatch = 1\nlearning_rate = 0.1\n[feedback.up]\nkind = 'ef14'\n[evaluate]\nevery = 1\n"
         "[sweep]\nseeds = 1\n" +
         more + tune +
         "[[sweep.axis]]\nkey = 'compressor.up'\nvalues = [{label='top', kind='top_k', k=2}, {label='none', kind='identity'}]\n";
}
const std::string kNoisyGrid = "key = 'local.learning_rate'\nvalues = [0.01, 0.03, 0.1, 0.3, 0.9]\n";

double tuned_value(const std::vector<TunedOption>& found, const std::string& method) {
  for (const TunedOption& tuned : found)
    if (tuned.axis_labels[0].second == method) return number(tuned.value);
  return 0;
}

// At equal rounds the dear method has all 400 for a small step. At the bits of the cheap one it has about thirty.
TEST_F(TuningTest, CandidatesAreComparedAtEqualBits) {
  const std::vector<TunedOption> rounds = tune(noisy_study("[sweep.tune]\nseeds = 2\nat = 'rounds'\n" + kNoisyGrid));
  fs::remove_all(folder_);
  fs::create_directory(folder_);
  const std::vector<TunedOption> bits = tune(noisy_study("[sweep.tune]\nseeds = 2\nbudget_of = 'top'\n" + kNoisyGrid));
  EXPECT_LT(tuned_value(rounds, "none"), tuned_value(bits, "none"));
  EXPECT_EQ(tuned_value(rounds, "top"), tuned_value(bits, "top")) << "its own rounds are the budget";
  ASSERT_EQ(bits.size(), 2u);
  EXPECT_EQ(bits[0].budget_bits, bits[1].budget_bits);
  for (const RunRecord& run : RunStore::open(folder_, RunStore::Mode::read).list()) {
    if (run.scenario.find("rounds = 1600\n") == std::string::npos) continue;  // the reference
    EXPECT_THAT(run.scenario, HasSubstr("[stop]\nbits_up = "));
    if (run.status == RunStatus::done) {
      EXPECT_GE(static_cast<double>(run.bits_up), bits[0].budget_bits);
      EXPECT_LE(static_cast<double>(run.bits_up), bits[0].budget_bits * 1.05) << "one round more at the most";
    }
  }
}

// Equal rounds favour the method that is cheap in bits: each candidate of the dear one goes on to the same bits, and no further.
TEST_F(TuningTest, ACheapMethodGoesOnForFourTimesTheRounds) {
  const std::vector<TunedOption> found = tune(noisy_study("[sweep.tune]\nseeds = 1\n" + kNoisyGrid));  // at = bits, of none
  ASSERT_EQ(found.size(), 2u);
  std::size_t cheap = 0;
  for (const RunRecord& run : RunStore::open(folder_, RunStore::Mode::read).list())
    if (run.axes[0].label == "top" && run.status == RunStatus::done) {
      EXPECT_EQ(run.rounds, 1600u);
      EXPECT_LT(static_cast<double>(run.bits_up), found[0].budget_bits);
      ++cheap;
    }
  EXPECT_GE(cheap, 4u);
}

TEST_F(TuningTest, AStudyGoesOnToEqualBits) {
  std::vector<Cell> cells = parse_cells(noisy_study("", "to_bits_of = 'top'\n"), "study.toml");
  EXPECT_TRUE(tune(cells).empty()) << "no option is tuned";
  ASSERT_EQ(cells.size(), 2u);
  EXPECT_EQ(num_runs(), 3u) << "the reference on three tuning seeds";
  for (const Cell& cell : cells) {
    EXPECT_EQ(cell.scenario.rounds, 1600);
    ASSERT_TRUE(cell.scenario.stop.bits_up.has_value());
    EXPECT_EQ(*cell.scenario.stop.bits_up, *cells[0].scenario.stop.bits_up);
    EXPECT_FALSE(cell.needs_tuning());
  }
}

TEST_F(TuningTest, KeysApplyToTheMethodsThatHaveThem) {
  const std::string feedbacks =
      "[[sweep.axis]]\nkey = 'feedback.up'\nvalues = [{label='ef14', kind='ef14'}, {label='econtrol', kind='econtrol'}]\n";
  const std::string keys =
      "[sweep.tune]\nseeds = 1\nat = 'rounds'\nkeys = [{key='local.learning_rate', values=[0.1, 0.5, 2.5]}, {key='feedback.up.eta', "
      "values=[0.01, 0.1, 0.3]}]\n";
  std::vector<Cell> cells = parse_cells(study(kTop, keys, feedbacks), "study.toml");
  const std::vector<TuningEffort> efforts = expected_tuning(cells);
  ASSERT_EQ(efforts.size(), 2u);
  EXPECT_EQ(efforts[0].candidates, 3u);
  EXPECT_EQ(efforts[1].candidates, 9u);
  const std::vector<TunedOption> found = tune(cells);
  ASSERT_EQ(found.size(), 3u);
  for (const TunedOption& tuned : found) {
    const bool is_econtrol = tuned.axis_labels[1].second == "econtrol";
    EXPECT_GE(tuned.candidates, is_econtrol ? 9u : 3u);
    EXPECT_TRUE(is_econtrol || tuned.option == "local.learning_rate");
    for (const Cell& cell : cells) {
      if (cell.axis_labels != tuned.axis_labels) continue;
      EXPECT_THAT(cell.resolved_toml, HasSubstr(tuned.option.substr(tuned.option.rfind('.') + 1) + " = " + to_string(tuned.value)));
    }
  }
  std::vector<std::string> recorded;
  for (const ResolvedConstant& constant : cells[0].found) recorded.push_back(constant.name);
  EXPECT_THAT(recorded, testing::ElementsAre(kRunsOfStudy, "tuning_candidates:local.learning_rate",
                                             testing::StartsWith("tuning_tried:local.learning_rate:"),
                                             testing::StartsWith("tuning_by:train_loss "), "tuning_seeds", "tuning_first_seed"));
}

// One number near 1 in every round: a threshold passes it or sends a header alone, and half precision lies between.
TEST_F(TuningTest, BitsThatCannotBeMatchedAreApproached) {
  const std::string text =
      "name = 'leap'\nrounds = 40\nprecision = 'float64'\n[data]\nkind = 'quadratics'\nclients = 1\ndimension = 1\nzeta_sq = 0.0\nmu = "
      "1.0\n[partition]\nkind = 'natural'\nclients = 1\n[model]\nkind = 'quadratic'\n[local]\nkind = 'gradient'\nlearning_rate = "
      "1e-6\n[evaluate]\nevery = 2\n[sweep]\nseeds = 2\n[[sweep.axis]]\nkey = 'compressor.up'\nvalues = [{label='half', kind='identity', "
      "format='fp16'}, {label='hard', kind='hard_threshold', match_bits_of='half'}]\n";
  std::vector<Cell> cells = parse_cells(text, "leap.toml");
  const std::vector<TunedOption> found = tune(cells);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].match.is_matched());
  EXPECT_NEAR(found[0].bits / found[0].target_bits - 1, found[0].match.deviation, 1e-12);
  EXPECT_NEAR(found[0].match.deviation, 704.0 / 960 - 1, 1e-12) << "a header alone, which is nearer than a whole number";
  EXPECT_LE(num_runs(), 3u * 25) << "the resolution ends it";
  ASSERT_GE(cells[3].found.size(), 5u);
  EXPECT_EQ(cells[3].found[1].name, "matched_bits_key:compressor.up.threshold");
  EXPECT_EQ(cells[3].found[2].name, "matched_bits_deviation");
  EXPECT_EQ(cells[3].found[2].value, found[0].match.deviation);
  EXPECT_EQ(cells[3].found[4].name, "matched_bits_of:half");
  EXPECT_EQ(cells[0].found.size(), 1u) << "nothing was found for the reference";
}

// Returns the mean of train_loss over the last fifth of the bits, each value from the round that measured it to the next one.
double end_point_by_hand(const RunStore& store, const RunRecord& run, double budget) {
  double bits = 0, sum = 0, last = 0;
  for (const RoundRow& row : store.rows(run.run)) {
    const double next = bits + static_cast<double>(row.bits_up);
    sum += last * std::max(0.0, std::min(next, budget) - std::max(bits, 0.8 * budget));
    bits = next;
    last = row.train_loss;
  }
  return (sum + last * std::max(0.0, budget - bits)) / (0.2 * budget);
}

// A frontier: four thresholds and no match. At the budget of `top` each method is as good as its best threshold, which the tuning seeds
// choose by the end point at that budget, and the study's runs end there.
TEST_F(TuningTest, AFrontierOfThresholdsIsJudgedAtTheBudget) {
  const std::string keys =
      "to_bits_of = 'top'\n[sweep.tune]\nseeds = 2\nbudget_of = 'top'\nkeys = [{key='compressor.up.threshold', values=[0.003, 0.03, 0.3, "
      "3.0]}]\n";
  std::string text = study(kTop + ", {label='hard', kind='hard_threshold', threshold=1.0}", keys);
  text.replace(text.find("every = 2"), 9, "every = 1");
  std::vector<Cell> cells = parse_cells(text, "study.toml");
  const std::vector<TunedOption> found = tune(cells);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].option, "compressor.up.threshold");
  EXPECT_EQ(found[0].axis_labels[0].second, "hard");
  const RunStore store = RunStore::open(folder_, RunStore::Mode::read);
  std::map<std::string, double> means;  // by threshold
  for (const RunRecord& run : store.list()) {
    if (run.axes[0].label != "hard") continue;
    const std::size_t at = run.scenario.find("threshold = ") + 12;
    const double value = run.status == RunStatus::done ? end_point_by_hand(store, run, found[0].budget_bits) : INFINITY;
    means[run.scenario.substr(at, run.scenario.find('\n', at) - at)] += value / 2;
  }
  EXPECT_GE(means.size(), 4u);
  const auto best = std::ranges::min_element(means, {}, [](const auto& one) { return one.second; });
  EXPECT_EQ(best->first, to_string(found[0].value));
  EXPECT_NEAR(found[0].measure, best->second, 1e-9 * best->second);
  for (const Cell& cell : cells) {
    EXPECT_EQ(cell.scenario.stop.bits_up.value_or(0), found[0].budget_bits);
    if (cell.axis_labels[0].second == "hard") {
      EXPECT_THAT(cell.resolved_toml, HasSubstr("threshold = " + best->first));
    }
  }
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
  EXPECT_THAT(refusal(study(kTop + "," + kHard, "", "[[sweep.exclude]]\ncompressor.up = 'top'\n")),
              HasSubstr("is excluded from the sweep for some combinations"));
  EXPECT_THAT(refusal(study(kTop + ", {label='hard', kind='hard_threshold', match_bits_of='top', match_key='treshold'}")),
              HasSubstr("did you mean \"threshold\"?"));
  EXPECT_THAT(refusal(study(kTop, "[sweep.tune]\nat = 'rounds'\nkey = 'local.learning_rate'\nvalues = [1e9, 1e10]\n")),
              HasSubstr("diverge or fail"));
  EXPECT_THAT(refusal(study(kTop, "[sweep.tune]\nkey = 'local.learning_rate'\nvalues = [0.1]\nmeasure = 'test_accuracy'\n")),
              HasSubstr("the test set is for the result and not for tuning"));
  EXPECT_THAT(refusal(study(kTop, "[sweep.tune]\nkey = 'local.learning_rate'\n")), HasSubstr("need each other"));
}

// Everything that can be known is said before a run begins.
TEST_F(TuningTest, RefusesBeforeAnythingRuns) {
  const std::string key = "key = 'local.learning_rate'\nvalues = [0.1, 0.2]\n";
  const auto with = [&](const std::string& tune, const std::string& more = "") {
    return refusal(study(kTop, "[sweep.tune]\n" + tune, more));
  };
  EXPECT_THAT(
      with("key = 'local.learning_rat'\nvalues = [0.1]\n"),
      HasSubstr("study.toml:24:7: sweep.tune.key: no method of this sweep has local.learning_rat; did you mean \"local.learning_rate\"?"));
  EXPECT_THAT(with("key = 'compressor.up.ratio'\nvalues = [0.1, 2.0]\n"),
              HasSubstr("study.toml:24:7: sweep.tune.values: compressor.up.ratio: must be > 0, <= 1, is 2"));
  EXPECT_THAT(with("keys = [{key = 'local.learning_rate', values = [0.1]}, {key = 'local.learning_rate', values = [0.2]}]\n"),
              HasSubstr("is tuned twice"));
  EXPECT_THAT(with("key = 'compressor.up'\nvalues = ['top_k']\n"), HasSubstr("is set by the axis compressor.up"));
  EXPECT_THAT(with(key + "budget_of = 'tip'\n"), HasSubstr("did you mean \"top\"?"));
  EXPECT_THAT(with(key + "at = 'bit'\n"), HasSubstr("did you mean \"bits\"?"));
  EXPECT_THAT(with(key + "at = 'rounds'\nbits = 'up'\n"), HasSubstr("sweep.tune.bits: has no effect with at = \"rounds\""));
  EXPECT_THAT(with("at = 'bits'\n"), HasSubstr("sweep.tune.at: has no effect without a key"));
  const auto set = [&](const std::vector<std::string>& settings) {
    try {
      (void)parse_cells(study(kTop, "[sweep.tune]\n" + key), "study.toml", settings);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(set({"evaluate.every=3"}),
              HasSubstr("evaluate.every: must be at most 2 for sweep.tune, which compares means of 5 evaluations in the last fifth of 40 "
                        "rounds, is 3"));
  EXPECT_THAT(set({"rounds=8"}), HasSubstr("rounds: must be more for sweep.tune"));
  EXPECT_THAT(set({"evaluate.train_loss=false"}), HasSubstr("evaluate.train_loss: must be true, because sweep.tune compares train_loss"));
  EXPECT_THAT(set({"local.schedule=cosine", "sweep.tune.at=bits"}), HasSubstr("ends with the rounds, and not with bits"));
  EXPECT_EQ(set({"local.schedule=cosine"}), "accepted") << "tuned at equal rounds";
  EXPECT_THAT(set({"sweep.to_bits_of=tip"}), HasSubstr("sweep.to_bits_of: must be the label of a value of an axis"));
  EXPECT_THAT(set({"sweep.to_bits_of=top", "sweep.tune.at=rounds"}), HasSubstr("sweep.tune.at: must be \"bits\""));
  EXPECT_TRUE(fs::is_empty(folder_));
}

// 100 rows, a fifth of them held out, eight seeds: together their own draws would hold out most rows.
TEST_F(TuningTest, NoTestRowOfTheStudyIsATrainingRowOfItsTuning) {
  const std::string text =
      "name = 'rows'\nrounds = 20\nseed = 3\n[data]\nname = 'mushrooms'\nrows = 100\ntest_fraction = 0.2\n[partition]\nkind = "
      "'dirichlet_client'\nalpha = 1.0\nclients = 4\n[model]\nkind = 'logistic_regression'\nl2 = 0.01\n[local]\nkind = "
      "'gradient'\n[evaluate]\nevery = 1\noptimum = false\n[sweep]\nseeds = 8\n[sweep.tune]\nseeds = 3\nkey = "
      "'local.learning_rate'\nvalues = [0.1, 1.0]\n[[sweep.axis]]\nkey = 'compressor.up'\nvalues = [{label='none', kind='identity'}, "
      "{label='top', kind='top_k', k=5}]\n";
  const DataCatalog catalog("");
  ThreadPool pool(1);
  std::set<std::uint32_t> test_rows;
  const auto problem_of = [&](const Scenario& scenario) { return FederatedProblem<float>(scenario, catalog, pool); };
  std::vector<Cell> cells = parse_cells(text, "study.toml");
  for (const Cell& cell : cells) {
    const auto problem = problem_of(cell.scenario);
    test_rows.insert(problem.test_rows().begin(), problem.test_rows().end());
  }
  EXPECT_EQ(test_rows.size(), 20u) << "one test set for all seeds";
  ASSERT_FALSE(tune(cells).empty());
  std::size_t runs = 0;
  for (const RunRecord& run : RunStore::open(folder_, RunStore::Mode::read).list()) {
    const auto problem = problem_of(parse_scenario(run.scenario, "stored"));
    for (const Shard& shard : problem.shards())
      for (const std::uint32_t row : shard) ASSERT_FALSE(test_rows.contains(row)) << "row " << row << " of tuning run " << run.run;
    ++runs;
  }
  EXPECT_GE(runs, 2u * 2 * 3);
  EXPECT_EQ(cells[0].scenario.data.test_seed, std::nullopt) << "of the first seed it is the data seed";
  EXPECT_EQ(cells[1].scenario.data.test_seed, 3u);
}

}  // namespace
}  // namespace fl
