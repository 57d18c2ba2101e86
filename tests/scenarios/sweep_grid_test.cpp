// Tests axes that move together, combinations that are left out, and keys that some combinations set.
#include <gmock/gmock.h>

#include "fl_core/config/error.hpp"
#include "scenarios/file/sweep.hpp"

namespace fl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kBase =
    "name = 'grid'\nrounds = 5\n[data]\nkind = 'quadratics'\n[partition]\nkind = 'natural'\n[model]\nkind = 'quadratic'\n"
    "[compressor.up]\nkind = 'top_k'\nk = 1\n[sweep]\n";

// "alpha/k/..." of every cell.
std::vector<std::string> labels(const std::string& sweep) {
  std::vector<std::string> found;
  for (const Cell& cell : parse_cells(kBase + sweep, "grid.toml")) {
    std::string all;
    for (const auto& [_, label] : cell.axis_labels) all += (all.empty() ? "" : "/") + label;
    found.push_back(all);
  }
  return found;
}

std::string problem_of(const std::string& sweep) {
  try {
    (void)labels(sweep);
  } catch (const ConfigError& error) {
    std::string all;
    for (const Problem& problem : error.problems()) all += problem.where + ": " + problem.message + "\n";
    return all;
  }
  return "accepted";
}

std::string axis(const std::string& key, const std::string& values, const std::string& zip = "") {
  return "[[sweep.axis]]\nkey = '" + key + "'\nvalues = " + values + "\n" + (zip.empty() ? "" : "zip = '" + zip + "'\n");
}

TEST(SweepGrid, ZippedAxesMoveTogether) {
  EXPECT_THAT(labels(axis("data.zeta_sq", "[0, 1]", "both") + axis("rounds", "[7, 8, 9]") + axis("compressor.up.k", "[2, 3]", "both")),
              ElementsAre("0/7/2", "0/8/2", "0/9/2", "1/7/3", "1/8/3", "1/9/3"));
}

TEST(SweepGrid, TwoZipsAreIndependent) {
  EXPECT_THAT(labels(axis("data.zeta_sq", "[0, 1]", "a") + axis("compressor.up.k", "[2, 3]", "a") + axis("rounds", "[7, 8]", "b") +
                     axis("data.mu", "[0.1, 0.2]", "b")),
              ElementsAre("0/2/7/0.1", "0/2/8/0.2", "1/3/7/0.1", "1/3/8/0.2"));
}

TEST(SweepGrid, LeavesOutCombinations) {
  const std::string axes = axis("data.zeta_sq", "[0, 1, 4]") + axis("compressor.up.k", "[2, 3]");
  EXPECT_THAT(labels(axes + "[[sweep.exclude]]\ndata.zeta_sq = [0, 4]\ncompressor.up.k = 3\n"), ElementsAre("0/2", "1/2", "1/3", "4/2"));
  EXPECT_THAT(labels(axes + "[[sweep.exclude]]\ndata.zeta_sq = 1\n[[sweep.exclude]]\ncompressor.up.k = 2\n"), ElementsAre("0/3", "4/3"));
}

TEST(SweepGrid, ExcludesByTheLabelsOfTables) {
  EXPECT_THAT(labels(axis("compressor.up", "[{label='top', kind='top_k', k=2}, {label='none', kind='identity'}]") +
                     axis("rounds", "[7, 8]") + "[[sweep.exclude]]\ncompressor.up = 'none'\nrounds = 8\n"),
              ElementsAre("top/7", "top/8", "none/7"));
}

TEST(SweepGrid, RefusesWhatItCannotDo) {
  EXPECT_THAT(problem_of(axis("data.zeta_sq", "[0, 1]", "z") + axis("rounds", "[7, 8, 9]", "z")),
              HasSubstr("rounds has 3 values and data.zeta_sq has 2; axes of one zip need equally many"));
  EXPECT_THAT(problem_of(axis("rounds", "[7]", "z").replace(axis("rounds", "[7]").size(), std::string::npos, "zip = 3\n")),
              HasSubstr("sweep.axis.zip: must be a name"));
  const std::string rounds = axis("rounds", "[7, 8]");
  EXPECT_THAT(problem_of(rounds + "[[sweep.exclude]]\nrounds = 9\n"), HasSubstr("rounds has no value called 9"));
  EXPECT_THAT(problem_of(rounds + "[[sweep.exclude]]\nround = 7\n"), HasSubstr("did you mean \"rounds\"?"));
  EXPECT_THAT(problem_of(rounds + "[[sweep.exclude]]\n"), HasSubstr("must be a table of axes and labels"));
  EXPECT_THAT(problem_of(rounds + "[[sweep.exclude]]\nrounds = [7, 8]\n"), HasSubstr("leaves no run"));
  EXPECT_THAT(problem_of(rounds + "exclude = 3\n"), HasSubstr("grid.toml:"));
}

// "k/rounds/mu" of every cell.
std::vector<std::string> keys_of_cells(const std::string& sweep) {
  std::vector<std::string> found;
  for (const Cell& cell : parse_cells(kBase + sweep, "grid.toml")) {
    const auto value = [&cell](const std::string& key) {
      const std::size_t at = cell.resolved_toml.find("\n" + key + " = ") + key.size() + 4;
      return cell.resolved_toml.substr(at, cell.resolved_toml.find('\n', at) - at);
    };
    found.push_back(value("k") + "/" + value("rounds") + "/" + value("mu"));
  }
  return found;
}

