// Tests the texts that the command line generates for shells and for man, and the log of a run.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "fl_core/config/registry.hpp"
#include "scenarios/results/run_store.hpp"
#include "tests/support/binary.hpp"

namespace fl {
namespace {

using test::count_of;
using test::Outcome;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

class TextsTest : public test::BinaryTest {
 protected:
  // Returns the commands with options. Some builds leave out those of the network.
  [[nodiscard]] std::vector<std::string> commands() const {
    std::vector<std::string> names{"run",    "sweep",   "merge", "plan", "report", "export",
                                   "verify", "explain", "model", "list", "data",   "check"};
    for (const char* name : {"serve", "join", "certs"})
      if (fedbits({name, "--help"}).code == 0) names.emplace_back(name);
    return names;
  }
  // The exit code of a shell that reads a file in the test's folder; -1 where the shell is not installed.
  // Completion asks the program that is in PATH.
  [[nodiscard]] static std::string programs() { return std::filesystem::path(FL_BINARY).parent_path().string(); }
  [[nodiscard]] int in_shell(const std::string& shell, const std::string& script) const {
    if (std::system(("command -v " + shell + " >/dev/null").c_str()) != 0) return -1;
    write("script", script);
    const int status =
        std::system(("cd " + folder_.string() + " && PATH=" + programs() + ":$PATH " + shell + " script >answer 2>&1").c_str());
    return WEXITSTATUS(status);
  }
};

TEST_F(TextsTest, HiddenCommandsAreNotListed) {
  EXPECT_THAT(fedbits({"--help"}).out, Not(HasSubstr("completion")));
  const Outcome wrong = fedbits({"completion", "powershell"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("must be one of bash, zsh, fish"));
}

TEST_F(TextsTest, WordsThatAreNotKnownHaveTheNearestNameBesideThem) {
  for (const auto& [arguments, words] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"swep", "study.toml"}, "there is no command 'swep'; did you mean sweep? Commands: run, sweep, "},
           {{"sweep", "study.toml", "--thread", "2"}, "fedbits sweep: there is no option --thread; did you mean --threads?\n"},
           {{"run", "study.toml", "--otu=x"}, "fedbits run: there is no option --otu; did you mean --out?\n"},
           {{"export", "out", "more"}, "fedbits export: unexpected argument 'more'\n"},
           {{"--verson"}, "there is no option --verson"},
           {{"run", "study.toml", "--lr", "0.1"}, "there is no option --lr; it is a key of the scenario: --set local.learning_rate=0.1\n"},
           {{"run", "study.toml", "--seeds", "3"}, "there is no option --seeds; it is a key of the scenario: --set sweep.seeds=3\n"},
           {{"sweep", "study.toml", "--rounds=9"}, "there is no option --rounds; it is a key of the scenario: --set rounds=9\n"},
           {{"plan", "study.toml", "--clients", "9"}, "it is a key of the scenario: --set partition.clients=9\n"},
           {{"run", "study.toml", "--partition.alpha", "1"}, "it is a key of the scenario: --set partition.alpha=1\n"},
           {{"run", "study.toml", "--output", "x"}, "there is no option --output; did you mean --out?\n"},
           {{"run", "study.toml", "--gpu"}, "there is no option --gpu; did you mean --device cuda?\n"},
           {{"run", "study.toml", "--dp"}, "there is no option --dp; fedbits has no privacy mechanism"},
           {{"run"}, "FILE is required"},
           {{"plan", "study.toml", "--seconds", "-1"}, "--seconds: Value -1 not in range 0.001"}}) {
    const Outcome outcome = fedbits(arguments);
    EXPECT_EQ(outcome.code, 2) << words;
    EXPECT_THAT(outcome.err, HasSubstr(words));
    EXPECT_EQ(outcome.out, "");
  }
}

// The words that people type first, and what leads them on.
TEST_F(TextsTest, WordsOfTheFieldLeadToThoseOfFedbits) {
  write_small("[sweep]\nseeds = 2\n");
  ASSERT_EQ(run_with({}).code, 0);
  for (const auto& [arguments, words] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"run", "small"}, "small: there is no such scenario file; did you mean small.toml?\n"},
           {{"plan", "smal.toml"}, "there is no such scenario file; did you mean small.toml?\n"},
           {{"run", "small.toml", "--device", "gpu"}, "--device: must be one of cpu, cuda, auto; is 'gpu'; did you mean 'cuda'?\n"},
           {{"report", "out", "--measure", "accuracy"},
            "'accuracy' is not a measured column of rounds.csv; did you mean 'test_accuracy'? (known: "},
           {{"run", "small.toml", "--set", "optimizer=adam"}, "adam, yogi and adagrad are a server's: server.kind = \"adam\""},
           {{"run", "small.toml", "--set", "privacy.epsilon=1"},
            "fedbits has no privacy mechanism: neither differential privacy nor secure aggregation"},
           {{"run", "small.toml", "--set", "async=true"}, "did you mean \"asynchronous\"?"},
           {{"run", "small.toml", "--set", "sweep.axis=[{key = 'compressor.up', values = ['top_k', 'sign']}]"},
            "and as a value of an axis { label = \"top_k\", kind = \"top_k\" }"}}) {
    const Outcome outcome = fedbits(arguments);
    EXPECT_EQ(outcome.code, 2) << words;
    EXPECT_THAT(outcome.err, HasSubstr(words));
  }
}

