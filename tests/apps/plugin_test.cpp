// Tests plug-ins from the command line: they are loaded, used in a run and recorded with it, checked, and rejected with one clear line.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string>
#include <tuple>

#include "scenarios/data/sha256.hpp"
#include "scenarios/results/run_store.hpp"
#include "tests/support/binary.hpp"
#include "tests/support/sanitized.hpp"

// Not defined in a build without a shared library, which has no plug-ins.
#if !defined(FL_PLUGINS)
#define FL_PLUGINS ""
#define FL_EXAMPLES "."
#endif

namespace fl {
namespace {

using test::count_of;
using test::Outcome;
using test::Process;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class PluginTest : public test::BinaryTest {
 protected:
  void SetUp() override {
    BinaryTest::SetUp();
    if (std::string(FL_PLUGINS).empty()) GTEST_SKIP() << "this build holds everything in one file";
  }
  static std::string plugin(const std::string& name) { return std::string(FL_PLUGINS) + "/" + name + ".so"; }
  // `fedbits run` of the examples' scenario, with all three.
  [[nodiscard]] Outcome run_examples(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"run", std::string(FL_EXAMPLES) + "/plugins.toml", "--out", "out"};
    for (const char* name : {"nearest_level", "squared_hinge", "big_client"}) {
      arguments.emplace_back("--plugin");
      arguments.push_back(plugin(name));
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return fedbits(arguments);
  }
  // Writes a plug-in with one text in its stamp replaced by another of the same length.
  void write_altered(const std::string& name, const std::string& from, const std::string& to) const {
    std::string bytes = test::read_text(plugin("big_client"));
    const std::size_t at = bytes.find(from, bytes.find(kStampOpening));
    ASSERT_NE(at, std::string::npos);
    ASSERT_EQ(from.size(), to.size());
    write(name, bytes.replace(at, from.size(), to));
  }
  // In two halves: this test is no plug-in.
  const std::string kStampOpening = std::string("fedbits-plug") + "-in{";
};

TEST_F(PluginTest, PartsAreListedBesideTheBuiltInOnes) {
  EXPECT_THAT(fedbits({"list", "partitioners"}).out, Not(HasSubstr("big_client")));
  const Outcome outcome = fedbits({"list", "partitioners", "--plugin", plugin("big_client")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("big_client"), HasSubstr("share = 0.5  (> 0, < 1)"), HasSubstr("contiguous")));
}

TEST_F(PluginTest, ARunUsesThemAndRecordsWhichTheyWere) {
  const Outcome outcome = run_examples();
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("done  rounds 40"));
  // 10 clients, 112 weights of 4 bits and a header of 64 bits, 40 times; fewer where an entropy code of the levels is shorter.
  const std::size_t bits_up = outcome.out.find("bits_up ");
  ASSERT_NE(bits_up, std::string::npos);
  const long bits = std::strtol(outcome.out.c_str() + bits_up + 8, nullptr, 10);
  EXPECT_LT(bits, 204800);
  EXPECT_GT(bits, 204800 / 2);
  const RunRecord record = RunStore::open(folder_ / "out", RunStore::Mode::read).list().at(0);
  ASSERT_EQ(record.plugins.size(), 3u);
  EXPECT_EQ(record.plugins[0], (PluginUse{"nearest_level.so", sha256_of_file(plugin("nearest_level"))}));
  EXPECT_EQ(record.plugins[2].name, "big_client.so");
  EXPECT_THAT(fedbits({"explain", record.run, "--out", "out"}).out, HasSubstr("nearest_level.so sha256 " + record.plugins[0].sha256));
  const Outcome with = fedbits({"explain", record.run, "--out", "out", "--plugin", plugin("nearest_level"), "--plugin", plugin("liar")});
  EXPECT_EQ(with.code, 0);
  EXPECT_THAT(with.err, AllOf(HasSubstr("nearest_level.so: the result was made with this file"),
                              HasSubstr("liar.so: the result was made without it")));
  ASSERT_EQ(fedbits({"export", "out", "--runs", "runs.csv"}).code, 0);
  EXPECT_THAT(read("runs.csv"),
              AllOf(HasSubstr(",split_hash,plugins,configuration\n"), HasSubstr("squared_hinge.so=" + record.plugins[1].sha256)));
}

// A rule of aggregation is one file. Without trimming it is the mean, but for rounding.
TEST_F(PluginTest, ARuleOfAggregationIsAPlugin) {
  write_small();
  EXPECT_THAT(fedbits({"list", "aggregations"}).out, AllOf(HasSubstr("mean"), HasSubstr("coordinate_median")));
  const std::vector<std::string> with = {"--plugin", plugin("trimmed_mean"), "--set", "aggregation.kind=trimmed_mean"};
  const auto loss_of = [&](const std::string& out, std::vector<std::string> more) {
    std::vector<std::string> arguments = {"run", "small.toml", "--out", out};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = fedbits(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return RunStore::open(folder_ / out, RunStore::Mode::read).list().at(0).train_loss;
  };
  std::vector<std::string> untrimmed = with;
  untrimmed.insert(untrimmed.end(), {"--set", "aggregation.trim=0", "--set", "server.average=uniform"});
  const double mean = loss_of("mean", {"--set", "server.average=uniform"}), same = loss_of("same", untrimmed),
               trimmed = loss_of("trimmed", with);
  EXPECT_NEAR(same, mean, 1e-5 * mean);
  EXPECT_NE(trimmed, mean);
  const RunRecord record = RunStore::open(folder_ / "trimmed", RunStore::Mode::read).list().at(0);
  ASSERT_EQ(record.plugins.size(), 1U);
  EXPECT_EQ(record.plugins[0].name, "trimmed_mean.so");
}

// A postprocessor is one file. A limit that no entry reaches changes nothing.
TEST_F(PluginTest, APostprocessorIsAPlugin) {
  write_small();
  EXPECT_THAT(fedbits({"list", "postprocessors"}).out,
              AllOf(HasSubstr("none"), HasSubstr("norm_clipping"), Not(HasSubstr("value_clipping"))));
  EXPECT_THAT(fedbits({"run", "small.toml", "--set", "postprocessor.kind=value_clipping"}).err,
              HasSubstr("unknown postprocessor \"value_clipping\""));
  const Outcome checked = fedbits({"check", "--plugin", plugin("value_clipping")});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
  const auto checksum_of = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"run", "small.toml", "--out", out};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = fedbits(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return RunStore::open(folder_ / out, RunStore::Mode::read).list().at(0).checksum;
  };
  const auto with_limit = [&](const std::string& limit) {
    return std::vector<std::string>{"--plugin", plugin("value_clipping"),      "--set", "postprocessor.kind=value_clipping",
                                    "--set",    "postprocessor.limit=" + limit};
  };
  const std::string plain = checksum_of("plain", {});
  EXPECT_EQ(checksum_of("wide", with_limit("1e6")), plain);
  EXPECT_NE(checksum_of("narrow", with_limit("1e-3")), plain);
  const RunRecord record = RunStore::open(folder_ / "narrow", RunStore::Mode::read).list().at(0);
  ASSERT_EQ(record.plugins.size(), 1U);
  EXPECT_EQ(record.plugins[0].name, "value_clipping.so");
  EXPECT_EQ(fedbits({"run", "small.toml", "--plugin", plugin("value_clipping"), "--set", "postprocessor.kind=value_clipping", "--set",
                     "postprocessor.limit=-1"})
                .code,
            2);
}

// A local optimizer is one file, and it is checked like an operator.
TEST_F(PluginTest, ALocalOptimizerIsAPlugin) {
  write_small();
  EXPECT_THAT(fedbits({"list", "local-optimizers"}).out, AllOf(HasSubstr("sgd"), HasSubstr("adamw"), Not(HasSubstr("lion"))));
  const Outcome checked = fedbits({"check", "--plugin", plugin("lion")});
  EXPECT_EQ(checked.code, 0) << checked.out;
  EXPECT_THAT(checked.out, AllOf(HasSubstr("local_optimizer lion"), HasSubstr("5 checks, 0 failed")));
  for (const char* state : {"round", "client"}) {
    const std::string out = std::string("lion_") + state;
    const Outcome outcome = fedbits({"run", "small.toml", "--out", out, "--plugin", plugin("lion"), "--set", "local.kind=sgd", "--set",
                                     "local.steps=3", "--set", "local.learning_rate=0.01", "--set", "local_optimizer.kind=lion", "--set",
                                     std::string("local_optimizer.state=") + state});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const RunRecord record = RunStore::open(folder_ / out, RunStore::Mode::read).list().at(0);
    ASSERT_EQ(record.plugins.size(), 1U);
    EXPECT_EQ(record.plugins[0].name, "lion.so");
  }
}

// A delivery is one file. A simulated run has no times of arrival for it.
TEST_F(PluginTest, ADeliveryIsAPlugin) {
  write_small();
  EXPECT_THAT(fedbits({"list", "deliveries"}).out, AllOf(HasSubstr("all"), HasSubstr("first"), HasSubstr("deadline")));
  EXPECT_THAT(fedbits({"list", "deliveries", "--plugin", plugin("quorum")}).out, HasSubstr("quorum"));
  const Outcome checked = fedbits({"check", "--plugin", plugin("quorum")});
  EXPECT_EQ(checked.code, 0) << checked.out;
  EXPECT_THAT(checked.out, AllOf(HasSubstr("delivery quorum"), HasSubstr("5 checks, 0 failed")));
  for (const std::string command : {"run", "plan"}) {
    const Outcome refused = fedbits({command, "small.toml", "--plugin", plugin("quorum"), "--set", "delivery.kind=quorum"});
    EXPECT_EQ(refused.code, 2) << command;
    EXPECT_THAT(refused.err, AllOf(HasSubstr("'quorum' decides by times of arrival"), HasSubstr("fedbits serve"))) << command;
  }
}

// Devices, a network and an availability are one file each.
TEST_F(PluginTest, PartsOfTheClockArePlugins) {
  write_small();
  for (const auto& [file, list, role, checks] : std::vector<std::tuple<std::string, std::string, std::string, std::string>>{
           {"two_speeds", "devices", "devices", "2"},
           {"satellite", "networks", "network", "3"},
           {"working_hours", "availabilities", "availability", "2"}}) {
    EXPECT_THAT(fedbits({"list", list, "--plugin", plugin(file)}).out, HasSubstr(file));
    const Outcome checked = fedbits({"check", "--plugin", plugin(file)});
    EXPECT_EQ(checked.code, 0) << checked.out;
    EXPECT_THAT(checked.out, AllOf(HasSubstr(role + " " + file), HasSubstr(checks + " checks, 0 failed")));
    std::vector<std::string> plan = {"plan", "small.toml", "--plugin", plugin(file), "--set", role + ".kind=" + file};
    if (role != "devices") plan.insert(plan.end(), {"--set", "devices.kind=preset"});
    const Outcome planned = fedbits(plan);
    EXPECT_EQ(planned.code, 0) << planned.err;
  }
}

TEST_F(PluginTest, WhatARunDoesNotUseIsNotRecorded) {
  write_small();
  ASSERT_EQ(fedbits({"run", "small.toml", "--out", "out", "--plugin", plugin("big_client")}).code, 0);
  EXPECT_THAT(RunStore::open(folder_ / "out", RunStore::Mode::read).list().at(0).plugins, IsEmpty());
  ASSERT_EQ(fedbits({"export", "out", "--runs", "runs.csv"}).code, 0);
  EXPECT_THAT(read("runs.csv"), Not(HasSubstr("plugins")));
}

TEST_F(PluginTest, AStoredRunOfAnotherBuildIsRepeated) {
  std::filesystem::create_directory(folder_ / "mine");
  std::filesystem::copy_file(plugin("big_client"), folder_ / "mine/big_client.so");
  write_small();
  const std::vector<std::string> command = {"run",      "small.toml",        "--out", "out", "--set", "partition.kind=big_client",
                                            "--plugin", "mine/big_client.so"};
  ASSERT_EQ(fedbits(command).code, 0);
  EXPECT_THAT(fedbits(command).err, Not(HasSubstr("repeated")));
  write("mine/big_client.so", read("mine/big_client.so") + "another build");
  const Outcome again = fedbits(command);
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.err, HasSubstr("made by another build of its plug-ins: it is repeated"));
  const RunRecord record = RunStore::open(folder_ / "out", RunStore::Mode::read).list().at(0);
  EXPECT_EQ(record.plugins.at(0).sha256, sha256_of_file(folder_ / "mine/big_client.so"));
}

