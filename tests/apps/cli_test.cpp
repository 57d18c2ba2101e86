// Tests the command line: help, lists, errors before anything is created, and uses of stored runs.
#include <gmock/gmock.h>

#include <fstream>

#include "scenarios/data/bytes.hpp"
#include "scenarios/data/embedded.hpp"
#include "scenarios/results/run_store.hpp"
#include "scenarios/results/sqlite.hpp"
#include "tests/support/binary.hpp"
#include "tests/support/http_server.hpp"

namespace fl {
namespace {

using test::count_of;
using test::Outcome;
using testing::AllOf;
using testing::AnyOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// ---- help and lists ----------------------------------------------------------------------------------------------------------

class CliTest : public test::BinaryTest {};

TEST_F(CliTest, EveryCommandHelpsWithAnExample) {
  const Outcome all = fedbits({"--help"});
  EXPECT_EQ(all.code, 0);
  EXPECT_THAT(all.out, HasSubstr("Examples:"));
  for (const std::string command : {"run", "sweep", "plan", "merge", "export", "report", "explain", "model", "list", "data", "check"}) {
    EXPECT_THAT(all.out, HasSubstr(command));
    const Outcome help = fedbits({command, "--help"});
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_THAT(help.out, AnyOf(HasSubstr("Example: fedbits " + command), HasSubstr("Examples:\n  fedbits " + command))) << command;
  }
}

TEST_F(CliTest, WrongUseIsBadInput) {
  EXPECT_EQ(fedbits({}).code, 2);
  EXPECT_EQ(fedbits({"rum"}).code, 2);
  EXPECT_EQ(fedbits({"run"}).code, 2);
  EXPECT_EQ(fedbits({"export"}).code, 2);
  EXPECT_EQ(fedbits({"--version"}).code, 0);
}

TEST_F(CliTest, ListsOfEveryRoleHaveOptionsAndDefaults) {
  const std::vector<std::pair<std::string, std::string>> lists = {
      {"compressors", "top_k"},
      {"feedbacks", "ef21"},
      {"models", "logistic_regression"},
      {"partitioners", "dirichlet_client"},
      {"local-updates", "sgd"},
      {"local-optimizers", "adamw"},
      {"participations", "full"},
      {"servers", "momentum = 0.0"},
      {"data", "quadratics"},
      {"reference", "## `[partition]`"},
  };
  for (const auto& [list, entry] : lists) {
    const Outcome outcome = fedbits({"list", list});
    EXPECT_EQ(outcome.code, 0) << list;
    EXPECT_THAT(outcome.out, HasSubstr(entry)) << list;
  }
  for (const std::string list : {"compressors", "reference", ""}) {
    const Outcome outcome = list.empty() ? fedbits({"list"}) : fedbits({"list", list});
    EXPECT_THAT(outcome.out, ContainsRegex("[Dd]iffers from its source: the publication doubles the levels")) << list;
  }
  const Outcome wrong = fedbits({"list", "compresors"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean 'compressors'?"));
}

// Lines of docs/gpu.md between "```text" behind the command and "```".
std::string block_behind(const std::string& page, const std::string& command) {
  const std::size_t at = page.find("    " + command + "\n"), begin = page.find("```text\n", at) + 8;
  return at == std::string::npos ? "no such command" : page.substr(begin, page.find("```", begin) - begin);
}

TEST_F(CliTest, ListsWhatStaysOnAGpuAsThePageHasIt) {
  std::ifstream file(std::string(FL_SOURCE_DIR) + "/docs/gpu.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  for (const std::string list : {"feedbacks", "local-updates"}) {
    const Outcome outcome = fedbits({"list", list, "--device", "cuda"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, block_behind(page, "fedbits list " + list + " --device cuda")) << "docs/gpu.md has another table";
  }
  EXPECT_EQ(fedbits({"list", "feedback", "ef14", "--device", "cuda"}).out, "feedbacks\n  ef14                 stays on the GPU\n");
  EXPECT_THAT(fedbits({"list", "feedbacks", "--device", "cuda"}).out,
              HasSubstr("  econtrol             partly on the CPU: the host computes every new error\n"));
  EXPECT_THAT(fedbits({"list", "compressors", "--device", "cuda"}).out, AnyOf(HasSubstr("no CUDA"), HasSubstr("stays on the GPU")));
  EXPECT_THAT(fedbits({"list", "layers", "--device", "cuda"}).out,
              AnyOf(HasSubstr("  lstm                 not known: this build has no CUDA\n"),
                    HasSubstr("  lstm                 stays on the GPU\n")));
  EXPECT_THAT(fedbits({"list", "models", "--device", "cuda"}).err,
              HasSubstr("shows compressors, feedbacks, layers and local-updates, not 'models'"));
  EXPECT_THAT(fedbits({"list", "feedbacks", "--device", "cpu"}).err, HasSubstr("--device: must be cuda"));
  EXPECT_THAT(fedbits({"list", "feedbaks", "--device", "cuda"}).err, HasSubstr("did you mean 'feedbacks'?"));
}

TEST_F(CliTest, DataIsListedAndVerified) {
  EXPECT_THAT(fedbits({"data"}).out, ContainsRegex("libsvm/mushrooms .*inside fedbits"));
  const Outcome good = fedbits({"data", "--verify"});
  EXPECT_EQ(good.code, 0);
  EXPECT_THAT(good.out, ContainsRegex("libsvm/mushrooms .*matches"));
  std::filesystem::create_directories(folder_ / "sets/libsvm");
  write("sets/libsvm/madelon", "1 1:0.5\n-1 1:0.25\n");
  const Outcome bad = fedbits({"data", "--verify", "--data", "sets"});
  EXPECT_EQ(bad.code, 1);
  EXPECT_THAT(bad.out, ContainsRegex("libsvm/madelon .*differs"));
  EXPECT_EQ(fedbits({"data", "--data", "nowhere"}).code, 2);
}

TEST_F(CliTest, DataIsShownAndFetched) {
  const Outcome shown = fedbits({"data", "show", "fashion-mnist", "a9a"});
  EXPECT_EQ(shown.code, 0);
  for (const char* part : {"60000 rows of 1x28x28, 10 classes", "licence: MIT", "sha256 c59f468a", "from http", "libsvm/a9a"})
    EXPECT_THAT(shown.out, HasSubstr(part));
  const Outcome slip = fedbits({"data", "fetch", "fasion-mnist"});
  EXPECT_EQ(slip.code, 2);
  EXPECT_THAT(slip.err, HasSubstr("did you mean \"fashion-mnist\"?"));
  EXPECT_EQ(fedbits({"data", "fetch"}).code, 2);
  EXPECT_EQ(fedbits({"data", "fletch", "a9a"}).code, 2);
  EXPECT_EQ(fedbits({"data", "show", "a9a", "--from", "http://127.0.0.1"}).code, 2);
  EXPECT_EQ(fedbits({"data", "fetch", "shakespeare"}).code, 2);  // it is not published as one file

  test::HttpServer server;
  server.put("/mushrooms", unpack_data(embedded_mushrooms(), "mushrooms"));
  server.put("/australian", "not what is expected\n");
  const Outcome fetched = fedbits({"data", "fetch", "mushrooms", "--from", server.url(), "--data", "sets"});
  if (fetched.err.find("without libcurl") != std::string::npos) GTEST_SKIP() << "TOOL MISSING: libcurl: " << fetched.err;
  EXPECT_EQ(fetched.code, 0) << fetched.err;
  EXPECT_THAT(fedbits({"data", "--verify", "--data", "sets"}).out, ContainsRegex("libsvm/mushrooms .*matches  sets/libsvm/mushrooms"));
  const Outcome wrong = fedbits({"data", "fetch", "australian", "--from", server.url(), "--data", "sets"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("expected e11b85d6"));
  EXPECT_FALSE(exists("sets/libsvm/australian"));
  EXPECT_EQ(fedbits({"data", "fetch", "madelon", "--from", server.url(), "--data", "sets"}).code, 1);  // the server has none
}

// ---- scenarios that are refused ----------------------------------------------------------------------------------------------

TEST_F(CliTest, EveryErrorOfAScenarioIsShownWithItsPlace) {
  write("wrong.toml",
        "name = 'wrong'\n"
        "rounds = 0\n"
        "[data]\n"
        "name = 'mushrooms'\n"
        "[partition]\n"
        "clints = 4\n"
        "[model]\n"
        "kind = 'logistic_regresion'\n");
  const Outcome outcome = fedbits({"run", "wrong.toml", "--out", "out"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("wrong.toml:2:10: rounds: must be >= 1"));
  EXPECT_THAT(outcome.err, ContainsRegex("wrong.toml:6:1: partition.clints: unknown key; did you mean .clients."));
  EXPECT_THAT(outcome.err, ContainsRegex("wrong.toml:8:8: model.kind: .*logistic_regression"));
  EXPECT_EQ(count_of(outcome.err, "\n"), 3u) << outcome.err;
  EXPECT_FALSE(exists("out"));
}

TEST_F(CliTest, SyntaxErrorsAndMissingFilesAreRefused) {
  write("broken.toml", "name = 'x\nrounds = 5\n");
  const Outcome broken = fedbits({"run", "broken.toml", "--out", "out"});
  EXPECT_EQ(broken.code, 2);
  EXPECT_THAT(broken.err, HasSubstr("broken.toml:1:"));
  const Outcome missing = fedbits({"run", "nowhere.toml", "--out", "out"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.err, HasSubstr("nowhere.toml"));
  const Outcome folder = fedbits({"run", ".", "--out", "out"});
  EXPECT_EQ(folder.code, 2);
  EXPECT_FALSE(exists("out"));
}

struct Refusal {
  std::string label;
  std::vector<std::string> settings;
  std::string message;  // a part of it
};
void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.label; }

class Refusals : public test::BinaryTest, public testing::WithParamInterface<Refusal> {};

TEST_P(Refusals, ExitWithTwoAndLeaveNothing) {
  write_small();
  const Outcome outcome = run_with(GetParam().settings);
  EXPECT_EQ(outcome.code, 2) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr(GetParam().message));
  EXPECT_EQ(outcome.out, "");
  EXPECT_FALSE(exists("out"));
}

std::vector<Refusal> refusals() {
  const std::string hard = "compressor.up={kind='hard_threshold', threshold=", top = "compressor.up={kind='top_k', k=",
                    random = "compressor.up={kind='random_k', k=";
  return {
      {"SettingOfUnknownKey", {"partition.clints=3"}, "did you mean \"clients\"?"},
      {"SettingOfAnotherType", {"rounds=many"}, "rounds: must be an integer, is \"many\""},
      {"SettingWithoutValue", {"rounds"}, "key=value"},
      {"SettingOutOfRange", {"partition.kind=similarity", "partition.percent=101"}, "partition.percent: must be"},
      {"LambdaZero", {hard + "0}"}, "threshold must be a positive number, is 0"},
      {"LambdaNegative", {hard + "-1}"}, "threshold must be a positive number, is -1"},
      {"LambdaNan", {hard + "nan}"}, "compressor.up.threshold: must be finite"},
      {"LambdaOfARuleNan", {hard + "'sqrt(0-1)'}"}, "sqrt"},
      {"RegulariserNegative", {"model.l2=-0.1"}, "model.l2: must be >= 0"},
      {"RegulariserNan", {"model.l2=nan"}, "model.l2: must be finite"},
      {"TopKZero", {top + "0}"}, "compressor.up.k: must be >= 1"},
      {"TopKAboveP", {top + "114}"}, "k = 114 is more than the 113 parameters"},
      {"RandomKZero", {random + "0}"}, "compressor.up.k: must be >= 1"},
      {"RandomKAboveP", {random + "114}"}, "k = 114 is more than the 113 parameters"},
      {"Ef14AroundUnscaled", {random + "5, scaled=true}", "feedback.up.kind=ef14"}, "diverges"},
      {"DianaAroundBiased", {top + "5}", "feedback.up.kind=diana"}, "diana needs an unbiased operator"},
      {"DianaStepTooLarge", {random + "5, scaled=true}", "feedback.up.kind=diana"}, "feedback.up.alpha: must be at most 1/(1+omega)"},
      {"Ef21AroundUnscaled", {random + "5, scaled=true}", "feedback.up.kind=ef21"}, "diverges: scale it"},
      {"MarinaAroundBiased",
       {top + "5}", "feedback.up.kind=marina", "local.kind=gradient_difference"},
       "marina needs an unbiased operator"},
      {"DashaRateTooLarge", {random + "5, scaled=true}", "feedback.up.kind=dasha"}, "feedback.up.a: must be at most 1/(1+2 omega)"},
      {"DashaOfSampledClients",
       {"compressor.up.kind=natural", "feedback.up.kind=dasha", "participation={kind='uniform', clients=2}"},
       "every client in every round"},
      {"FedPaqOfGradients", {"compressor.up.kind=natural", "feedback.up.kind=fedpaq"}, "fedpaq quantises differences of models"},
      {"Ef21PWithoutDownlink", {"compressor.up.kind=natural", "feedback.up.kind=ef21_p"}, "set [compressor.down] to a contraction"},
      {"StarWithoutOptimum", {"compressor.up.unit=step", "feedback.up.kind=ec_gd_star"}, "local.subtract: feedback 'ec_gd_star' needs"},
      {"EcLsvrgWithoutLsvrg", {"feedback.up.kind=ec_lsvrg"}, "needs local kind \"lsvrg\""},
      {"StepAheadOfGradients", {"feedback.up.kind=sa_pef"}, "sa_pef takes its error off the model"},
      {"ScallionAroundBiased", {top + "5}", "local.kind=scallion", "feedback.up.kind=scallion"}, "scallion needs an unbiased operator"},
      {"ScallionWithoutFeedback", {"local.kind=scallion"}, "needs feedback \"scallion\" or \"scafcom\""},
      {"DriftOfBiasedOperator",
       {top + "5}", "feedback.up={kind='three_pc', variant='v2'}"},
       "three_pc needs an unbiased operator for its channel \"drift\""},
      {"LazyGradientsCompressed",
       {top + "5}", "feedback.up={kind='three_pc', variant='lag'}"},
       "sends messages of 'identity' alone, not of 'top_k': its variant \"clag\" compresses them"},
      {"MarinaWithoutDifferences", {"feedback.up.kind=marina"}, "needs local kind \"gradient_difference\""},
      {"ScaffoldWithoutFeedback", {"local.kind=scaffold"}, "needs feedback \"scaffold\""},
      {"UnitOfAnotherUpdate", {"compressor.up.unit=update"}, "compressor.up.unit"},
      {"UnknownChannel", {"compressor.up.control={kind='identity'}"}, "compressor.up.control"},
      {"PowerSgdDownwards", {"compressor.down.kind=powersgd", "model.multinomial=true", "compressor.down.scope=tensor"}, "compressor.down"},
      {"StepOfUnknownName", {"local.learning_rate='1/Lx'"}, "unknown name \"Lx\"; did you mean \"L\"?"},
      {"StepInfinite", {"local.learning_rate='1/(L-L)'"}, "must be finite"},
      {"StepZero", {"local.learning_rate=0"}, "local.learning_rate: must be > 0"},
      {"StepNegative", {"local.learning_rate='0-1/L'"}, "local.learning_rate: must be > 0"},
      {"MoreClientsThanRows", {"partition.clients=121"}, "121 clients cannot share 120 rows"},
      {"DirichletWithoutEnoughRows", {"partition={kind='dirichlet_class', clients=40, beta=0.01}"}, "partition"},
      {"CohortAboveClients", {"participation={kind='uniform', clients=5}"}, "5 of 4 clients"},
      {"UnknownData", {"data.name=mushroms"}, "did you mean \"mushrooms\"?"},
      {"StartFileMissing", {"start={kind='file', path='nowhere.txt'}"}, "nowhere.txt"},
      {"SampleFileMissing", {"local={kind='gradient', batch=1, sample_file='nowhere.csv'}"}, "nowhere.csv"},
      {"StopAtNothing", {"stop.accuracy=0"}, "stop.accuracy: must be > 0"},
  };
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Refusals, testing::ValuesIn(refusals()), [](const auto& one) { return one.param.label; });

TEST_F(CliTest, MachinesThatAreNotThereAreRefused) {
  write_small();
#if !defined(FL_CUDA_EMULATOR)
  const Outcome cuda = fedbits({"run", "small.toml", "--out", "out", "--device", "cuda"});
  EXPECT_EQ(cuda.code, 2);
  EXPECT_THAT(cuda.err, HasSubstr("--device cuda"));
  EXPECT_THAT(cuda.err, HasSubstr("--device cpu"));
#endif
  const Outcome near = fedbits({"run", "small.toml", "--out", "out", "--device", "cudda"});
  EXPECT_EQ(near.code, 2);
  EXPECT_THAT(near.err, HasSubstr("did you mean 'cuda'?"));
  EXPECT_EQ(fedbits({"run", "small.toml", "--out", "out", "--threads", "0"}).code, 2);
  EXPECT_FALSE(exists("out"));
}

// ---- stored runs -------------------------------------------------------------------------------------------------------------

TEST_F(CliTest, MoreIsSaidAboutTheTimeOfRounds) {
  write_small();
  EXPECT_THAT(fedbits({"run", "small.toml", "--out", "quiet"}).err, Not(HasSubstr("aggregation")));
  EXPECT_THAT(
      fedbits({"run", "small.toml", "--out", "verbose", "-v"}).err,
      ContainsRegex("rounds in .* s: training .*%, compression .*%, aggregation .*%, evaluation .*%, waiting threads .*%, the rest .*%"));
}

TEST_F(CliTest, ClosingLinesAndTheTableOfASweep) {
  write_small("[sweep]\nseeds = 2\n[[sweep.axis]]\nkey = 'partition.clients'\nvalues = [2, 3]\n");
  const Outcome outcome = run_with({});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(count_of(outcome.out, "  done  rounds"), 0u) << "a row per method stands for its runs";
  EXPECT_THAT(outcome.out, Not(ContainsRegex("[0-9a-f]{16}"))) << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("the results lie in out; `fedbits report out -o report.html` compares methods at equal bits"));
  const Outcome verbose = fedbits({"run", "small.toml", "--out", "out", "-v"});
  EXPECT_EQ(count_of(verbose.out, "  done  rounds 5  "), 4u);
  EXPECT_THAT(verbose.out,
              ContainsRegex("run [0-9a-f]{16}  partition.clients=2  seed=1  done  rounds 5 .*bits_up [0-9]+  bits_down [0-9]+  "
                            "checksum [0-9a-f]{16}\n"));
  EXPECT_THAT(outcome.out, ContainsRegex("partition.clients +runs +zeta_sq +train_loss"));
  const Outcome quiet = fedbits({"run", "small.toml", "--out", "quiet", "--quiet"});
  EXPECT_EQ(quiet.code, 0);
  EXPECT_EQ(quiet.out + quiet.err, "");
}

// A stored result that was changed shows whether it is computed anew.
TEST_F(CliTest, StoredRunsAreShownAndRepeatedOnlyOnRequest) {
  write_small();
  const Outcome first = run_with({});
  ASSERT_EQ(first.code, 0) << first.err;
  {
    RunStore store = RunStore::open(folder_ / "out", RunStore::Mode::create);
    RunRecord changed = store.list().front();
    changed.checksum = "was changed";
    store.append(changed, store.rows(changed.run));
  }
  const Outcome shown = fedbits({"run", "small.toml", "--out", "out", "-v"});
  EXPECT_EQ(shown.code, 0);
  EXPECT_THAT(shown.out, HasSubstr("checksum was changed"));
  EXPECT_THAT(run_with({}).out, AllOf(testing::StartsWith("seed=1  done  rounds 5  "), Not(HasSubstr("checksum"))));
  const Outcome again = fedbits({"run", "small.toml", "--out", "out", "--again"});
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.out, first.out);
  EXPECT_EQ(RunStore::open(folder_ / "out", RunStore::Mode::read).list().size(), 1u);
}

TEST_F(CliTest, ExplainedRunsRunAgainToTheSameBytes) {
  write_small("[local]\nlearning_rate = '1/(L+l2)'\n[compressor.up]\nkind = 'top_k'\nk = 5\n[feedback.up]\nkind = 'ef21'\n");
  const Outcome first = fedbits({"run", "small.toml", "--out", "out", "-v"});
  ASSERT_EQ(first.code, 0) << first.err;
  const std::string hash = first.out.substr(4, 16);
  const Outcome explained = fedbits({"explain", hash.substr(0, 5), "--out", "out"});
  EXPECT_EQ(explained.code, 0);
  EXPECT_THAT(explained.out, HasSubstr("# run " + hash));
  write("again.toml", explained.out);
  const Outcome again = fedbits({"run", "again.toml", "--out", "again", "-v"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, first.out);

  const Outcome unknown = fedbits({"explain", "ffffffffffffffffff", "--out", "out"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("there are " + hash));
  EXPECT_EQ(fedbits({"explain", hash, "--out", "nowhere"}).code, 2);
}

// Threads, blocks, the order of the cells and materialised messages leave no trace in what is exported.
TEST_F(CliTest, ReproducibleExportsHaveTheSameBytes) {
  const std::string axis = "[sweep]\nseeds = 2\n[[sweep.axis]]\nkey = 'compressor.up'\nvalues = ";
  const std::string top = "{label='top', kind='top_k', k=5}", sign = "{label='sign', kind='ef_sign'}";
  const auto rounds_and_runs = [&](const std::string& out, const std::string& values, std::vector<std::string> machine) {
    write_small("[local]\nbatch = 7\n[feedback.up]\nkind = 'ef14'\n" + axis + values + "\n");
    machine.insert(machine.begin(), {"run", "small.toml", "--out", out, "--quiet"});
    EXPECT_EQ(fedbits(machine).code, 0);
    EXPECT_EQ(fedbits({"export", out, "--rounds", out + "-rounds.csv", "--runs", out + "-runs.csv", "--reproducible"}).code, 0);
    return std::pair(read(out + "-rounds.csv"), read(out + "-runs.csv"));
  };
  const auto one = rounds_and_runs("one", "[" + top + ", " + sign + "]", {"--threads", "1"});
  const auto three = rounds_and_runs("three", "[" + top + ", " + sign + "]", {"--threads", "3", "--block", "2"});
  const auto swapped = rounds_and_runs("swapped", "[" + sign + ", " + top + "]", {"--threads", "2", "--materialise"});
  EXPECT_EQ(count_of(one.first, "\n"), 1u + 4 * 6);
  EXPECT_EQ(count_of(one.second, "\n"), 1u + 4);
  EXPECT_EQ(one, three);
  EXPECT_EQ(one, swapped);
  EXPECT_EQ(fedbits({"export", "one", "--runs", "measured.csv"}).code, 0);
  EXPECT_NE(read("measured.csv"), one.second);
}

// Written files are named on stderr, so that standard output contains only the table.
TEST_F(CliTest, ExportsSayWhatTheyWrote) {
  write_small();
  ASSERT_EQ(run_with({}).code, 0);
  const Outcome both = fedbits({"export", "out", "--rounds", "rounds.csv", "--runs", "runs.csv", "--reproducible"});
  EXPECT_EQ(both.code, 0);
  EXPECT_EQ(both.out, "");
  EXPECT_EQ(both.err, "tables written to runs.csv and rounds.csv\n");
  const Outcome mixed = fedbits({"export", "out", "--rounds", "rounds.csv", "--runs", "/dev/stdout", "--reproducible"});
  EXPECT_EQ(mixed.out, read("runs.csv"));
  EXPECT_EQ(mixed.err, "tables written to rounds.csv\n");
  const Outcome piped = fedbits({"export", "out", "--runs", "/dev/stdout", "--reproducible"});
  EXPECT_EQ(piped.err, "");
}

TEST_F(CliTest, ExportsNeedAPlaceAndAFormat) {
  write_small();
  ASSERT_EQ(run_with({}).code, 0);
  const Outcome nowhere = fedbits({"export", "out", "--runs", "nowhere/runs.csv"});
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_THAT(nowhere.err, HasSubstr("nowhere/runs.csv"));
  EXPECT_EQ(fedbits({"export", "out", "--runs", "runs.txt"}).code, 2);
  EXPECT_EQ(fedbits({"export", "out"}).code, 2);
  const Outcome no_store = fedbits({"export", "elsewhere", "--runs", "runs.csv"});
  EXPECT_EQ(no_store.code, 2);
  EXPECT_THAT(no_store.err, HasSubstr("elsewhere"));
  EXPECT_FALSE(exists("runs.csv"));
  EXPECT_FALSE(exists("runs.txt"));
}

}  // namespace
}  // namespace fl
