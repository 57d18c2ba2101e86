// Tests that results of a version of fedbits with other numbers are neither shown as results of this version nor averaged with them.
#include "scenarios/file/results_version.hpp"

#include <gmock/gmock.h>

#include <map>
#include <sstream>

#include "fl_core/config/error.hpp"
#include "scenarios/file/scenario.hpp"
#include "tests/support/study.hpp"

namespace fl {
namespace {

using test::count_of;
using test::Outcome;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kFile = "name = 'v'\nrounds = 3\n[data]\nname = 'mushrooms'\n[model]\nkind = 'logistic_regression'\n";

std::string key_line(std::int64_t version) { return std::string(kResultsVersionKey) + " = " + std::to_string(version) + "\n"; }

std::string refusal(const std::string& text) {
  try {
    (void)parse_scenario(text, "f.toml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ResultsVersion, StandsInTheResolvedScenarioAndInItsHash) {
  const std::string text = to_toml(parse_scenario(kFile, "f.toml"));
  EXPECT_TRUE(text.starts_with(key_line(kLeastResultsVersion))) << text;
  EXPECT_EQ(results_version_of(text), kLeastResultsVersion);
  EXPECT_EQ(to_toml(parse_scenario(text, "again.toml")), text);
  EXPECT_EQ(to_toml(parse_scenario(key_line(kLeastResultsVersion) + kFile, "f.toml")), text);
  const std::string before = text.substr(key_line(kLeastResultsVersion).size());
  EXPECT_EQ(results_version_of(before), 1);
  EXPECT_EQ(results_version_of(""), kLeastResultsVersion) << "nothing is said";
  EXPECT_EQ(results_version_of("name = \"x\"\n" + key_line(7) + "\n[data]\n"), 7);
  EXPECT_EQ(results_version_of("name = \"x\"\n\n[data]\n" + key_line(7)), 1) << "a key of a table is another key";
  EXPECT_NE(hash_of_text(before), hash_of_text(text));
}

// A correction that moves the results of some scenarios raises the number of these alone.
TEST(ResultsVersion, OnlyScenariosThatACorrectionTouchesHaveItsNumber) {
  const auto number_of = [](const std::string& more) {
    return results_version_of(to_toml(parse_scenario(std::string(kFile) + more, "f.toml")));
  };
  EXPECT_EQ(number_of(""), 2);
  EXPECT_EQ(number_of("[compressor.up]\nkind = 'top_k'\nk = 3\n[feedback.up]\nkind = 'clag'\n"), 2);
  EXPECT_EQ(number_of("[compressor.up]\nkind = 'terngrad'\n"), 3);
  EXPECT_EQ(number_of("[compressor.up]\nkind = 'accordion'\ncritical = { kind = 'terngrad' }\notherwise = { kind = 'terngrad' }\n"), 3);
  EXPECT_EQ(number_of("[feedback.up]\nkind = 'three_pc'\nvariant = 'lag'\n"), 3);
  EXPECT_EQ(number_of("[feedback.up]\nkind = 'clag'\n"), 3) << "the identity";
  const std::string tern = std::string(kFile) + "[compressor.up]\nkind = 'terngrad'\n";
  EXPECT_THAT(refusal(key_line(2) + tern), HasSubstr("results_version: is 2, and this fedbits gives other results, those of 3"));
  EXPECT_EQ(refusal(key_line(3) + tern), "");
  EXPECT_THAT(refusal(key_line(3) + kFile), HasSubstr("results_version: is 3"));
  std::vector<RunRecord> records(2);
  records[0].scenario = to_toml(parse_scenario(kFile, "f.toml"));
  records[1].scenario = key_line(2) + to_toml(parse_scenario(tern, "f.toml")).substr(key_line(3).size());
  EXPECT_EQ(remove_other_results(records), (ResultsVersions{{2, 1}}));
}

TEST(ResultsVersion, AnotherNumberIsRefusedWithTheWayOut) {
  const std::string why = refusal(key_line(kLeastResultsVersion - 1) + kFile);
  EXPECT_THAT(why, HasSubstr("f.toml:1:"));
  EXPECT_THAT(why, HasSubstr("results_version: is " + std::to_string(kLeastResultsVersion - 1) + ", and this fedbits gives other results"));
  EXPECT_THAT(why, HasSubstr("drop the line"));
  EXPECT_THAT(refusal(std::string("results_version = 'two'\n") + kFile), HasSubstr("must be an integer"));
}

// Counts the lines of runs.csv for each value of the column; cells before it have no commas.
std::map<std::string, std::size_t> versions_in(const std::string& table) {
  const auto cell = [](const std::string& line, std::size_t number) {
    std::istringstream cells(line);
    std::string text;
    for (std::size_t i = 0; i <= number; ++i) std::getline(cells, text, ',');
    return text;
  };
  std::istringstream lines(table);
  std::string line;
  std::getline(lines, line);
  const std::string before = line.substr(0, line.find("," + std::string(kResultsVersionKey) + ","));
  std::map<std::string, std::size_t> versions;
  while (std::getline(lines, line)) ++versions[cell(line, count_of(before, ",") + 1)];
  return versions;
}

class OldResultsTest : public test::StudyTest {
 protected:
  // Stores the runs of `from` as the program did before the number existed, with conspicuous losses.
  void store_as_old(const std::string& from, const std::string& to) const {
    const RunStore source = RunStore::open(folder_ / from, RunStore::Mode::read);
    RunStore target = RunStore::open(folder_ / to, RunStore::Mode::create);
    for (RunRecord record : source.list()) {
      const std::vector<RoundRow> rows = source.rows(record.run);
      record.scenario = record.scenario.substr(key_line(kLeastResultsVersion).size());
      record.run = "00000" + record.run.substr(5);
      record.train_loss = 1e6;
      target.append(record, rows);
    }
  }
};

TEST_F(OldResultsTest, AreRepeatedAndNeverPooled) {
  write_study(3, 10);
  ASSERT_EQ(sweep({}).code, 0);
  const std::string good = exported("out");
  store_as_old("out", "mixed");

  const Outcome only_old = fedbits({"report", "mixed", "--text"});
  EXPECT_EQ(only_old.code, 2);
  EXPECT_THAT(only_old.err, HasSubstr("6 runs with results_version 1 left out"));

  const Outcome again = sweep({}, "mixed");  // without --resume: nothing of this study is finished
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(stored("mixed"), 12u);
  EXPECT_THAT(again.out, Not(HasSubstr("e+0"))) << "the table of the sweep";

  const Outcome report = fedbits({"report", "mixed", "--text", "--measure", "train_loss"});
  EXPECT_EQ(report.code, 0) << report.err;
  EXPECT_THAT(report.out, HasSubstr("6 runs with results_version 1 left out"));
  EXPECT_THAT(report.out, HasSubstr("`run` and `sweep` repeat them"));
  const Outcome plain = fedbits({"report", "out", "--text", "--measure", "train_loss"});
  EXPECT_THAT(plain.out, Not(HasSubstr("left out")));

  EXPECT_EQ(exported("mixed"), good);
  const Outcome exported_all = fedbits({"export", "mixed", "--all-results", "--runs", "all.csv"});
  EXPECT_EQ(exported_all.code, 0) << exported_all.err;
  const std::string all = read("all.csv");
  EXPECT_EQ(versions_in(all), (std::map<std::string, std::size_t>{{"1", 6u}, {std::to_string(kLeastResultsVersion), 6u}})) << all;
  EXPECT_THAT(fedbits({"export", "mixed", "--runs", "r.csv"}).err, HasSubstr("6 runs with results_version 1 left out"));
}

TEST_F(OldResultsTest, MergeLeavesThemAndExplainSaysSo) {
  write_study(2, 10);
  ASSERT_EQ(sweep({}).code, 0);
  store_as_old("out", "old");
  const Outcome merged = fedbits({"merge", "old", "out", "--out", "both"});
  EXPECT_EQ(merged.code, 0) << merged.err;
  EXPECT_THAT(merged.out, HasSubstr("4 runs added"));
  EXPECT_THAT(merged.err, HasSubstr("old: 4 runs with results_version 1 left out"));
  EXPECT_EQ(exported("both"), exported("out"));
  const RunStore old = RunStore::open(folder_ / "old", RunStore::Mode::read);
  EXPECT_THAT(fedbits({"explain", old.list()[0].run, "--out", "old"}).out, HasSubstr("1; this fedbits has"));
  const Outcome explained = fedbits({"explain", RunStore::open(folder_ / "out", RunStore::Mode::read).list()[0].run, "--out", "out"});
  EXPECT_THAT(explained.out, HasSubstr("\n" + key_line(kLeastResultsVersion)));
  EXPECT_THAT(explained.out, Not(HasSubstr("gives other results"))) << "the number is the one of this scenario";
}

}  // namespace
}  // namespace fl
