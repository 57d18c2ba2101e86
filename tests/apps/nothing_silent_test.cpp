// Tests that these cases are reported: output that did not arrive, options without a value, rounds and updates that are missing from a
// result.
#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/support/study.hpp"

namespace fl {
namespace {

using test::Outcome;
using testing::HasSubstr;
using testing::Not;

class NothingSilentTest : public test::StudyTest {
 protected:
  // The exit code of a command whose standard output is a full disk, and what it says.
  [[nodiscard]] Outcome onto_a_full_disk(const std::string& command) const {
    const int status = std::system(("cd " + folder_.string() + " && " FL_BINARY " " + command + " >/dev/full 2>err.txt").c_str());
    return {.code = WEXITSTATUS(status), .out = "", .err = read("err.txt")};
  }
};

TEST_F(NothingSilentTest, OutputThatDoesNotArriveIsNoSuccess) {
  write_small();
  ASSERT_EQ(fedbits({"run", "small.toml", "--out", "out"}).code, 0);
  for (const std::string command : {"run small.toml --out out", "run small.toml --out other", "export out --runs /dev/stdout",
                                    "report out --text --no-splits", "list", "list reference", "plan small.toml", "check top_k --only bits",
                                    "explain --out out ''", "completion bash", "--help", "run --help", "--version"}) {
    const Outcome outcome = onto_a_full_disk(command);
    EXPECT_NE(outcome.code, 0) << command;
    EXPECT_THAT(outcome.err, Not(testing::IsEmpty())) << command;
  }
  EXPECT_THAT(onto_a_full_disk("list").err, HasSubstr("cannot write to standard output"));
  EXPECT_EQ(onto_a_full_disk("run small.toml --out out").code, 1);
  EXPECT_EQ(onto_a_full_disk("run small.toml --out out --quiet").code, 0) << "nothing is written";
}

TEST_F(NothingSilentTest, AShardWithoutNumbersIsAnError) {
  write_study(1, 5);
  for (const std::string shard : {"", "1", "/", "0/2", "3/2", "1/2/3"}) {
    const Outcome outcome = sweep({"--shard", shard});
    EXPECT_EQ(outcome.code, 2) << shard;
    EXPECT_THAT(outcome.err, HasSubstr("--shard: must be i/n with 1 <= i <= n, such as 2/8, is '" + shard + "'"));
  }
  EXPECT_FALSE(exists("out"));
}

TEST_F(NothingSilentTest, AMisspeltMatchKeyIsFoundBeforeAnythingIsMade) {
  write("match.toml",
        "name = 'm'\nrounds = 5\n[data]\nname = 'mushrooms'\nrows = 120\n[partition]\nclients = 4\n[model]\nkind = 'logistic_regression'\n"
        "l2 = 0.01\n[sweep]\nseeds = 1\n[[sweep.axis]]\nkey = 'compressor.up'\nvalues = [{label='top', kind='top_k', k=5},\n"
        "  {label='hard', kind='hard_threshold', match_bits_of='top', match_key='treshold'}]\n");
  for (const std::string command : {"sweep", "run", "plan"}) {
    const Outcome outcome = fedbits({command, "match.toml"});
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_THAT(outcome.err, HasSubstr("match.toml:16:")) << command;
    EXPECT_THAT(outcome.err, HasSubstr("sweep.axis.values.match_key: "));
    EXPECT_THAT(outcome.err, HasSubstr("did you mean \"threshold\"?"));
    EXPECT_FALSE(exists("fedbits-out"));
  }
}

TEST_F(NothingSilentTest, SkippedRoundsAreCountedInTheClosingLines) {
  write_study(1, 40, "[participation]\nkind = 'poisson'\np = 0.1\n");
  const Outcome run = fedbits({"run", "study.toml", "-v"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(test::count_of(run.out, "  skipped_rounds "), 3u) << run.out;
  EXPECT_THAT(run.out, HasSubstr("in 2 of 2 runs:  skipped_rounds "));
  const Outcome swept = sweep({});
  EXPECT_EQ(swept.code, 0) << swept.err;
  EXPECT_THAT(swept.out, HasSubstr("in 2 of 2 runs:  skipped_rounds "));
}

}  // namespace
}  // namespace fl
