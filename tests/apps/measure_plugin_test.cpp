// Tests a measure of one file, added as a user would add it: its columns appear in the store, in exports, in the log, in the list, in the
// reference and in the report. After the measure is removed, its stored values are still readable.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "scenarios/results/run_store.hpp"
#include "tests/support/study.hpp"

// Not defined in a build without a shared library, which has no plug-ins.
#if !defined(FL_PLUGINS)
#define FL_PLUGINS ""
#endif

namespace fl {
namespace {

using test::count_of;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class MeasurePluginTest : public test::StudyTest {
 protected:
  void SetUp() override {
    BinaryTest::SetUp();
    if (std::string(FL_PLUGINS).empty()) GTEST_SKIP() << "this build holds everything in one file";
    write_study(3, 20);
  }
  static std::string plugin(const std::string& name) { return std::string(FL_PLUGINS) + "/" + name + ".so"; }
  [[nodiscard]] Outcome sweep_with(const std::string& measures, const std::string& out, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"--plugin", plugin("update_cosine"), "--set", "evaluate.measures=" + measures};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return sweep(arguments, out);
  }
  // The cells of one column of rounds.csv of a store, in the order of its rows.
  [[nodiscard]] std::vector<std::string> column(const std::string& out, const std::string& name) const {
    EXPECT_EQ(fedbits({"export", out, "--rounds", "rounds.csv", "--reproducible"}).code, 0);
    std::vector<std::string> cells;
    std::istringstream in(read("rounds.csv"));
    std::size_t place = ~std::size_t{0};
    for (std::string line; std::getline(in, line);) {
      std::vector<std::string> fields(1);
      for (const char c : line) c == ',' ? (void)fields.emplace_back() : fields.back().push_back(c);
      if (place == ~std::size_t{0}) {
        place = static_cast<std::size_t>(std::ranges::find(fields, name) - fields.begin());
        if (place == fields.size()) return {"no such column"};
      } else {
        cells.push_back(fields.at(place));
      }
    }
    return cells;
  }
};

TEST_F(MeasurePluginTest, OneFileIsInTheStoreTheExportTheLogAndTheReport) {
  const Outcome outcome = sweep_with("[{ kind = 'update_cosine', every = 5, below = 0.5 }]", "out", {"--log-json", "log.jsonl"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const RunStore store = RunStore::open(folder_ / "out", RunStore::Mode::read);
  for (const RunRecord& run : store.list()) {
    ASSERT_EQ(run.columns.size(), 3u);
    EXPECT_EQ(run.columns[0].name, "update_cosine");
    EXPECT_EQ(run.columns[0].better, MeasureColumn::Better::higher);
    EXPECT_EQ(run.plugins.size(), 1u) << "the run names the plug-in";
    for (const RoundRow& row : store.rows(run.run)) {
      const bool is_due = row.round > 0 && row.round % 5 == 0;
      ASSERT_EQ(std::isnan(row.more.at(0)), !is_due) << row.round;
      if (!is_due) continue;
      EXPECT_LE(row.more[1], row.more[0]) << "the least is not above the mean";
      EXPECT_LE(row.more[0], 1 + 1e-12);
      EXPECT_EQ(row.more[2] > 0, row.more[1] < 0.5) << "somebody is counted exactly if the least one is below the bound";
    }
  }
  const std::vector<std::string> cells = column("out", "update_cosine_below");
  EXPECT_EQ(cells.size(), 6u * 21u);
  EXPECT_THAT(cells[5], testing::MatchesRegex("[0-5]")) << "a count is a whole number";
  EXPECT_THAT(cells[4], IsEmpty());
  EXPECT_THAT(read("rounds.csv"),
              HasSubstr(",average_f_gap,update_cosine,update_cosine_least,update_cosine_below,cumulative_bits_up_published,"));
  ASSERT_EQ(fedbits({"export", "out", "--rounds", "rounds.json"}).code, 0);
  EXPECT_TRUE(nlohmann::json::parse(read("rounds.json")).at(5).at("update_cosine").is_number());
  std::istringstream log(read("log.jsonl"));
  std::size_t logged = 0;
  for (std::string line; std::getline(log, line);)
    if (const auto event = nlohmann::json::parse(line); event.at("event") == "progress") {
      EXPECT_TRUE(event.contains("update_cosine_least")) << line;
      ++logged;
    }
  EXPECT_GT(logged, 0u);
  // Without the plug-in: the store describes its columns.
  ASSERT_EQ(fedbits({"report", "out", "-o", "report.html"}).code, 0);
  EXPECT_THAT(read("report.html"),
              AllOf(HasSubstr("\"title\":\"cosine of updates with their mean\""), HasSubstr("\"name\":\"update_cosine_least\""),
                    Not(HasSubstr("\"name\":\"update_cosine_below\""))));
  const Outcome text = fedbits({"report", "out", "--text", "--measure", "update_cosine"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("update_cosine at equal"));
  EXPECT_THAT(fedbits({"report", "out", "--text", "--measure", "update_cosin"}).err, HasSubstr("is not a measured column of rounds.csv"));
  EXPECT_THAT(fedbits({"verify", "out"}).out, HasSubstr("0 damaged"));
}

TEST_F(MeasurePluginTest, ItIsListedDescribedAndChecked) {
  EXPECT_THAT(fedbits({"list", "measures"}).out, AllOf(HasSubstr("model_path"), HasSubstr("losses"), Not(HasSubstr("update_cosine"))));
  const Outcome list = fedbits({"list", "measures", "update_cosine", "--plugin", plugin("update_cosine")});
  EXPECT_THAT(list.out, AllOf(HasSubstr("below = 0.0  (>= -1, <= 1)"), HasSubstr("costs: a copy of the cohort's updates"),
                              HasSubstr("column update_cosine_below [clients]: clients of the cohort whose cosine is below"),
                              HasSubstr("example: evaluate.measures = [{ kind = \"update_cosine\", every = 10 }]")));
  const Outcome reference = fedbits({"list", "reference", "--plugin", plugin("update_cosine")});
  EXPECT_THAT(reference.out, AllOf(HasSubstr("### `update_cosine`"), HasSubstr("| `update_cosine_least` |  | smallest of the same |")));
  const Outcome check = fedbits({"check", "--plugin", plugin("update_cosine")});
  EXPECT_EQ(check.code, 0) << check.out;
  EXPECT_THAT(check.out, AllOf(HasSubstr("measure update_cosine\n"), HasSubstr(" 0 failed\n")));
}

// Other numbers do not depend on it, nor does it on threads, workers and interruptions.
TEST_F(MeasurePluginTest, ItIsReproducibleAndChangesNothing) {
  const std::string measures = "['update_cosine', 'model_path']";
  ASSERT_EQ(sweep_with(measures, "first").code, 0);
  ASSERT_EQ(sweep_with(measures, "second", {"--threads", "3"}).code, 0);
  EXPECT_EQ(exported("first"), exported("second"));
  ASSERT_EQ(sweep({}, "plain").code, 0);
  for (const char* name : {"train_loss", "bits_up", "grad_norm_sq", "measured_delta"}) {  // runs stand in the order of their hashes
    std::vector<std::string> without = column("plain", name), with = column("first", name);
    std::ranges::sort(without);
    std::ranges::sort(with);
    EXPECT_EQ(without, with) << name;
  }
  EXPECT_EQ(column("plain", "update_cosine").at(0), "no such column");
}

// Stores of runs with different measures become one, and where a run has not measured something its cells are empty.
TEST_F(MeasurePluginTest, StoresWithDifferentMeasuresAreMerged) {
  ASSERT_EQ(sweep({}, "plain").code, 0);
  ASSERT_EQ(sweep_with("['update_cosine']", "cosine").code, 0);
  ASSERT_EQ(sweep_with("['model_path']", "path").code, 0);
  ASSERT_EQ(fedbits({"merge", "plain", "cosine", "path", "--out", "all"}).code, 0);
  EXPECT_THAT(fedbits({"verify", "all"}).out, HasSubstr("0 damaged"));
  const std::vector<std::string> cosine = column("all", "update_cosine"), path = column("all", "model_path");
  ASSERT_EQ(cosine.size(), 18u * 21u);
  std::size_t num_cosine = 0, num_path = 0;
  for (std::size_t i = 0; i < cosine.size(); ++i) {
    num_cosine += cosine[i].empty() ? 0 : 1;
    num_path += path[i].empty() ? 0 : 1;
    EXPECT_TRUE(cosine[i].empty() || path[i].empty());
  }
  EXPECT_EQ(num_cosine, 6u) << "evaluate.measure_every = evaluate.every = 20: in the last round alone";
  EXPECT_EQ(num_path, 12u) << "at the start, too";
  EXPECT_EQ(fedbits({"report", "all", "-o", "report.html"}).code, 0);
}

TEST_F(MeasurePluginTest, ColumnsThatNoTableCanHaveAreRefusedWithAReason) {
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"bad_0", "column \"twice\" occurs twice"},
      {"bad_1", "column \"with blank\" has a name with other characters than a-z, 0-9 and _"},
      {"bad_2", "has a name with other characters"},
      {"bad_3", "column \"train_loss\" has the name of a column of rounds.csv in every export"},
      {"bad_4", "column \"seconds\" has the name of a column of runs.csv in every export"},
      {"bad_5", "has a name of more than 64 characters"},
      {"bad_6", "column \"cumulative_joy\" has the name of a column of rounds.csv"},
      {"bad_7", "column \"untold\" has no definition"},
      {"bad_8", "column \"escapes\" has a text with control characters"},
      {"bad_9", "has a name with other characters"},
      {"bad_10", "a column has no name"},
      {"bad_11", "it has no columns"},
  };
  for (const auto& [name, why] : refused) {
    const Outcome outcome =
        fedbits({"run", "study.toml", "--out", "out", "--plugin", plugin("bad_columns"), "--set", "evaluate.measures=['" + name + "']"});
    EXPECT_EQ(outcome.code, 2) << name;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("measure \"" + name + "\": "), HasSubstr(why)));
    EXPECT_EQ(fedbits({"check", name, "--plugin", plugin("bad_columns")}).code, 1) << name;
  }
  const Outcome both = fedbits({"run", "study.toml", "--out", "out", "--plugin", plugin("bad_columns"), "--plugin", plugin("update_cosine"),
                                "--set", "evaluate.measures=['update_cosine', 'duplicate']"});
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.err,
              HasSubstr("measure \"duplicate\": column \"update_cosine\" occurs twice among the columns of the scenario's measures"));
  EXPECT_FALSE(exists("out"));
  for (const auto& [name, why] :
       {std::pair("undeclared", "sets the column \"undeclared\", which it does not declare"),
        std::pair("wrong_type", "sets the column \"a_real\" as a count number, and declares it as a real number")}) {
    const Outcome outcome = fedbits({"run", "study.toml", "--out", "failed", "--plugin", plugin("bad_columns"), "--set",
                                     std::string("evaluate.measures=['") + name + "']"});
    EXPECT_NE(outcome.code, 0) << name;
    EXPECT_THAT(outcome.out + outcome.err, HasSubstr(why));
  }
}

}  // namespace
}  // namespace fl
