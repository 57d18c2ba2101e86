// Tests clients that compute NaN or infinities: their updates are refused and counted, and the round continues with the other clients.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "tests/support/data_folder.hpp"
#include "tests/support/overflowing.hpp"
#include "tests/support/plain_loop.hpp"
#include "tests/support/run_text.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

using test::ScenarioText;

constexpr const char* kRows = "1.5 2:1 3:-1\n-0.5 2:2 4:1\n0.25 3:1 4:1\n2 2:1 4:-2\n-1 3:2\n0.5 2:-1 3:1\n";

// Two steps on a feature of 1e200 overflow; no other client has feature 1.
class Refused : public test::DataFolderTest {
 protected:
  ScenarioText study(const std::string& rows, int clients) {
    write("rows", rows);
    ScenarioText s;
    s.rounds = 5;
    s.data = "path = '" + (folder_ / "rows").string() + "'\ntest = 'none'\nlabels = 'target'\nfeatures = 4";
    s.partition = "kind = 'contiguous'\nclients = " + std::to_string(clients);
    s.model = "kind = 'linear_regression'\nbias = false";
    s.local = "kind = 'sgd'\nlearning_rate = 0.1\nsteps = 2";
    s.evaluate = "every = 1\noptimum = false\ngradient = 'never'";
    return s;
  }
  const std::string poisoned_ = std::string("1 1:1e200\n1 1:1e200\n") + kRows;
};

TEST_F(Refused, ClientsAreCountedAndTheOthersGoOnAsIfAlone) {
  for (const std::string feedback : {"kind = 'none'", "kind = 'ef14'", "kind = 'ef21'"}) {
    ScenarioText with = study(poisoned_, 4);
    with.feedback = feedback;
    if (feedback != "kind = 'none'") with.up = "kind = 'top_k'\nk = 2";
    const RunResult result = test::run_text(with.str()).front();
    EXPECT_EQ(result.record.status, RunStatus::done);
    for (std::size_t r = 1; r <= 5; ++r) EXPECT_EQ(result.rows[r].refused, 1u) << feedback;
    EXPECT_EQ(result.rows[0].refused, 0u);
    EXPECT_THAT(result.record.constants, testing::Contains(testing::Field(&ResolvedConstant::name, "refused_updates")));

    ScenarioText without = study(kRows, 3);
    without.feedback = with.feedback;
    without.up = with.up;
    const RunResult alone = test::run_text(without.str()).front();
    EXPECT_EQ(result.record.bits_up, alone.record.bits_up) << "who sends nothing costs nothing";
    if (feedback == "kind = 'ef21'") continue;  // its server's mean of all clients' state keeps the weight of the one that says nothing
    for (std::size_t r = 1; r <= 5; ++r) EXPECT_NEAR(result.rows[r].compensated_norm_sq, alone.rows[r].compensated_norm_sq, 1e-12);
  }
}

TEST_F(Refused, NobodyLeftIsADivergenceWithItsRound) {
  ScenarioText s = study("1 1:1e200\n1 1:1e200\n2 1:1e200\n", 3);
  const RunResult result = test::run_text(s.str()).front();
  EXPECT_EQ(result.record.status, RunStatus::diverged);
  EXPECT_EQ(result.record.rounds, 1u);
  EXPECT_EQ(result.rows.back().refused, 3u);
}

// Operators that keep an error would keep NaN for ever.
TEST_F(Refused, MemoryStaysFinite) {
  ScenarioText s = study(poisoned_, 4);
  s.up = "kind = 'hard_threshold'\nthreshold = 0.01";
  s.feedback = "kind = 'ef14'";
  test::OneRun<double> run(s.str());
  run.play(1, 3);
  EXPECT_EQ(test::norm_sq(test::state_of(run, "error", 0)), 0);
  EXPECT_EQ(run->clients().acknowledged(0), 0u);
  EXPECT_EQ(run->clients().acknowledged(1), 3u);
}

// The same where the vectors are finite and the message is not; with messages that are encoded or only counted, whatever the blocks.
class RefusedMessage : public test::DataFolderTest, public testing::WithParamInterface<test::Overflowing> {};

TEST_P(RefusedMessage, SendsNothingAndTheOthersGoOn) {
  const test::Overflowing& study = GetParam();
  write("rows", test::rows_of(study));
  write("others", test::rows_without_first());
  const std::string text = test::text_of(study, (folder_ / "rows").string());
  const RunResult result = test::run_text(text).front();
  EXPECT_EQ(result.record.status, RunStatus::done) << result.record.message;
  for (std::size_t r = 1; r <= 4; ++r) EXPECT_EQ(result.rows[r].refused, 1U) << "round " << r;
  const RunResult alone = test::run_text(test::text_of(study, (folder_ / "others").string(), 3)).front();
  if (study.up.starts_with("kind = 'top_k'") || study.up.starts_with("kind = 'identity'")) {  // others draw by client
    EXPECT_EQ(result.record.bits_up, alone.record.bits_up) << "who sends nothing costs nothing";
  }
  for (const bool materialise : {false, true})
    for (const std::uint32_t block : {0U, 1U, 3U}) {
      const RunResult again = test::run_text(text, {.threads = 2, .block = block, .materialise = materialise}).front();
      EXPECT_EQ(again.record.checksum, result.record.checksum);
      for (std::size_t r = 0; r < result.rows.size(); ++r) EXPECT_TRUE(same_bits(again.rows[r], result.rows[r])) << "round " << r;
    }
}

template <class T>
void expect_state_is_kept(const std::string& text, const std::vector<std::string>& slots) {
  for (const bool materialise : {false, true}) {
    test::OneRun<T> run(text, {.materialise = materialise});
    run.play(1, 3);
    for (const std::string& slot : slots)
      for (const T x : run->clients().peek(slot, 0)) EXPECT_EQ(x, T(0)) << slot;
    EXPECT_EQ(run->clients().acknowledged(0), 0U);
    EXPECT_EQ(run->clients().acknowledged(1), 3U);
    for (const T x : run.model()) EXPECT_TRUE(std::isfinite(x));
  }
}

TEST_P(RefusedMessage, StateStaysWhatItWas) {
  const test::Overflowing& study = GetParam();
  write("rows", test::rows_of(study));
  const std::string text = test::text_of(study, (folder_ / "rows").string());
  std::vector<std::string> slots;
  if (study.feedback == "kind = 'ef14'") slots = {"error"};
  if (study.feedback == "kind = 'ef21'" || study.feedback.starts_with("kind = 'diana'")) slots = {"shift"};
  study.precision == "float32" ? expect_state_is_kept<float>(text, slots) : expect_state_is_kept<double>(text, slots);
}

INSTANTIATE_TEST_SUITE_P(Studies, RefusedMessage, testing::ValuesIn(test::overflowing()),
                         [](const auto& test) { return test.param.label; });

}  // namespace
}  // namespace fl