TEST_F(PluginTest, AScenarioOfAMissingPluginNamesThePart) {
  const Outcome outcome = fedbits({"run", std::string(FL_EXAMPLES) + "/plugins.toml", "--out", "out"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("unknown model \"squared_hinge\""), HasSubstr("unknown compressor \"nearest_level\"")));
  EXPECT_FALSE(exists("out"));
}

TEST_F(PluginTest, WhatCannotBeLoadedIsRefusedInOneLine) {
  write("text.so", "not a shared object\n");
  write("empty.so", "");
  write_altered("library.so", "libstdc++ ", "libunknown");
  const std::string bytes = test::read_text(plugin("big_client"));
  write("cut.so", bytes.substr(0, bytes.find(kStampOpening) + 200));
  std::filesystem::create_directory(folder_ / "folder.so");
  ASSERT_EQ(::mkfifo((folder_ / "pipe.so").c_str(), 0600), 0);
  write("endless.so",
        "\x7f"
        "ELF fedbits-plug"
        "-in{" +
            std::string(5000, 'x') + "}");
  const std::vector<std::pair<std::string, std::string>> refused = {
    {"missing.so", "no such file"},
    {"folder.so", "it is a folder; an ordinary file is needed here"},
    {"pipe.so", "it is a pipe; an ordinary file is needed here"},
    {"endless.so", "not a plug-in of fedbits"},
    {"text.so", "not a shared object"},
    {"empty.so", "not a shared object"},
    {FL_BINARY, "not a plug-in of fedbits"},
    {"library.so", "built for compiler ABI libunknown"},
#if !FL_SANITIZED        // which reports the crash at length
    {"cut.so", "it c"},  // cannot be loaded, or crashes in the attempt
#endif
    {plugin("throws"), "it threw while it was loaded: no licence was found"},
    {plugin("crashes"), "it crashed while it was loaded: Killed"},
    {plugin("exits"), "it ended the process while it was loaded"},
    {plugin("leaves"), "it ended the process while it was loaded"},
    {plugin("loud"), "it threw while it was loaded: .[2J.[31mred..over"},
    {plugin("duplicate"), "it threw while it was loaded: two parts register as partitioner \"contiguous\""},
    {plugin("empty"), "it registers no part"},
    {plugin("no_role"),
     "it threw while it was loaded: part \"half\": unknown role \"compresor\"; did you mean \"compressor\"? known: "
     "aggregation, asynchronous, availability, compressor, data, delivery, devices, feedback, layer, local_optimizer, local_update, "
     "measure, model, "
     "network, participation, partitioner, postprocessor, server_optimizer\n"},
  };
  write_small();
  for (const auto& [file, reason] : refused)
    for (const std::vector<std::string>& command :
         std::vector<std::vector<std::string>>{{"list"}, {"check"}, {"run", "small.toml", "--out", "out"}}) {
      std::vector<std::string> arguments = command;
      arguments.insert(arguments.end(), {"--plugin", file});
      const Outcome outcome = fedbits(arguments);
      EXPECT_EQ(outcome.code, 2) << file;
      EXPECT_THAT(outcome.err, HasSubstr("fedbits: plug-in " + file + ": " + reason));
      EXPECT_EQ(count_of(outcome.err, "\n"), 1u) << outcome.err;
      EXPECT_THAT(outcome.out, IsEmpty());
    }
  EXPECT_FALSE(exists("out"));
}

