// Tests mistakes of new users: a scenario reports all its errors at once, no folder is left behind, and files are looked for in several
// places.
#include <gmock/gmock.h>

#include <fstream>

#include "tests/support/binary.hpp"

namespace fl {
namespace {

using test::count_of;
using test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class MistakesTest : public test::BinaryTest {
 protected:
  // A folder for scenarios, another with data, beside the working folder.
  void make_folders() const {
    for (const char* name : {"study", "sets"}) std::filesystem::create_directories(folder_ / name);
  }
  [[nodiscard]] static std::string rows(int count) {
    std::string text = "x,y,label\n";
    for (int i = 0; i < count; ++i) text += std::to_string(i % 7) + "," + std::to_string(i % 5) + "," + std::to_string(i % 2) + "\n";
    return text;
  }
  static constexpr const char* kOnTable =
      "name = 'paths'\nrounds = 2\n[data]\npath = 'rows.csv'\n[partition]\nclients = 2\n[model]\nkind = 'logistic_regression'\n"
      "[local]\nlearning_rate = 0.1\n";
  // The parts of the line that `explain` and the log say nothing about: how many rows were read.
  [[nodiscard]] std::string rows_read() const {
    const Outcome outcome = fedbits({"plan", "study/paths.toml", "--data", "sets", "--split-file", "split.csv"});
    return outcome.code == 0 ? std::to_string(count_of(read("split.csv"), "\n")) : outcome.err;
  }
};

TEST_F(MistakesTest, AllErrorsOfAScenarioComeAtOnce) {
  write("wrong.toml",
        "name = 'wrong'\nrounds = 0\n[data]\nname = 'fmnist2'\ntest = 'nothing.t'\n[model]\nkind = 'mlp'\nl2 = '1/L'\n[local]\n"
        "kind = 'sgd'\nlearning_rate = '1/(L+mu)'\nlr = 0.1\n[start]\nkind = 'file'\npath = 'start.npy'\n[participation]\nkind = 'trace'\n"
        "path = 'trace.csv'\n");
  for (const std::string command : {"run", "sweep", "plan"}) {
    const Outcome outcome = fedbits({command, "wrong.toml"});
    EXPECT_EQ(outcome.code, 2);
    for (const std::string line :
         {"wrong.toml:2:10: rounds: must be >= 1", "wrong.toml:4:8: data.name: the data set \"fmnist2\" was not found",
          "wrong.toml:5:8: data.test: there is no data file or folder \"nothing.t\"; looked for nothing.t, each also with .gz",
          "wrong.toml:8:6: model.l2: \"1/L\" needs the smoothness constant L, which is not known for this model, model.kind = \"mlp\"; "
          "write "
          "a number, such as l2 = 0.001",
          "wrong.toml:11:17: local.learning_rate: \"1/(L+mu)\" needs the smoothness constant L",
          "wrong.toml:12:1: local.lr: unknown key; did you mean \"learning_rate\"?",
          "wrong.toml:15:8: start.path: there is no file 'start.npy'; looked for start.npy",
          "wrong.toml:18:8: participation.path: there is no file 'trace.csv'"})
      EXPECT_THAT(outcome.err, HasSubstr(line)) << command;
    EXPECT_EQ(count_of(outcome.err, "\n"), 8u) << outcome.err;
    EXPECT_FALSE(exists("fedbits-out"));
  }
}

TEST_F(MistakesTest, EveryValueOfAnAxisIsLookedAt) {
  write_small(
      "[[sweep.axis]]\nkey = 'data.name'\nvalues = ['nothing1', 'mushrooms', 'nothing2']\n"
      "[[sweep.axis]]\nkey = 'local.learning_rate'\nvalues = ['1/L', 0.1, '2/(L+mu)', 'theory']\n"
      "[[sweep.axis]]\nkey = 'model.kind'\nvalues = ['logistic_regression', 'mlp']\n");
  const Outcome outcome = fedbits({"sweep", "small.toml"});
  EXPECT_EQ(outcome.code, 2);
  for (const std::string text :
       {"small.toml:15:11: data.name: the data set \"nothing1\"", "small.toml:15:36: data.name: the data set \"nothing2\"",
        "small.toml:18:11: local.learning_rate: \"1/L\" needs", "small.toml:18:23: local.learning_rate: \"2/(L+mu)\"",
        "small.toml:18:35: local.learning_rate: \"theory\""})
    EXPECT_THAT(outcome.err, HasSubstr(text));
  EXPECT_EQ(count_of(outcome.err, "\n"), 5u) << outcome.err;
  EXPECT_FALSE(exists("fedbits-out"));
}

// A network has no smoothness constant: rules over it that tuning would try are reported with the file's other errors. Methods of other
// models and rules over other names are not affected.
TEST_F(MistakesTest, TunedRulesThatTheModelHasNoConstantForAreToldWithTheOtherErrors) {
  write_small(
      "bogus = 1\n[[sweep.axis]]\nkey = 'model.kind'\nvalues = ['logistic_regression', 'mlp']\n[sweep.tune]\n"
      "keys = [{key = 'local.learning_rate', values = [0.1, '1/L', '1/(n*d)', '2/(L+mu)']}, {key = 'model.l2', values = [0, 'L/100']}]\n");
  for (const std::string command : {"sweep", "plan"}) {
    const Outcome outcome = fedbits({command, "small.toml"});
    EXPECT_EQ(outcome.code, 2);
    for (const std::string text :
         {"bogus: unknown key", "sweep.tune.values: local.learning_rate: \"1/L\" needs the smoothness constant L, which is not known",
          "sweep.tune.values: local.learning_rate: \"2/(L+mu)\" needs", "sweep.tune.values: model.l2: \"L/100\" needs"})
      EXPECT_THAT(outcome.err, HasSubstr(text)) << command;
    EXPECT_EQ(count_of(outcome.err, "\n"), 4u) << outcome.err;
    EXPECT_FALSE(exists("fedbits-out"));
  }
}

TEST_F(MistakesTest, APartOfOnesOwnIsLookedForAmongPlugins) {
  write_small("[compressor.up]\nkind = 'relative_threshold'\n");
  const std::string unlike = fedbits({"plan", "small.toml"}).err;
  EXPECT_THAT(
      unlike,
      HasSubstr("unknown compressor \"relative_threshold\"; a part of your own needs --plugin FILE.so; known: absolute_low_rank, "));
  const std::string near = fedbits({"plan", "small.toml", "--set", "compressor.up.kind=top_kk"}).err;
  EXPECT_THAT(near, HasSubstr("unknown compressor \"top_kk\"; did you mean \"top_k\"? known: "));
  EXPECT_THAT(fedbits({"check", "relative_threshold"}).err, HasSubstr("a part of your own needs --plugin FILE.so"));
}

TEST_F(MistakesTest, WhatDataAloneTellIsToldTogether) {
  write("wrong.toml",
        "name = 'wrong'\nrounds = 5\n[data]\nname = 'mushrooms'\nrows = 60\n[partition]\nkind = 'n_classes'\nclasses = 5\nclients = 4\n"
        "[model]\nkind = 'char_lstm'\n[participation]\nabsent = 'drop'\n[server]\naverage = 'normalised'\n[stop]\naccuracy = 0.9\n");
  const Outcome outcome = fedbits({"run", "wrong.toml"});
  EXPECT_EQ(outcome.code, 2);
  for (const std::string key : {"partition", "model.kind: ", "participation.absent: ", "server.average: ", "stop.accuracy: "})
    EXPECT_THAT(outcome.err, testing::ContainsRegex("wrong.toml:[0-9]+:[0-9]+: " + key));
  EXPECT_EQ(count_of(outcome.err, "\n"), 5u) << outcome.err;
  EXPECT_FALSE(exists("fedbits-out"));
  // The axis goes over what fits and what does not: each combination has its error.
  write_small("[[sweep.axis]]\nkey = 'model.kind'\nvalues = ['char_lstm', 'logistic_regression', 'ncf', 'lenet5']\n");
  const Outcome swept = fedbits({"sweep", "small.toml"});
  EXPECT_EQ(swept.code, 2);
  EXPECT_EQ(count_of(swept.err, "model.kind: "), 3u) << swept.err;
}

// Numbers of characters are no quantities, and images have no vocabulary.
TEST_F(MistakesTest, ANetworkThatCannotReadItsDataSaysWhatCan) {
  write("input.txt", "to be or not to be that is the question whether tis nobler in the mind to suffer the slings and arrows of it");
  write("text.toml",
        "name = 'text'\nrounds = 2\n[data]\npath = 'input.txt'\nformat = 'text'\nsequence = 5\n[partition]\nclients = 2\n[model]\n"
        "kind = 'mlp'\n[local]\nkind = 'sgd'\n");
  const Outcome text = fedbits({"run", "text.toml"});
  EXPECT_EQ(text.code, 2);
  EXPECT_THAT(text.err, AllOf(HasSubstr("text.toml:"), HasSubstr("model.kind: data set \"input.txt\" is text"), HasSubstr("char_lstm")));
  EXPECT_EQ(fedbits({"plan", "text.toml", "--set", "model.kind=char_lstm", "--seconds", "0.01"}).code, 0);
  write_small("[local]\nkind = 'sgd'\n");
  EXPECT_THAT(fedbits({"run", "small.toml", "--set", "model={kind='char_lstm'}"}).err,
              HasSubstr("the data have no vocabulary, which text has"));
}

TEST_F(MistakesTest, ATunedSweepThatIsRefusedLeavesNoFolder) {
  write_small(
      "[local]\nkind = 'sgd'\n[compressor.up]\nkind = 'identity'\n[feedback.up]\nkind = 'scaffold'\n"
      "[sweep.tune]\nkey = 'local.learning_rate'\nvalues = [0.1, 0.2]\nat = 'rounds'\n");
  for (const std::string command : {"sweep", "run"}) {
    const Outcome outcome = fedbits({command, "small.toml", "--set", "rounds=40"});
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("small.toml:"));
    EXPECT_FALSE(exists("fedbits-out")) << command;
  }
}

TEST_F(MistakesTest, DataAreLookedForBesideTheScenarioFirst) {
  make_folders();
  write("study/paths.toml", kOnTable);
  const std::string nowhere = rows_read();
  EXPECT_THAT(nowhere,
              HasSubstr("study/paths.toml:4:8: data.path: there is no data file or folder \"rows.csv\"; looked for study/rows.csv, "
                        "rows.csv, sets/rows.csv, each also with .gz"));
  write("sets/rows.csv", rows(20));
  const std::string in_sets = rows_read();
  write("rows.csv", rows(30));
  const std::string in_working_folder = rows_read();
  write("study/rows.csv", rows(40));
  const std::string beside = rows_read();
  ASSERT_LT(std::stoi(in_sets), 30) << in_sets;
  EXPECT_EQ(std::stoi(in_working_folder) - std::stoi(in_sets), 10);
  EXPECT_EQ(std::stoi(beside) - std::stoi(in_working_folder), 10);
}

// The other keys that name a file: each is looked for in the same places.
TEST_F(MistakesTest, EveryInputIsLookedForInTheSamePlaces) {
  make_folders();
  std::string split = "client\n", start;
  for (int i = 0; i < 20; ++i) split += std::to_string(i % 2) + "\n";
  for (int i = 0; i < 3; ++i) start += "0\n";
  const std::vector<std::tuple<std::string, std::string, std::string>> inputs = {
      {"start.path", "[start]\nkind = 'file'\npath = 'input'\n", start},
      {"evaluate.optimum", "[evaluate]\noptimum = 'input'\n", start},
      {"participation.path", "[participation]\nkind = 'trace'\npath = 'input'\n", "round,client\n1,0\n2,1\n"},
      {"local.sample_file", "sample_file = 'input'\nbatch = 1\n", "0 0\n1 1\n"},
      {"data.test", "", rows(10)}};
  for (const auto& [key, table, text] : inputs) {
    std::string scenario = kOnTable;
    if (key == "data.test") scenario.insert(scenario.find("[partition]"), "test = 'input'\nformat = 'csv'\n");
    write("study/paths.toml", scenario + table);
    write("study/rows.csv", rows(20));
    const std::vector<std::string> plan = {"plan", "study/paths.toml", "--data", "sets", "--seconds", "0.01"};
    const Outcome nowhere = fedbits(plan);
    EXPECT_EQ(nowhere.code, 2);
    EXPECT_THAT(nowhere.err, AllOf(HasSubstr(key + ": there is no "), HasSubstr("looked for study/input, input, sets/input")));
    for (const std::string place : {"sets/input", "input", "study/input"}) {
      write(place, text);
      const Outcome found = fedbits(plan);
      EXPECT_EQ(found.code, 0) << key << " at " << place << "\n" << found.err;
      write(place, "no such numbers");  // the one before is not read again
    }
    EXPECT_EQ(fedbits(plan).code, 2) << key;
    for (const std::string place : {"sets/input", "input", "study/input"}) std::filesystem::remove(folder_ / place);
  }
}

TEST_F(MistakesTest, TheHashDoesNotKnowWhereAFileWasFound) {
  make_folders();
  write("study/paths.toml", kOnTable);
  const auto hash = [&] { return fedbits({"sweep", "study/paths.toml", "--list", "--data", "sets"}).out; };
  write("sets/rows.csv", rows(20));
  const std::string in_sets = hash();
  write("study/rows.csv", rows(20));
  EXPECT_EQ(hash(), in_sets);
  EXPECT_THAT(in_sets, HasSubstr("pending"));
  EXPECT_EQ(fedbits({"run", "study/paths.toml", "--data", "sets", "--out", "out"}).code, 0);
  std::filesystem::remove(folder_ / "study/rows.csv");
  const std::string again = fedbits({"sweep", "study/paths.toml", "--list", "--data", "sets", "--out", "out"}).out;
  EXPECT_THAT(again, AllOf(HasSubstr(in_sets.substr(0, 16)), HasSubstr("done")));
}

TEST_F(MistakesTest, ListShowsOnePart) {
  const Outcome one = fedbits({"list", "compressors", "top_k"});
  EXPECT_EQ(one.code, 0);
  EXPECT_THAT(one.out, AllOf(HasSubstr("  top_k ["), HasSubstr("ratio = 0.01"), HasSubstr("bound on its error at d = 1,000: contraction"),
                             HasSubstr("its message at d = 1,000: "), HasSubstr("source: "),
                             HasSubstr("      beside its options: bucket, exclude, scope, unit in [compressor.up] ("),
                             HasSubstr("example: compressor.up = { kind = \"top_k\", ratio = 0.01")));
  EXPECT_THAT(one.out, Not(HasSubstr("random_k")));
  EXPECT_THAT(fedbits({"list", "servers", "fedavg"}).out, HasSubstr("  sgd ["));
  EXPECT_THAT(fedbits({"list", "layers", "dense"}).out, HasSubstr("layers = [\"dense(units=10)\"]"));
  for (const auto& [words, hint] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"list", "compressors", "topk"}, "did you mean \"top_k\"?"},
           {{"list", "compressors", "ef21"}, "did you mean kind = \"ef21\" (in [feedback.up])?"},
           {{"list", "compresors"}, "did you mean 'compressors'?"},
           {{"list", "top_k"}, "did you mean 'fedbits list compressors top_k'?"},
           {{"list", "fedadam"}, "did you mean 'fedbits list servers adam'?"},
           {{"list", "data", "mnist"}, "`fedbits data show mnist`"},
           {{"data", "show", "fmnist"}, "did you mean \"fashion-mnist\"?"},
           {{"data", "fetch", "cifar"}, "did you mean \"cifar10\"?"},
           {{"data", "show", "femnist"}, "EMNIST's files"}}) {
    const Outcome outcome = fedbits(words);
    EXPECT_EQ(outcome.code, 2) << hint;
    EXPECT_THAT(outcome.err, HasSubstr(hint));
  }
}

}  // namespace
}  // namespace fl
