// Tests operators inside operators in scenario files, and operators with state per client in runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "scenarios/file/scenario_reader.hpp"
#include "tests/support/plain_loop.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

using test::OneRun;
using test::ScenarioText;
using test::Vector;
using testing::HasSubstr;

std::string refusal_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

ScenarioText induced(const std::string& keys) {
  ScenarioText s = test::uneven_quadratics();
  s.up = "kind = 'induced'\n" + keys;
  return s;
}

TEST(NestedOperators, AreReadAndWrittenBackInFull) {
  const Scenario scenario =
      parse_scenario(induced("biased = { kind = 'top_k', k = 3 }\nunbiased = { kind = 'qsgd', levels = 7, norm = 'max' }").str(), "here");
  const std::string text = to_toml(scenario);
  EXPECT_THAT(text, HasSubstr("unbiased = { kind = \"qsgd\", levels = 7, norm = \"max\", scaled = false }"));
  EXPECT_EQ(to_toml(parse_scenario(text, "there")), text);
  EXPECT_EQ(scenario.up.size(), 1u) << "an option is no channel";
}

TEST(NestedOperators, TheirMistakesAreNamedWithTheirPlace) {
  const auto why = [](const std::string& keys) { return refusal_of([&] { (void)parse_scenario(induced(keys).str(), "here"); }); };
  EXPECT_THAT(why("biased = { kind = 'top_kk' }"),
              testing::AllOf(HasSubstr("compressor.up.biased"), HasSubstr("top_k"), HasSubstr("here:")));
  EXPECT_THAT(why("biased = { ratio = 0 }"), HasSubstr("its ratio must be > 0"));
  EXPECT_THAT(why("biased = { kind = 'top_k', ration = 0.5 }"), HasSubstr("no option \"ration\""));
  EXPECT_THAT(why("biased = 3"), HasSubstr("must be a compressor"));
  // A table that is not an option is treated as a channel, and no operator sends this one.
  EXPECT_THAT(refusal_of([&] { OneRun<double> run(induced("biassed = { kind = 'top_k' }").str()); }), HasSubstr("compressor.up.biassed"));
}

TEST(NestedOperators, RunAndLeaveNothingBehindWhereNothingIsLost) {
  ScenarioText plain = test::uneven_quadratics();
  plain.rounds = 10;
  ScenarioText exact = induced("biased = { kind = 'top_k', k = 3 }\nunbiased = { kind = 'identity' }");
  exact.rounds = 10;
  OneRun<double> left(plain.str()), right(exact.str());
  left.play(1, 10);
  right.play(1, 10);
  EXPECT_LE(test::relative_distance(right.model(), left.model()), 1e-13);
}

// ---- what an operator remembers of its clients ----

// r and v of every client after every round, and the model, against the published rule.
TEST(OperatorMemory, FollowsThePlainLoopInARun) {
  constexpr double kStep = 0.2;
  ScenarioText s = test::uneven_quadratics();
  s.start = "kind = 'zero'\nshift = 1";
  s.local = "kind = 'gradient'\nlearning_rate = 0.2";
  s.up = "kind = 'variance_based'\nalpha = 1.5\nzeta = 0.9";
  OneRun<double> run(s.str());
  const test::ClientGradients gradient(run);
  const std::size_t P = run.problem().P();
  const std::vector<double>& weights = run.problem().weights();
  std::vector<Vector> r(4, Vector(P, 0.0)), v = r;
  Vector x = run.model();
  for (std::uint32_t round = 1; round <= 12; ++round) {
    const Vector at = x;
    for (std::uint32_t i = 0; i < 4; ++i) {
      const Vector g = gradient(at, i);
      double largest = 0;
      for (std::size_t j = 0; j < P; ++j) {
        r[i][j] += g[j];
        v[i][j] += g[j] * g[j];
        if (r[i][j] * r[i][j] > 1.5 * v[i][j]) largest = std::max(largest, std::fabs(r[i][j]));
      }
      for (std::size_t j = 0; j < P; ++j) {
        const double top = std::exp2(std::floor(std::log2(largest))), size = std::fabs(r[i][j]);
        double power = std::exp2(std::floor(std::log2(size)));
        if (size - power > 0.5 * power) power *= 2;
        power = std::min(power, top);
        const bool is_sent = r[i][j] * r[i][j] > 1.5 * v[i][j] && power >= top / 64;
        if (is_sent) x[j] -= kStep * weights[i] * std::copysign(power, r[i][j]);
        v[i][j] = is_sent ? 0 : 0.9 * v[i][j];
        if (is_sent) r[i][j] = 0;
      }
    }
    run.play(round, round);
    ASSERT_LE(test::relative_distance(run.model(), x), 1e-12) << "round " << round;
    for (std::uint32_t i = 0; i < 4; ++i) {
      const Vector memory = test::state_of(run, "compressor.model.client", i);
      ASSERT_EQ(memory.size(), 2 * P);
      for (std::size_t j = 0; j < P; ++j) {
        ASSERT_NEAR(memory[j], r[i][j], 1e-12) << "r of client " << i << ", round " << round;
        ASSERT_NEAR(memory[P + j], v[i][j], 1e-12) << "v of client " << i << ", round " << round;
      }
    }
  }
}

TEST(OperatorMemory, GoesOnlyWithWhatItGoesWith) {
  ScenarioText s = test::uneven_quadratics();
  s.up = "kind = 'variance_based'";
  s.feedback = "kind = 'ef14'";
  EXPECT_THAT(refusal_of([&] { OneRun<double> run(s.str()); }), HasSubstr("use feedback \"none\""));
  ScenarioText down = test::uneven_quadratics();
  down.more = "[compressor.down]\nkind = 'sidco'";
  EXPECT_THAT(refusal_of([&] { OneRun<double> run(down.str()); }), HasSubstr("remembers the clients"));
  ScenarioText unscaled = test::uneven_quadratics();
  unscaled.up = "kind = 'wangni'";
  unscaled.feedback = "kind = 'ef14'";
  EXPECT_THAT(refusal_of([&] { OneRun<double> run(unscaled.str()); }), HasSubstr("unscaled unbiased operator 'wangni'"));
}

}  // namespace
}  // namespace fl