// One that never comes back is killed with what it started; its process cannot say that all is well in its place.
TEST_F(PluginTest, WhatHangsIsRefusedWhenTheTimeIsOver) {
  for (const auto& [name, stage] :
       {std::pair("hangs", "while it was loaded"), std::pair("idle_part", "while its partitioner idle was made")}) {
    Process process(folder_, {"list", "--plugin", plugin(name)}, test::Surroundings{.environment = {{"FEDBITS_PLUGIN_SECONDS", "1.5"}}});
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err, "fedbits: plug-in " + plugin(name) + ": it was not done after 1.500 s, " + stage +
                               "; if it only needs longer, set FEDBITS_PLUGIN_SECONDS\n");
  }
  Process process(folder_, {"list", "--plugin", plugin("hangs")}, test::Surroundings{.environment = {{"FEDBITS_PLUGIN_SECONDS", "soon"}}});
  EXPECT_THAT(process.wait().err, HasSubstr("FEDBITS_PLUGIN_SECONDS: must be a number of seconds above 0, is \"soon\""));
}

// Returns the number of the interface as text of as many digits, which a stamp can hold in its place.
std::string one_less(const std::string& number) {
  const std::string less = std::to_string(std::stoi(number) - 1);
  return std::string(number.size() - less.size(), '0') + less;
}