TEST_F(TextsTest, TheHelpNamesWhatAnOptionTakes) {
  const std::string help = fedbits({"sweep", "--help"}).out;
  for (const std::string words : {"--set KEY=VALUE", "--memory SIZE", "--threads N=1", "--shard I/N"}) EXPECT_THAT(help, HasSubstr(words));
  for (const std::string& command : commands())
    for (const std::string word : {" TEXT", " UINT", " INT", " FLOAT"})
      EXPECT_THAT(fedbits({command, "--help"}).out, Not(HasSubstr(word))) << command;
}

// Names and keys come from files of others.
TEST_F(TextsTest, ControlCharactersNeverReachTheTerminal) {
  const std::string escape = "\x1b]0;owned\x07\xc2\x9b\u202e";
  write("evil.toml", "name = \"\\u001b]0;owned\\u0007\\u009b2J\\u202e\"\nrounds = 1\n\"\\u001b[2J\" = 1\n");
  write("named.toml",
        "name = \"\\u001b]0;owned\\u0007\\u009b2J\\u202e\"\nrounds = 1\n[data]\nkind = 'quadratics'\nclients = 2\nzeta_sq = "
        "1\n[partition]\nkind = 'natural'\nclients = 2\n[model]\nkind = 'quadratic'\n[local]\nlearning_rate = 0.1\n[sweep]\n"
        "seeds = 2\n");
  const std::vector<std::vector<std::string>> commands = {{"run", "evil.toml"},
                                                          {"run", "named.toml", "--out", "out"},
                                                          {"sweep", "named.toml", "--out", "out", "--again"},
                                                          {"report", "out", "--text"},
                                                          {"plan", "named.toml"},
                                                          {"run", escape},
                                                          {"run", "named.toml", "--set", escape + "=1"},
                                                          {"list", escape},
                                                          {escape}};
  for (const auto& command : commands) {
    const Outcome outcome = fedbits(command);
    for (const std::string& text : {outcome.out, outcome.err})
      for (const char* bad : {"\x1b", "\x07", "\xc2\x9b", "\u202e"})
        EXPECT_EQ(text.find(bad), std::string::npos) << command.front() << " printed it raw: " << text;
  }
  EXPECT_THAT(fedbits({"run", "evil.toml"}).err, HasSubstr("\\x1b[2J"));
}

TEST_F(TextsTest, BashCompletes) {
  write("fedbits.bash", fedbits({"completion", "bash"}).out);
  ASSERT_EQ(in_shell("bash",
                     "source fedbits.bash\n"
                     "ask() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _fedbits; echo \"${COMPREPLY[@]}\"; }\n"
                     "ask fedbits ex\nask fedbits run --plu\nask fedbits list --set\nask fedbits run scen\nask fedbits run --vers\n"
                     "ask fedbits list --device ''\nask fedbits list --device cuda compr\n"),
            0);
  EXPECT_EQ(read("answer"), "export explain\n--plugin\n\n\n\n\ncompressors\n");
}

// Parts and data sets come from the registry and the list of known data.
TEST_F(TextsTest, BashCompletesPartsAndDataSets) {
  write("fedbits.bash", fedbits({"completion", "bash"}).out);
  ASSERT_EQ(in_shell("bash",
                     "source fedbits.bash\n"
                     "ask() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _fedbits; echo \"${COMPREPLY[@]}\"; }\n"
                     "ask fedbits list comp\nask fedbits list compressors top\nask fedbits list feedbacks ef21\nask fedbits list data syn\n"
                     "ask fedbits data f\nask fedbits data fetch fash\nask fedbits data show mnist cifar\nask fedbits check top\n"
                     "ask fedbits list servers ''\n"),
            0);
  std::string servers;
  for (const std::string& name : Registry::instance().names("server_optimizer")) servers += (servers.empty() ? "" : " ") + name;
  EXPECT_EQ(
      read("answer"),
      "compressors\ntop_k\nef21 ef21_normalised ef21_p ef21_plus ef21_sgdm\nsynthetic\nfetch\nfashion-mnist\ncifar10 cifar100\ntop_k\n" +
          servers + "\n");
}

TEST_F(TextsTest, BashCompletesShardsAndRenewals) {
  if (fedbits({"join", "--help"}).code != 0) GTEST_SKIP() << "this fedbits has no network";
  write("fedbits.bash", fedbits({"completion", "bash"}).out);
  ASSERT_EQ(in_shell("bash",
                     "source fedbits.bash\n"
                     "ask() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _fedbits; echo \"${COMPREPLY[@]}\"; }\n"
                     "ask fedbits data s\nask fedbits data shard ''\nask fedbits join --sh\nask fedbits certs re\n"),
            0);
  EXPECT_EQ(read("answer"), "shard show\n\n--shard\nrenew revoke\n");
}

