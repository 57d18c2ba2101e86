// Tests `fedbits report` from the command line: on the store of a real sweep, with wrong options, and opened in a browser.
#include <gmock/gmock.h>

#include "scenarios/report/assets.hpp"
#include "tests/support/binary.hpp"
#include "tests/support/browser.hpp"

namespace fl {
namespace {

using test::Outcome;
using testing::ContainsRegex;
using testing::HasSubstr;

class ReportTest : public test::BinaryTest {
 protected:
  void run_sweep() const {
    write_small(
        "measure_every = 1\n[compressor.up]\nkind = 'identity'\nunit = 'step'\n[feedback.up]\nkind = 'ef14'\n[sweep]\nseeds = 3\n"
        "[[sweep.axis]]\nkey = 'partition.kind'\nvalues = ['contiguous', 'sorted_by_label']\n"
        "[[sweep.axis]]\nkey = 'compressor.up'\nvalues = [{label = 'none', kind = 'identity', unit = 'step'}, "
        "{label = 'top-5%', kind = 'top_k', ratio = 0.05, unit = 'step'}, "
        "{label = 'hard', kind = 'hard_threshold', threshold = 0.05, unit = 'step'}]\n");
    const Outcome outcome = run_with({});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
};

TEST_F(ReportTest, TablesForTheTerminal) {
  run_sweep();
  const Outcome outcome = fedbits({"report", "out", "--all", "--measure", "f_gap", "--target", "0.5"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("f_gap at equal uplink bits, compared with top-5% (family of 0 comparisons, Holm)"));
  EXPECT_THAT(outcome.out, HasSubstr("f_gap at equal bits up and down"));
  // Nothing in these runs is random: three seeds are one observation.
  EXPECT_THAT(outcome.out, HasSubstr("partition.kind = sorted_by_label, top-5%: 3 seeds, 1 distinct run"));
  EXPECT_THAT(outcome.out, ContainsRegex("partition.kind = sorted_by_label +hard +1 "));
  EXPECT_THAT(outcome.out, ContainsRegex("none +[0-9.]+ (initial model|\\([0-9]\\)|reference)"));
  EXPECT_THAT(outcome.out, HasSubstr("no claim: all 3 seeds gave the same pair of runs, one observation"));
  EXPECT_THAT(fedbits({"run", "small.toml", "--out", "out"}).out, ContainsRegex("top-5% +3, 1 distinct "));
  EXPECT_THAT(outcome.out, HasSubstr("uplink bits until f_gap is 0.5\n"));
  EXPECT_THAT(outcome.out, ContainsRegex("hard +[01] of 1"));
}

// The report without options says what was run and who is ahead, in one table, and how to get the others.
TEST_F(ReportTest, WithoutAFileItPrintsTheSetupTheAnswerAndOneTable) {
  run_sweep();
  const Outcome outcome = fedbits({"report", "out"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(fedbits({"report", "out", "--text"}).out, outcome.out);
  for (const char* line : {"\n  data +.* training rows, .* features, 2 classes",
                           "\n  clients +4 with .* training rows each; rows are split by contiguous, sorted_by_label",
                           "\n  model +logistic_regression .*P = [0-9]+ parameters", "\n  local work +gradient \\(batch = ",
                           "\n  error feedback +ef14", "\n  rounds +[0-9]+", "\n  seeds +3 \\(1 to 3\\); 18 runs in all",
                           "\n  computed by +fedbits [0-9.]+, float32, on ", "\n  top-5%  top_k \\(ratio = 0.05, unit = step\\)"})
    EXPECT_THAT(outcome.out, ContainsRegex(line));
  EXPECT_THAT(outcome.out, ContainsRegex("partition.kind = sorted_by_label .* = [0-9.]+\\): no claim about hard at "));
  EXPECT_THAT(outcome.out, HasSubstr(" at equal uplink bits, compared with top-5%"));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("bits up and down")));
  EXPECT_THAT(outcome.out, HasSubstr("--all prints the tables of every measure"));
  EXPECT_THAT(outcome.out, ContainsRegex("to cite: fedbits contributors: .* version [0-9.]+ \\(results version [0-9]"));
}

TEST_F(ReportTest, NamesTheValuesThatTuningFound) {
  write_small(
      "[compressor.up]\nkind = 'identity'\nunit = 'step'\n[feedback.up]\nkind = 'ef14'\n[sweep]\nseeds = 1\n"
      "[sweep.tune]\nseeds = 1\nat = 'rounds'\nkey = 'local.learning_rate'\nvalues = [0.01, 0.5, 1e6]\n"
      "[[sweep.axis]]\nkey = 'compressor.up'\nvalues = [{label = 'top', kind = 'top_k', k = 20, unit = 'step'}, "
      "{label = 'hard', kind = 'hard_threshold', threshold = 0.05, unit = 'step'}]\n");
  ASSERT_EQ(run_with({"rounds=30"}).code, 0);
  const Outcome outcome = fedbits({"report", "out", "--latex", "tables.tex", "--text"});
  EXPECT_THAT(outcome.out, HasSubstr("values that tuning and the matching of bits found\n"));
  for (const char* method : {"top", "hard"})
    EXPECT_THAT(outcome.out, ContainsRegex(std::string(method) + " +local.learning_rate +0.5 +tuned: best of 3 values, 0.01 to 1e\\+06"));
  EXPECT_THAT(outcome.out, ContainsRegex("\n  tuning +by train_loss after equal rounds, on the seed [0-9]+, which the study does not use"));
  EXPECT_THAT(read("tables.tex"), HasSubstr("\\label{tab:found}"));
}

TEST_F(ReportTest, TheScenarioThatItWritesPlaysTheSameRuns) {
  run_sweep();
  ASSERT_EQ(fedbits({"report", "out", "--scenario", "again.toml"}).code, 0);
  const Outcome again = fedbits({"run", "again.toml", "--out", "again"});
  ASSERT_EQ(again.code, 0) << again.err;
  ASSERT_EQ(fedbits({"export", "out", "--rounds", "a.csv"}).code, 0);
  ASSERT_EQ(fedbits({"export", "again", "--rounds", "b.csv"}).code, 0);
  EXPECT_EQ(read("a.csv"), read("b.csv")) << read("again.toml");
}

// The thresholds that match bits differ from level to level, so that no label determines them.
TEST_F(ReportTest, TheScenarioThatItWritesHasTheValuesThatWereFound) {
  write_small(
      "[compressor.up]\nkind = 'identity'\nunit = 'step'\n[feedback.up]\nkind = 'ef14'\n[sweep]\nseeds = 2\n"
      "[sweep.tune]\nseeds = 1\nat = 'rounds'\nkey = 'local.learning_rate'\nvalues = [0.01, 0.5, 1e6]\n"
      "[[sweep.axis]]\nkey = 'partition.kind'\nvalues = ['contiguous', 'sorted_by_label']\n"
      "[[sweep.axis]]\nkey = 'compressor.up'\nvalues = [{label = 'top', kind = 'top_k', k = 20, unit = 'step'}, "
      "{label = 'hard', kind = 'hard_threshold', unit = 'step', match_bits_of = 'top'}]\n");
  ASSERT_EQ(run_with({"rounds=30"}).code, 0);
  ASSERT_EQ(fedbits({"report", "out", "--scenario", "again.toml"}).code, 0);
  const std::string scenario = read("again.toml");
  EXPECT_THAT(scenario,
              HasSubstr("when = { partition.kind = \"sorted_by_label\", compressor.up = \"hard\" }\nkeys = { compressor.up.threshold = "));
  EXPECT_THAT(scenario, testing::Not(HasSubstr("this file leaves them out")));
  const Outcome again = fedbits({"run", "again.toml", "--out", "again"});
  ASSERT_EQ(again.code, 0) << again.err;
  ASSERT_EQ(fedbits({"export", "out", "--rounds", "a.csv"}).code, 0);
  ASSERT_EQ(fedbits({"export", "again", "--rounds", "b.csv"}).code, 0);
  EXPECT_EQ(read("a.csv"), read("b.csv")) << scenario;
}

// Labels have the characters that LaTeX takes for its own.
TEST_F(ReportTest, TablesForAPaperCompile) {
  write_small(
      "[compressor.up]\nkind = 'identity'\nunit = 'step'\n[feedback.up]\nkind = 'ef14'\n[sweep]\nseeds = 2\n"
      "[[sweep.axis]]\nkey = 'partition.kind'\nvalues = ['contiguous', 'sorted_by_label']\n"
      "[[sweep.axis]]\nkey = 'compressor.up'\nvalues = [{label = 'top 5% & _^~{}#$<>|\\\\', kind = 'top_k', ratio = 0.05, unit = 'step'}, "
      "{label = '\"hard\"', kind = 'hard_threshold', threshold = 0.05, unit = 'step'}]\n");
  ASSERT_EQ(run_with({}).code, 0);
  const Outcome outcome = fedbits({"report", "out", "--latex", "tables.tex", "--target", "0.5"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "") << "a file is all that was asked for";
  const std::string tables = read("tables.tex");
  for (const char* label : {"\\label{tab:setup}", "\\label{tab:comparison}", "\\label{tab:target}", "% fedbits contributors: "})
    EXPECT_THAT(tables, HasSubstr(label));
  if (std::system("command -v pdflatex >/dev/null && kpsewhich booktabs.sty >/dev/null") != 0)
    GTEST_SKIP() << "pdflatex with booktabs is not installed (texlive-latex-recommended)";
  write("paper.tex", "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\\input{tables}\\end{document}\n");
  EXPECT_EQ(std::system(("cd '" + folder_.string() + "' && pdflatex -halt-on-error -interaction=nonstopmode paper.tex >compiled").c_str()),
            0)
      << read("compiled");
}

TEST_F(ReportTest, WrongOptionsAreBadInputAndLeaveNothing) {
  run_sweep();
  const Outcome many = fedbits({"report", "out", "--text", "--measure", "beauty", "--method", "brand"});
  EXPECT_EQ(many.code, 2);
  EXPECT_THAT(many.err, HasSubstr("'beauty' is not a measured column"));
  EXPECT_THAT(many.err, HasSubstr("no run has an axis 'brand'; there are 'partition.kind', 'compressor.up'"));
  EXPECT_EQ(fedbits({"report", "out", "--text", "--baseline", "nil"}).code, 2);
  EXPECT_EQ(fedbits({"report", "nowhere", "--text"}).code, 2);
  const Outcome window = fedbits({"report", "out", "--text", "--window", "0"});
  EXPECT_EQ(window.code, 2);
  EXPECT_THAT(window.err, HasSubstr("--window: must be above 0 and at most 1"));
  EXPECT_EQ(fedbits({"report", "out", "-o", "nowhere/report.html"}).code, 2);
  EXPECT_EQ(fedbits({"report", "out", "-o", "report.html", "--baseline", "nil"}).code, 2);
  EXPECT_FALSE(exists("report.html"));
}

// Two experiments in the folder of a scenario: rounds = 20 with two seeds after the scenario's own rounds with three.
TEST_F(ReportTest, ExperimentsOfOneStoreAreStudiesOfTheirOwn) {
  const std::string sweep =
      "[local]\nkind = 'gradient'\nbatch = 8\n[feedback.up]\nkind = 'ef14'\n[sweep]\nseeds = 3\n[[sweep.axis]]\nkey = 'compressor.up'\n"
      "values = [{label = 'top-50%', kind = 'top_k', ratio = 0.5}, {label = 'top-5%', kind = 'top_k', ratio = 0.05}]\n";
  write_small(sweep);
  ASSERT_EQ(fedbits({"run", "small.toml", "--set", "rounds=40"}).code, 0);
  ASSERT_EQ(fedbits({"run", "small.toml", "--set", "rounds=20", "--set", "sweep.seeds=2"}).code, 0);
  const Outcome both = fedbits({"report", "--text", "--measure", "f_gap"});
  EXPECT_EQ(both.code, 0) << both.err;
  EXPECT_THAT(both.out, HasSubstr("this store holds 2 studies, which are not compared with each other; --study NAME chooses one\n"
                                  "  * rounds = 40 (6 runs)\n    rounds = 20 (4 runs)\n"
                                  "* marks the study that is shown below\n"));
  EXPECT_THAT(both.out, ContainsRegex("all runs +top-50% +3 "));
  const Outcome one = fedbits({"report", "fedbits-out/small", "--text", "--measure", "f_gap", "--study", "rounds = 20"});
  EXPECT_THAT(one.out, HasSubstr("  * rounds = 20 (4 runs)\n"));
  EXPECT_THAT(one.out, ContainsRegex("all runs +top-50% +2 "));
  const Outcome none = fedbits({"report", "--text", "--study", "rounds = 30"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("--study: the store has no study 'rounds = 30'; there are 'rounds = 40', 'rounds = 20'"));
}

// Scenarios have folders by their names; without one of them the command says which are there.
TEST_F(ReportTest, WithoutAFolderTheStoresThatAreThereAreNamed) {
  write_small();
  EXPECT_THAT(fedbits({"report", "--text"}).err, HasSubstr("report: there is no store in fedbits-out"));
  EXPECT_THAT(fedbits({"run", "small.toml"}).out, testing::Not(HasSubstr("fedbits report")));
  EXPECT_TRUE(exists("fedbits-out/small/results.sqlite"));
  EXPECT_EQ(fedbits({"report", "--text"}).code, 0);
  ASSERT_EQ(fedbits({"run", "small.toml", "--set", "name=other/study"}).code, 0);
  for (const std::vector<std::string>& command : {std::vector<std::string>{"report", "--text"}, {"report", "fedbits-out", "--text"}}) {
    const Outcome several = fedbits(command);
    EXPECT_EQ(several.code, 2);
    EXPECT_THAT(several.err, HasSubstr("name the folder of one store; there are\n  fedbits-out/other-study\n  fedbits-out/small"));
  }
  const std::string runs = fedbits({"export", "fedbits-out/other-study", "--runs", "/dev/stdout"}).out;
  const std::string hash = runs.substr(runs.find('\n') + 1, 16);
  const Outcome found = fedbits({"explain", hash});
  EXPECT_EQ(found.code, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("of other/study"));
  EXPECT_THAT(fedbits({"explain", "zz"}).err, HasSubstr("no store in fedbits-out has a run that begins so"));
}

// A unit that one label names and the others do not: the methods of a comparison compress different things.
TEST_F(ReportTest, MethodsThatCompressDifferentThingsAreToldOf) {
  const auto with_unit = [&](const std::string& unit) {
    write_small(
        "[local]\nkind = 'gradient'\nbatch = 8\n[feedback.up]\nkind = 'ef14'\n[sweep]\nseeds = 2\n[[sweep.axis]]\nkey = 'compressor.up'\n"
        "values = [{label = 'none', kind = 'identity'}, {label = 'top', kind = 'top_k', ratio = 0.5, unit = 'step'}, "
        "{label = 'hard', kind = 'hard_threshold', threshold = 0.01" +
        unit + "}]\n");
    return fedbits({"plan", "small.toml"}).out;
  };
  const std::string text = "differ in what they compress";
  EXPECT_THAT(with_unit(", unit = 'step'"), testing::Not(HasSubstr(text)));
  EXPECT_THAT(with_unit(""), HasSubstr(text + ": top (unit step, scope model), hard (unit gradient, scope model)"));
  ASSERT_EQ(fedbits({"run", "small.toml"}).code, 0);
  EXPECT_THAT(fedbits({"report", "--text"}).out, HasSubstr("top (unit step, scope model), hard (unit gradient, scope model)"));
}

TEST_F(ReportTest, WithoutVegaThePackageIsNamed) {
  if (!report_assets().vega.empty()) GTEST_SKIP() << "Vega is inside this fedbits";
  run_sweep();
  const Outcome outcome = fedbits({"report", "out", "-o", "report.html"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("libjs-vega"));
  EXPECT_FALSE(exists("report.html"));
}

// Two levels: curves against bits, rounds and of density, ends against bits, two forests; two relations to zeta^2; kappa of `hard`, delta
// of `top-5%`; theory; two splits.
TEST_F(ReportTest, AStoreOfARealSweepOpensInABrowser) {
  FL_NEED_VEGA();
  FL_NEED_BROWSER();
  run_sweep();
  const Outcome outcome = fedbits({"report", "out", "-o", "report.html"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("report written to report.html\n"));
  const test::Seen seen = test::open_page(folder_ / "report.html");
  EXPECT_EQ(seen.console, "");
  EXPECT_THAT(seen.dom, HasSubstr("data-ready=\"yes\""));
  EXPECT_EQ(test::count_of(seen.dom, "<div class=\"plot"), 19u);
  EXPECT_EQ(test::count_of(seen.dom, "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink"), 19u);
  EXPECT_THAT(seen.dom, HasSubstr("Which compressor is better at 25%, 50% and 100% of the bits of "));
  EXPECT_THAT(seen.dom, HasSubstr("Theory beside measurement"));
  EXPECT_THAT(seen.dom, HasSubstr("4 clients, 2 classes; from no rows (pale) to"));
  EXPECT_THAT(seen.dom, HasSubstr("18 runs · 3 methods (compressor.up) · 2 levels of partition.kind · 3 paired seeds"));
}

}  // namespace
}  // namespace fl