TEST_F(PluginTest, AnotherVersionOfTheInterfaceIsRefused) {
  const std::string bytes = test::read_text(plugin("big_client"));
  const std::size_t begin = bytes.find('|', bytes.find(kStampOpening)) + 1;
  const std::string number = bytes.substr(begin, bytes.find('|', begin) - begin), before = one_less(number);
  write_altered("interface.so", "|" + number + "|", "|" + before + "|");
  const Outcome outcome = fedbits({"list", "--plugin", "interface.so"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "fedbits: plug-in interface.so: built for version " + before +
                             " of the plug-in interface (fedbits 0.1.0), but this is version " + number +
                             " (fedbits 0.1.0); build it again\n");
}

TEST_F(PluginTest, AnotherVersionOfFedbitsWithTheSameInterfaceIsLoaded) {
  write_altered("version.so", "0.1.0|", "0.0.9|");
  const Outcome outcome = fedbits({"list", "partitioners", "--plugin", "version.so"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("big_client"));
}

TEST_F(PluginTest, AllProblemsAreToldAtOnceAndAFileTwiceIsOneFile) {
  EXPECT_EQ(count_of(fedbits({"list", "--plugin", "a.so", "--plugin", "b.so"}).err, "no such file"), 2u);
  EXPECT_EQ(fedbits({"list", "--plugin", plugin("big_client"), "--plugin", plugin("big_client")}).code, 0);
}

TEST_F(PluginTest, TheExamplesPassTheirChecks) {
  const Outcome outcome =
      fedbits({"check", "--plugin", plugin("nearest_level"), "--plugin", plugin("squared_hinge"), "--plugin", plugin("big_client")});
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("compressor nearest_level\n"), HasSubstr("model squared_hinge\n"),
                                 HasSubstr("partitioner big_client\n"), HasSubstr(" checks, 0 failed\n"), Not(HasSubstr("FAILED"))));
}

