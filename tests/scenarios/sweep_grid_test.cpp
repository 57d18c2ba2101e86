// Tests axes that move together, and combinations that are left out.
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

}  // namespace
}  // namespace fl