const std::string kTwoMethods = axis("compressor.up", "[{label='top', kind='top_k', k=2}, {label='dgc', kind='top_k', k=3}]");

TEST(SweepGrid, SetsKeysOfSomeCombinations) {
  const std::string axes = axis("rounds", "[7, 8]") + kTwoMethods + "[[sweep.set]]\nwhen.compressor.up = 'dgc'\nkeys.data.mu = 0.25\n";
  EXPECT_THAT(keys_of_cells(axes), ElementsAre("2/7/0.1", "3/7/0.25", "2/8/0.1", "3/8/0.25"));
  EXPECT_THAT(keys_of_cells(axes + "[[sweep.set]]\nwhen = {compressor.up = ['top', 'dgc'], rounds = 8}\n"
                                   "keys = {data.mu = 0.5, compressor.up.k = 1}\n"),
              ElementsAre("2/7/0.1", "3/7/0.25", "1/8/0.5", "1/8/0.5"))
      << "a later table replaces an earlier one and what the axis says";
}

TEST(SweepGrid, PlaysTheRunsOfAFileWithTheSameKeys) {
  const auto set = parse_cells(kBase + kTwoMethods + "[[sweep.set]]\nwhen.compressor.up = 'dgc'\nkeys.compressor.up.k = 4\n", "grid.toml");
  const auto written =
      parse_cells(kBase + axis("compressor.up", "[{label='top', kind='top_k', k=2}, {label='dgc', kind='top_k', k=4}]"), "grid.toml");
  ASSERT_EQ(set.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(set[i].hash, written[i].hash);
}

TEST(SweepGrid, RefusesKeysThatHaveNoEffect) {
  const auto with = [](const std::string& set) { return problem_of(kTwoMethods + "[[sweep.set]]\n" + set); };
  EXPECT_THAT(with("when.compressor.up = 'tpo'\nkeys.data.mu = 1\n"),
              HasSubstr("sweep.set.when: compressor.up has no value called \"tpo\"; did you mean \"top\"?"));
  EXPECT_THAT(with("when.rounds = 7\nkeys.data.mu = 1\n"), HasSubstr("sweep.set.when.rounds: unknown key"));
  EXPECT_THAT(with("when = {}\nkeys.data.mu = 1\n"), HasSubstr("sweep.set.when: must be a table of axes and labels"));
  EXPECT_THAT(with("when.compressor.up = 'top'\nkeys = 3\n"), HasSubstr("sweep.set.keys: must be a table of keys and values"));
  EXPECT_THAT(with("when.compressor.up = 'top'\n"), HasSubstr("sweep.set.keys: "));
  EXPECT_THAT(with("when.compressor.up = 'top'\nkeys.data.mu = 1\nfor = 3\n"), HasSubstr("sweep.set.for: unknown key"));
  EXPECT_THAT(with("when.compressor.up = 'top'\nkeys.data.nu = 1\n"), HasSubstr("data.nu"));
  EXPECT_THAT(with("when.compressor.up = 'top'\nkeys.sweep.seeds = 4\n"), HasSubstr("sweep.set.keys: must be keys of the scenario"));
  EXPECT_THAT(problem_of(axis("rounds", "[7, 8]") + "[[sweep.set]]\nwhen.rounds = 7\nkeys.rounds = 9\n"),
              HasSubstr("rounds is set by its axis"));
  EXPECT_THAT(problem_of(axis("rounds", "[7, 8]") + kTwoMethods +
                         "[[sweep.exclude]]\nrounds = 7\n[[sweep.set]]\nwhen.rounds = 7\nkeys.data.mu = 1\n"),
              HasSubstr("no combination of the sweep has these labels"));
  EXPECT_THAT(problem_of("set = 3\n"), HasSubstr("sweep.set: must be a list of tables, [[sweep.set]], is 3"));
  const std::string matched =
      axis("compressor.up", "[{label='top', kind='top_k', k=2}, {label='hard', kind='hard_threshold', match_bits_of='top'}]");
  EXPECT_THAT(problem_of(matched + "[[sweep.set]]\nwhen.compressor.up = 'hard'\nkeys.compressor.up.threshold = 1\n"),
              HasSubstr("compressor.up.threshold is found by match_bits_of"));
  EXPECT_THAT(problem_of("tune = {key = 'data.mu', values = [0.1, 0.2], at = 'rounds'}\n" + kTwoMethods +
                         "[[sweep.set]]\nwhen.compressor.up = 'top'\nkeys.data.mu = 1\n"),
              HasSubstr("data.mu is set by [[sweep.set]]"));
}

TEST(SweepGrid, SettingsOfTheCommandLineAreNotReplacedSilently) {
  const std::string text = kBase + kTwoMethods + "[[sweep.set]]\nwhen.compressor.up = 'dgc'\nkeys.data.mu = 0.25\n";
  try {
    (void)parse_cells(text, "grid.toml", {"data.mu=0.5"});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("data.mu: has no effect in some combinations, because [[sweep.set]] sets data.mu there"));
  }
  EXPECT_EQ(parse_cells(text, "grid.toml", {"data.mu=0.5", "sweep.set=[]"}).size(), 2u);
}

}  // namespace
}  // namespace fl