TEST_F(PluginTest, ALiarIsFoundOutAndNamed) {
  const Outcome outcome = fedbits({"check", "--plugin", plugin("liar")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("pointwise: FAILED"), HasSubstr("liar, float32, scope model, "), HasSubstr("(delta) is "),
                    HasSubstr("residual: FAILED"), HasSubstr("threw: three clients are one too many"), HasSubstr("untouched: ok")));
}

// Its contract holds in the first round and is broken in the second.
TEST_F(PluginTest, AContractThatBreaksInARunIsToldWhereTheRunEndsAndInTheReport) {
  write_small(
      "[sweep]\nseeds = 2\n[[sweep.axis]]\nkey = 'compressor.up'\nvalues = [{ label = 'top', kind = 'top_k', ratio = 0.5 }, "
      "{ label = 'ours', kind = 'keeps_once' }]\n");
  const std::vector<std::string> command = {"run",      "small.toml",         "--out", "out",
                                            "--plugin", plugin("keeps_once"), "--set", "evaluate.every=1"};
  const std::string broken = "delta 0 in round 2, stated 0.75";
  const Outcome both = fedbits(command);
  EXPECT_EQ(both.code, 0) << both.err;
  EXPECT_THAT(both.out, HasSubstr("compressor.up=ours  contract broken in 2 of 2 runs; seed 1: " + broken + "\n"));
  EXPECT_THAT(both.out, Not(HasSubstr("top  contract broken")));
  std::vector<std::string> sweep = command;
  sweep[0] = "sweep";
  sweep[3] = "swept";
  sweep.emplace_back("-v");
  const Outcome swept = fedbits(sweep);
  EXPECT_THAT(swept.out, HasSubstr("compressor.up=ours  contract broken in 2 of 2 runs; seed 1: " + broken + "\n"));
  EXPECT_EQ(count_of(swept.err, "  contract broken: " + broken), 2u) << swept.err;
  const Outcome text = fedbits({"report", "out", "--text"});
  EXPECT_THAT(text.out, HasSubstr("note: ours: contract broken in 2 of 2 runs; seed 1: " + broken));
  ASSERT_EQ(fedbits({"report", "out", "-o", "report.html"}).code, 0);
  EXPECT_THAT(read("report.html"), HasSubstr("\"broken\":\"contract broken in 2 of 2 runs; seed 1: " + broken + "\""));
  // Where nothing is measured nothing is claimed; the last round is always measured.
  std::vector<std::string> one = command;
  one.back() = "rounds=1";
  one[3] = "kept";
  EXPECT_THAT(fedbits(one).out, Not(HasSubstr("broken")));
}