TEST_F(TextsTest, FishAndZshAcceptTheirs) {
  write("fedbits.fish", fedbits({"completion", "fish"}).out);
  const int fish = in_shell("fish", "source fedbits.fish; complete -C'fedbits run --plu'");
  if (fish >= 0) {
    EXPECT_EQ(fish, 0);
    EXPECT_THAT(read("answer"), HasSubstr("--plugin\t"));
    EXPECT_EQ(in_shell("fish",
                       "source fedbits.fish; complete -C'fedbits list compressors top'; complete -C'fedbits data fetch fash'; "
                       "complete -C'fedbits list feedb'"),
              0);
    EXPECT_EQ(read("answer"), "top_k\nfashion-mnist\nfeedbacks\n");
  }
  write("_fedbits", fedbits({"completion", "zsh"}).out);
  // Outside of a line editor the functions of zsh's completion do nothing: these print what they are given.
  const int zsh = in_shell("zsh",
                           "_describe() { print -l -- ${(P)2} }\n_files() { print files }\n"
                           "ask() { words=(\"$@\"); CURRENT=$#; source ./_fedbits }\n"
                           "ask fedbits list compressors top\nask fedbits ex\nask fedbits run scen\n");
  if (zsh >= 0) {
    EXPECT_EQ(zsh, 0);
    EXPECT_THAT(read("answer"), MatchesRegex("top_k\nexport:[^\n]+\nexplain:[^\n]+\nfiles\n"));
  }
  if (fish < 0 || zsh < 0) GTEST_SKIP() << "SHELL MISSING: fish and zsh run this test";
}

TEST_F(TextsTest, TheManualHasEveryCommandAndOption) {
  const Outcome manual = fedbits({"manual"});
  ASSERT_EQ(manual.code, 0);
  EXPECT_EQ(manual.out.find(".TH FEDBITS 1"), manual.out.find('\n') + 1);
  for (const std::string& command : commands()) {
    EXPECT_THAT(manual.out, HasSubstr(".SS " + command));
    const Outcome help = fedbits({command, "--help"});
    std::istringstream words(help.out);
    for (std::string word; words >> word;) {
      if (!word.starts_with("--") || word.find_first_of(":=") != std::string::npos) continue;
      std::string option;
      for (const char c : word) option += c == '-' ? "\\-" : std::string(1, c);
      EXPECT_THAT(manual.out, HasSubstr(option)) << command;
    }
  }
}

// ---- --log-json ----------------------------------------------------------------------------------------------------------------

TEST_F(TextsTest, TheLogHasALineForEveryMeasuredRound) {
  write_small("measure_every = 3\n");
  const std::vector<std::string> command = {"run",   "small.toml",       "--out",      "out",      "--set", "rounds=7",
                                            "--set", "evaluate.every=2", "--log-json", "log.jsonl"};
  ASSERT_EQ(fedbits(command).code, 0);
  const std::string log = read("log.jsonl");
  const RunStore store = RunStore::open(folder_ / "out", RunStore::Mode::read);
  const StoredRun run = store.load(store.list().at(0).run);
  std::istringstream lines(log);
  std::vector<std::uint64_t> rounds;
  std::vector<std::string> events;
  for (std::string line; std::getline(lines, line);) {
    const auto fields = nlohmann::json::parse(line);
    events.push_back(fields.at("event"));
    EXPECT_EQ(fields.at("run"), run.record.run);
    if (events.back() != "progress") continue;
    EXPECT_EQ(fields.size(), kRoundColumns.size() + 2);
    rounds.push_back(fields.at("round"));
    const RoundRow& row = run.rows.at(rounds.back());
    EXPECT_EQ(fields.at("bits_up"), row.bits_up);
    if (std::isnan(row.train_loss)) {
      EXPECT_TRUE(fields.at("train_loss").is_null());
    } else {
      EXPECT_EQ(fields.at("train_loss"), row.train_loss);
    }
  }
  EXPECT_EQ(events.front(), "started");
  EXPECT_EQ(events.back(), "finished");
  EXPECT_THAT(rounds, testing::ElementsAre(0u, 2u, 3u, 4u, 6u, 7u));
  ASSERT_EQ(fedbits(command).code, 0);
  const std::string of_stored = read("log.jsonl");
  const std::size_t first = log.find('\n') + 1, last = log.rfind("{\"event\":\"finished\"");
  EXPECT_EQ(of_stored.substr(0, of_stored.rfind("{\"event\":\"finished\"")), log.substr(first, last - first)) << "of a stored run";
  EXPECT_THAT(of_stored, HasSubstr("\"stored\":true}\n"));
}

TEST_F(TextsTest, ALogThatCannotBeWrittenIsBadInput) {
  write_small();
  const Outcome outcome = fedbits({"run", "small.toml", "--out", "out", "--log-json", "no/such/folder/log.jsonl"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("cannot write no/such/folder/log.jsonl: No such file or directory"));
  EXPECT_EQ(count_of(outcome.err, "\n"), 1u);
  EXPECT_FALSE(exists("out"));
}

}  // namespace
}  // namespace fl
