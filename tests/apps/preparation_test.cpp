// Tests a signal that arrives before the first round: the program says what it does, stops soon, and leaves nothing wrong behind.
#include <gmock/gmock.h>

#include <csignal>

#include "scenarios/results/run_store.hpp"
#include "tests/support/binary.hpp"
#include "tests/support/test_data.hpp"

namespace fl {
namespace {

using test::Outcome;
using test::Process;
using testing::HasSubstr;
using testing::Not;

// A minimum that takes minutes: many classes and features, hardly regularised.
constexpr const char* kLongMinimum =
    "name = 'long'\nrounds = 5\nprecision = 'float64'\n[data]\nkind = 'synthetic'\nclients = 40\nfeatures = 400\nclasses = 40\n"
    "alpha = 1\nbeta = 1\n[partition]\nkind = 'natural'\nclients = 40\n[model]\nkind = 'logistic_regression'\nl2 = 1e-9\n"
    "[local]\nkind = 'gradient'\nlearning_rate = 0.01\n[compressor.up]\nkind = 'top_k'\nratio = 0.1\n[feedback.up]\nkind = 'ef14'\n";

class PreparationTest : public test::BinaryTest {
 protected:
  // Returns the runs that are stored, whatever their status.
  [[nodiscard]] std::size_t num_runs() const {
    return exists("out/results.sqlite") ? RunStore::open(folder_ / "out", RunStore::Mode::read).list().size() : 0;
  }
  // Waits until the program says what takes long, sends it a signal once, and returns how it ended.
  [[nodiscard]] Outcome stop_while_preparing(const std::vector<std::string>& arguments, int signal, const std::string& said) {
    Process process(folder_, arguments);
    EXPECT_TRUE(process.wait_until([&] { return read("stderr.txt").find(said) != std::string::npos; })) << read("stderr.txt");
    process.signal(signal);
    const Outcome outcome = process.wait();
    EXPECT_THAT(outcome.err, HasSubstr("stopping; the same signal again stops at once"));
    return outcome;
  }
};

class EverySignal : public PreparationTest, public testing::WithParamInterface<int> {};

TEST_P(EverySignal, EndsTheSearchForAMinimum) {
  write("long.toml", kLongMinimum);
  const Outcome outcome =
      stop_while_preparing({"run", "long.toml", "--out", "out"}, GetParam(), "preparing: the minimum of f is looked for: step");
  EXPECT_EQ(outcome.code, 128 + GetParam()) << outcome.err;
  EXPECT_THAT(outcome.err, Not(HasSubstr("failed")));
  EXPECT_EQ(num_runs(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Signals, EverySignal, testing::Values(SIGINT, SIGTERM, SIGUSR1, SIGXCPU),
                         [](const auto& one) { return std::string(::sigabbrev_np(one.param)); });

TEST_F(PreparationTest, OfATrialOfAPlanEnds) {
  write("long.toml", kLongMinimum);
  const Outcome outcome = stop_while_preparing({"plan", "long.toml"}, SIGINT, "preparing: ");
  EXPECT_EQ(outcome.code, 130) << outcome.err;
}

// The first evaluation of a large network on 60,000 images takes longer than anybody waits.
class PreparationOfANetwork : public PreparationTest {
 protected:
  void write_network(const std::string& more = "") const {
    write("network.toml",
          "name = 'network'\nrounds = 5\n[data]\nname = 'fashion-mnist'\n[partition]\nkind = 'shuffled'\nclients = 20\n[model]\n"
          "kind = 'resnet18'\n[local]\nkind = 'gradient'\nbatch = 32\nlearning_rate = 0.05\n[compressor.up]\nkind = 'top_k'\n"
          "ratio = 0.05\n[feedback.up]\nkind = 'ef14'\n" +
              more);
  }
};

TEST_F(PreparationOfANetwork, IsGivenUpInTheFirstEvaluation) {
  FL_NEED_DATA(data, "fashion-mnist");
  write_network();
  const Outcome outcome = stop_while_preparing({"run", "network.toml", "--out", "out", "--data", data.parent_path().string()}, SIGINT,
                                               "preparing: the model is measured before the first round");
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_EQ(num_runs(), 0U);
}

TEST_F(PreparationOfANetwork, InWorkersOfASweepEndsWithoutAFailedRun) {
  FL_NEED_DATA(data, "fashion-mnist");
  write_network("[sweep]\nseeds = 2\n");
  Process process(folder_, {"sweep", "network.toml", "--out", "out", "--jobs", "2", "--data", data.parent_path().string()});
  ASSERT_TRUE(process.wait_until([&] { return process.children().size() == 2; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  process.signal(SIGTERM);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 143) << outcome.err;
  EXPECT_EQ(num_runs(), 0U) << outcome.err;
}

TEST_F(PreparationTest, QuietProgramsSayNothing) {
  write("long.toml", kLongMinimum);
  Process process(folder_, {"run", "long.toml", "--out", "out", "--quiet"});
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  process.signal(SIGINT);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 130);
  EXPECT_THAT(outcome.err, Not(HasSubstr("preparing")));
  EXPECT_THAT(outcome.err, Not(HasSubstr("stopping")));
}

}  // namespace
}  // namespace fl