TEST_F(PluginTest, ChecksOfBuiltInPartsAndWrongNames) {
  const Outcome one = fedbits({"check", "top_k", "--only", "bits"});
  EXPECT_EQ(one.code, 0);
  EXPECT_THAT(one.out, HasSubstr("1 checks, 0 failed"));
  const Outcome unchecked = fedbits({"check", "ef14"});
  EXPECT_EQ(unchecked.code, 2);
  EXPECT_THAT(unchecked.err, HasSubstr("there are no checks for this role: feedback ef14 (roles with checks: availability, compressor, "
                                       "delivery, devices, local_optimizer, measure, model, network, partitioner, postprocessor)"));
  EXPECT_THAT(unchecked.out, Not(HasSubstr("0 failed")));
  const Outcome mixed = fedbits({"check", "top_k", "ef14", "--only", "bits"});
  EXPECT_EQ(mixed.code, 2) << "what was not checked has not passed";
  EXPECT_THAT(mixed.out, HasSubstr("1 checks, 0 failed"));
  EXPECT_EQ(fedbits({"check", "top_k", "--set", "k=3", "--only", "bits"}).code, 0);
  for (const auto& [arguments, words] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"check"}, "nothing to check"},
           {{"check", "topk"}, "did you mean 'top_k'?"},
           {{"check", "qsgd", "--set", "levels=0"}, "--set levels=0: qsgd.levels: must be >= 1, <= 1048576, is 0"},
           {{"check", "qsgd", "--set", "level=2"}, "did you mean \"levels\"?"},
           {{"check", "qsgd", "--set", "levels"}, "must have the form key=value"},
           {{"check", "top_k", "--only", "bitz"}, "did you mean 'bits'?"}}) {
    const Outcome outcome = fedbits(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(words));
  }
}

}  // namespace
}  // namespace fl
