// Compares the predictions of `plan` with the actual costs.
#include <gmock/gmock.h>

#include <algorithm>

#include "scenarios/results/run_store.hpp"
#include "study/output/numbers.hpp"
#include "tests/support/binary.hpp"
#include "tests/support/sanitized.hpp"

namespace fl {
namespace {

using test::Outcome;
using test::Process;
using testing::HasSubstr;

class PlanTest : public test::BinaryTest {};

TEST_F(PlanTest, PredictsRunsAndExactBitsAndCreatesNothing) {
  write_small(
      "[feedback.up]\nkind = 'ef14'\n[sweep]\nseeds = 3\n[[sweep.axis]]\nkey = 'compressor.up'\nvalues = [{label='top', kind='top_k', "
      "k=4}, "
      "{label='none', kind='identity'}]\n");
  const Outcome outcome = fedbits({"plan", "small.toml", "--jobs", "3"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("6 runs, "));
  EXPECT_THAT(outcome.out, HasSubstr(" with 3 workers"));
  EXPECT_FALSE(exists("fedbits-out"));
  // Identity sends the same number of bits every round: 4 clients, 5 rounds, and what a message of P float32 takes.
  EXPECT_EQ(run_with({"sweep.seeds=1"}).code, 0);
  const std::vector<RunRecord> runs = RunStore::open(folder_ / "out", RunStore::Mode::read).list();
  ASSERT_EQ(runs.size(), 2u);
  const std::string row = outcome.out.substr(outcome.out.find("\nnone"));
  EXPECT_THAT(row.substr(0, row.find('\n', 1)), HasSubstr(human_bits(static_cast<double>(runs[1].bits_up)))) << outcome.out;
}

TEST_F(PlanTest, SaysWhatIsWrongBeforeAnythingRuns) {
  write_small("[compressor.up]\nkind = 'top_k'\nk = 4000\n");
  const Outcome outcome = fedbits({"plan", "small.toml"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("4000"));
}

TEST_F(PlanTest, SaysWhichMemoryOfAGpuAStudyTakes) {
  const auto plan = [this](const std::string& feedback, const std::string& more) {
    write_small("[compressor.up]\nkind = 'top_k'\nk = 4\n[feedback.up]\nkind = '" + feedback + "'\n" + more);
    return fedbits({"plan", "small.toml", "--json", "plan.json"}).out;
  };
  EXPECT_THAT(plan("ef14", ""), HasSubstr("clients' vectors, state and messages are in the GPU's own memory"));
  EXPECT_THAT(read("plan.json"), HasSubstr("\"device_memory\":\"plain\""));
  const std::string walks = plan("econtrol", "");
  EXPECT_THAT(walks, HasSubstr("are in managed memory; a run takes at most 80% of the free memory for it:\n"
                               "    feedback.up.kind = \"econtrol\": the host computes every new error\n"));
  EXPECT_THAT(read("plan.json"), HasSubstr("\"device_memory\":\"managed\""));
}

TEST_F(PlanTest, SaysWhereClientsTrainInARunOnAGpu) {
  write_small("[compressor.up]\nkind = 'top_k'\nk = 4\n");
  EXPECT_THAT(fedbits({"plan", "small.toml", "--json", "plan.json"}).out, HasSubstr("  clients train on the GPU\n"));
  EXPECT_THAT(read("plan.json"), HasSubstr("\"device_training\":\"gpu\""));
  const std::string walks =
      fedbits({"plan", "small.toml", "--set", "local.kind=scaffold", "--set", "feedback.up.kind=scaffold", "--json", "plan.json"}).out;
  EXPECT_THAT(walks, HasSubstr("  clients train on the CPU: local.kind = \"scaffold\" has no half for a GPU (`fedbits list local-updates "
                               "--device cuda`)\n"));
  EXPECT_THAT(read("plan.json"), HasSubstr("\"device_training\":\"cpu\""));
}

TEST_F(PlanTest, SaysHowManyRowsAreLeftOut) {
  write_small();
  std::string table = "x,y\n";
  for (int i = 0; i < 40; ++i) table += (i % 8 == 3 ? std::string("NA") : std::to_string(i % 7)) + "," + std::to_string(i % 2) + "\n";
  write("gaps.csv", table);
  const auto with = [this](const char* command, const char* missing) {
    return fedbits({command, "small.toml", "--set", "data={path='./gaps.csv', missing='" + std::string(missing) + "'}"});
  };
  EXPECT_THAT(with("plan", "drop").out,
              HasSubstr("data.missing = \"drop\" leaves out 5 training rows and 0 test rows with a missing value"));
  EXPECT_THAT(with("run", "drop").out, HasSubstr("  dropped_rows 5  "));
  EXPECT_THAT(with("plan", "mean").out, testing::Not(HasSubstr("leaves out")));
  EXPECT_THAT(with("plan", "error").err, HasSubstr("gaps.csv:5:1: the value of column \"x\" is missing (\"NA\")"));
}

TEST_F(PlanTest, WarnsOfValuesTooRareForClaims) {
  write_small(
      "[feedback.up]\nkind = 'ef14'\n[sweep]\n[[sweep.axis]]\nkey = 'compressor.up'\nvalues = [{label='top', kind='top_k', k=100}, "
      "{label='none', kind='identity'}]\n");
  const auto plan = [this](const std::string& rounds, const std::string& every) {
    return fedbits({"plan", "small.toml", "--set", "rounds=" + rounds, "--set", "evaluate.every=" + every}).out;
  };
  // A fifth of the bits holds five evaluations from 25 rounds on, or from 100 if every fourth is measured.
  EXPECT_THAT(plan("60", "1"), testing::Not(HasSubstr("claims at equal uplink bits")));
  EXPECT_THAT(plan("60", "4"), HasSubstr("with evaluate.every = 4 that takes 100 rounds of the method with the most bits per round"));
  EXPECT_THAT(plan("60", "4"), HasSubstr("more rounds of the cheap methods, evaluate.every = 1 or `report --window` help"));
  EXPECT_THAT(plan("10", "1"), HasSubstr("more rounds of the cheap methods or `report --window` help"));
}

// Methods that lose nothing are references beside two that compress: no claim is made about them, and no advice is given.
TEST_F(PlanTest, GivesNoAdviceAboutMethodsThatGetNoClaim) {
  const auto plan = [this](const std::string& others) {
    write_small(
        "[feedback.up]\nkind = 'ef14'\n[sweep]\n[[sweep.axis]]\nkey = 'compressor.up'\nvalues = [{label='top', kind='top_k', k=5}, " +
        others + "]\n");
    return fedbits({"plan", "small.toml", "--set", "rounds=30"}).out;
  };
  EXPECT_THAT(plan("{label='none', kind='identity'}"), HasSubstr("claims at equal uplink bits"));
  EXPECT_THAT(plan("{label='random', kind='random_k', k=5}, {label='none', kind='identity'}"),
              testing::Not(HasSubstr("claims at equal uplink bits")));
  EXPECT_THAT(plan("{label='random', kind='random_k', k=5}, {label='half', kind='identity', format='fp16'}"),
              HasSubstr("claims at equal uplink bits"));
}

TEST_F(PlanTest, CountsTuningRuns) {
  write_small(
      "[feedback.up]\nkind = 'ef14'\n[sweep]\nseeds = 2\n[sweep.tune]\nseeds = 3\nkey = 'local.learning_rate'\nvalues = [0.1, 0.2]\n"
      "[[sweep.axis]]\nkey = 'compressor.up'\nvalues = [{label='top', kind='top_k', k=4}, "
      "{label='hard', kind='hard_threshold', match_bits_of='top'}]\n");
  const Outcome outcome = fedbits({"plan", "small.toml", "--json", "plan.json", "--set", "rounds=40"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("4 runs, "));
  // Three seeds: of the reference in the scenario's rounds, with the file's value for the budget and with the best one, whose bits are
  // matched; of two values of both methods until the budget is reached; and at each of eight steps that match two values.
  EXPECT_THAT(outcome.out, HasSubstr("before them about 66 tuning runs, "));
  EXPECT_THAT(outcome.out, HasSubstr("candidates are compared at the uplink bits that top sends"));
  const std::string json = read("plan.json");
  EXPECT_THAT(json, HasSubstr("\"compressor.up\":\"top\""));
  EXPECT_THAT(json, HasSubstr("\"candidates\":2"));
  const std::size_t top = json.find("\"bits_up\""), hard = json.find("\"bits_up\"", top + 1);
  ASSERT_NE(hard, std::string::npos) << json;
  EXPECT_EQ(json.substr(top, json.find(',', top) - top), json.substr(hard, json.find(',', hard) - hard)) << "what is matched sends as many";
}

TEST_F(PlanTest, TriesAPartOfVeryManyCombinations) {
  FL_ONLY_ARITHMETIC();
  const auto list = [](int count, double step) {
    std::string values;
    for (int i = 1; i <= count; ++i) values += (i > 1 ? ", " : "") + std::to_string(i * step);
    return "[" + values + "]";
  };
  write_small("[sweep]\n[[sweep.axis]]\nkey = 'local.learning_rate'\nvalues = " + list(100, 0.01) +
              "\n[[sweep.axis]]\nkey = 'partition.clients'\nvalues = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11]\n[[sweep.axis]]\nkey = "
              "'start.shift'\nvalues = " +
              list(10, 0.1) + "\n");
  const Outcome outcome = fedbits({"plan", "small.toml", "--try", "120", "--json", "plan.json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("10000 runs, "));
  EXPECT_THAT(outcome.out, HasSubstr("... and 9900 more; --json FILE writes all of them"));
  EXPECT_THAT(outcome.out, HasSubstr("120 of 10000 combinations were tried"));
  const std::string json = read("plan.json");
  EXPECT_EQ(test::count_of(json, "\"tried\":true"), 120u);
  EXPECT_EQ(test::count_of(json, "\"tried\":false"), 9880u);
}

// The resident memory of a process, at its peak so far; 0 when it is gone.
double peak_megabytes(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return std::stod(line.substr(6)) * 1024 / 1e6;
  return 0;
}

TEST_F(PlanTest, PredictsTheMemoryOfAWorkerWithinFifteenPercent) {
#if FL_SANITIZED
  GTEST_SKIP() << "a sanitizer's own memory is not predicted";
#endif
  write("large.toml",
        "name = 'large'\nrounds = 400\nprecision = 'float64'\n[data]\nkind = 'synthetic'\nclients = 300\nfeatures = 400\nclasses = 10\n"
        "[partition]\nkind = 'natural'\nclients = 300\n[model]\nkind = 'logistic_regression'\nl2 = 0.01\n[local]\nkind = 'gradient'\nbatch "
        "= 4\n"
        "[participation]\nkind = 'uniform'\nclients = 10\n[compressor.up]\nkind = 'top_k'\nk = 9\n[feedback.up]\nkind = 'ef21'\n"
        "[evaluate]\nevery = 100\noptimum = false\n");
  const Outcome planned = fedbits({"plan", "large.toml", "--jobs", "1"});
  ASSERT_EQ(planned.code, 0) << planned.err;
  const std::size_t end = planned.out.find(" MB per worker"), begin = planned.out.rfind(' ', end - 1);
  ASSERT_NE(end, std::string::npos) << planned.out;
  const double predicted = std::stod(planned.out.substr(begin, end - begin));

  Process process(folder_, {"sweep", "large.toml", "--out", "out", "--jobs", "1"});
  const std::string children = "/proc/" + std::to_string(process.pid()) + "/task/" + std::to_string(process.pid()) + "/children";
  double measured = 0;
  while (!exists("out/results.sqlite")) {
    std::ifstream list(children);
    for (pid_t worker = 0; list >> worker;) measured = std::max(measured, peak_megabytes(worker));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(process.wait().code, 0);
  EXPECT_NEAR(predicted, measured, 0.15 * measured);
}

TEST_F(PlanTest, DrawsTheDifferentSplitsOfAStudyWithoutRunningIt) {
  write_small(
      "[sweep]\nseeds = 2\n[[sweep.axis]]\nkey = 'partition.kind'\nvalues = ['sorted_by_label', 'homo']\n[[sweep.axis]]\nkey = "
      "'feedback.up.kind'\nvalues = ['none', 'ef14']\n");
  const Outcome outcome = fedbits({"plan", "small.toml", "--split", "--split-csv", "split.csv"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(test::count_of(outcome.out, "mean EMD"), 2u) << outcome.out;  // neither for each seed nor for each feedback
  EXPECT_THAT(outcome.out, HasSubstr("partition.kind = sorted_by_label\nsplit "));
  EXPECT_THAT(outcome.out, HasSubstr(": 4 clients, "));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("simulated")));
  EXPECT_FALSE(exists("fedbits-out"));
  for (std::size_t at = 0; at < outcome.out.size();) {
    const std::size_t end = outcome.out.find('\n', at);
    EXPECT_LE(display_width(outcome.out.substr(at, end - at)), 80u) << outcome.out.substr(at, end - at);
    at = end + 1;
  }
  const std::string csv = read("split.csv");
  EXPECT_TRUE(csv.starts_with("split,client,rows,emd,entropy,class,class_rows\n")) << csv;
  EXPECT_EQ(test::count_of(csv, "\n"), 1u + 2 * 4 * 2) << csv;  // two splits, four clients, two classes
}

}  // namespace
}  // namespace fl
