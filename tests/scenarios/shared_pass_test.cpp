// Tests that the training loss and the gradient have the same bits whether a round measures both, in one pass over the rows, or one of
// them.
#include <gmock/gmock.h>

#include "tests/support/run_text.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

using test::ScenarioText;

std::vector<RoundRow> rows_of(ScenarioText s, const std::string& evaluate, const MachineOptions& machine = {}) {
  s.evaluate = evaluate;
  return test::run_text(s.str(), machine).at(0).rows;
}

// `s` has five rounds.
void expect_equal_bits(const ScenarioText& s) {
  const auto both = rows_of(s, "every = 1\ngradient = 'every'");
  const auto losses = rows_of(s, "every = 1\ngradient = 'never'");
  const auto gradients = rows_of(s, "every = 1\ngradient = 'every'\ntrain_loss = false");
  const auto rarely = rows_of(s, "every = 1\ngradient = 'every'\ngradient_every = 2");
  const auto threads = rows_of(s, "every = 1\ngradient = 'every'", {.threads = 3});
  ASSERT_EQ(both.size(), 6u);
  for (std::size_t r = 0; r < both.size(); ++r) {
    SCOPED_TRACE("round " + std::to_string(r));
    EXPECT_GT(both[r].zeta_sq, 0);
    EXPECT_EQ(both[r].train_loss, losses[r].train_loss);
    EXPECT_EQ(both[r].train_loss, rarely[r].train_loss);
    EXPECT_EQ(both[r].train_loss, threads[r].train_loss);
    EXPECT_EQ(both[r].zeta_sq, gradients[r].zeta_sq);
    EXPECT_EQ(both[r].zeta_sq, threads[r].zeta_sq);
    EXPECT_EQ(both[r].global_grad_norm_sq, gradients[r].global_grad_norm_sq);
  }
  EXPECT_NE(both[1].train_loss, both[2].train_loss);  // no round has the numbers of the one before
  EXPECT_NE(both[1].zeta_sq, both[2].zeta_sq);
}

TEST(SharedPass, LogisticRegression) {
  for (const char* precision : {"float32", "float64"}) {
    ScenarioText s = test::mushrooms(7);
    s.rounds = 5;
    s.precision = precision;
    expect_equal_bits(s);
  }
}

// More clients than are computed at a time.
TEST(SharedPass, ManyClients) {
  ScenarioText s = test::mushrooms(70);
  s.rounds = 5;
  expect_equal_bits(s);
}

TEST(SharedPass, Networks) {
  ScenarioText s = test::mushrooms(7);
  s.rounds = 5;
  s.start = "kind = 'auto'";
  s.local = "kind = 'gradient'\nlearning_rate = 0.1";
  for (const char* layers : {"['dense(5)', 'tanh', 'dense(classes)']", "['dense(5)', 'batch_norm', 'relu', 'dense(classes)']"}) {
    s.model = "kind = 'neural_network'\nlayers = " + std::string(layers);
    expect_equal_bits(s);
  }
}

// A model without a shared pass.
TEST(SharedPass, Quadratics) {
  ScenarioText s = test::quadratics();
  s.rounds = 5;
  expect_equal_bits(s);
}

}  // namespace
}  // namespace fl
