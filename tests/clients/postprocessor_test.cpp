// Tests postprocessors: norm clipping on known vectors and against its definition, and in runs.
#include "compressors/postprocessors/postprocessor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/memory/thread_pool.hpp"
#include "tests/support/run_scenario.hpp"
#include "tests/support/run_text.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

template <class T>
std::unique_ptr<Postprocessor<T>> clipping(double limit, const std::string& norm = "l2", const std::string& side = "client") {
  Options options = Registry::instance().default_options("postprocessor", "norm_clipping");
  Schema schema = options.schema();
  EXPECT_FALSE(schema.find("limit")->assign(Value{limit}));
  EXPECT_FALSE(schema.find("norm")->assign(Value{norm}));
  EXPECT_FALSE(schema.find("side")->assign(Value{side}));
  return make_part<Postprocessor<T>>("postprocessor", "norm_clipping", options, Device::cpu, kPrecisionOf<T>);
}

RunSettings settings_of(std::size_t num_clients, std::size_t P) {
  RunSettings run;
  run.num_clients = num_clients;
  run.P = P;
  run.weights.assign(num_clients, 1.0 / static_cast<double>(num_clients));
  return run;
}

// Returns the rows after on_client().
template <class T>
std::vector<std::vector<T>> clipped_rows(const Postprocessor<T>& part, const std::vector<std::vector<T>>& rows) {
  const std::size_t P = rows.front().size();
  const auto K = static_cast<std::uint32_t>(rows.size());
  std::vector<T> flat, reference(P);
  for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  const RunSettings run = settings_of(K, P);
  RoundOrder order;
  for (std::uint32_t k = 0; k < K; ++k) order.cohort.push_back(k);
  ClientState<T> state(K, K, P);
  SharedState<T> shared(P);
  std::vector<double> work(K, 1.0);
  ClientBlock<T> block{.first = 0, .K = K, .clients = order.cohort, .vectors = {}, .messages = {}, .work = work};
  block.vectors.push_back({flat.data(), nullptr, K, P, P});
  ThreadPool pool(1);
  part.on_client(pool.exec(0), ClientRound<T>{RoundView<T>{run, order, reference}, state, shared}, block, 0);
  std::vector<std::vector<T>> after;
  for (std::uint32_t k = 0; k < K; ++k) after.emplace_back(flat.begin() + k * P, flat.begin() + (k + 1) * P);
  return after;
}

std::vector<double> clipped_estimate(const Postprocessor<double>& part, std::vector<double> estimate) {
  const std::vector<double> reference(estimate.size()), weight = {1};
  const RunSettings run = settings_of(1, estimate.size());
  const RoundOrder order{.round = 1, .cohort = {0}};
  ServerState<double> state(1, estimate.size());
  SharedState<double> shared(estimate.size());
  part.on_server({RoundView<double>{run, order, reference}, weight, weight, {}, state, shared}, estimate);
  return estimate;
}

template <class T>
class ClippingOf : public testing::Test {
 protected:
  static void expect_near(const std::vector<T>& value, const std::vector<double>& expected) {
    ASSERT_EQ(value.size(), expected.size());
    for (std::size_t j = 0; j < value.size(); ++j)
      EXPECT_NEAR(static_cast<double>(value[j]), expected[j], 2 * std::numeric_limits<T>::epsilon() * std::abs(expected[j])) << j;
  }
};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(ClippingOf, Precisions);

TYPED_TEST(ClippingOf, KnownVectors) {
  using T = TypeParam;
  const auto rows = clipped_rows<T>(*clipping<T>(1), {{3, 4}, {T(0.3), T(0.4)}, {0, 0}, {-3, 4}, {0, 1}});
  this->expect_near(rows[0], {0.6, 0.8});
  EXPECT_THAT(rows[1], ElementsAre(T(0.3), T(0.4))) << "short vectors stay as they are";
  EXPECT_THAT(rows[2], ElementsAre(T(0), T(0)));
  this->expect_near(rows[3], {-0.6, 0.8});
  EXPECT_THAT(rows[4], ElementsAre(T(0), T(1))) << "a vector of exactly the limit stays";
  const auto largest = clipped_rows<T>(*clipping<T>(2, "infinity"), {{3, -4}, {2, -1}, {-4, 1}});
  this->expect_near(largest[0], {1.5, -2});
  EXPECT_THAT(largest[1], ElementsAre(T(2), T(-1)));
  this->expect_near(largest[2], {-2, 0.5});
  EXPECT_THAT(clipped_rows<T>(*clipping<T>(1, "infinity"), {{4, -1}})[0], ElementsAre(T(1), T(-0.25))) << "by a power of two";
  EXPECT_THAT(clipped_rows<T>(*clipping<T>(1), {{4, 0}})[0], ElementsAre(T(1), T(0)));
}

// Numbers whose squares overflow or vanish in the type, and for double in double.
TYPED_TEST(ClippingOf, ExtremeNumbers) {
  using T = TypeParam;
  const bool is_float = sizeof(T) == sizeof(float);
  const T large = static_cast<T>(is_float ? 1e37 : 1e300), small = static_cast<T>(is_float ? 1e-37 : 1e-300);
  this->expect_near(clipped_rows<T>(*clipping<T>(1), {{3 * large, 4 * large}})[0], {0.6, 0.8});
  this->expect_near(clipped_rows<T>(*clipping<T>(5e-7, "infinity"), {{3 * large, 4 * large}})[0], {3.75e-7, 5e-7});
  EXPECT_THAT(clipped_rows<T>(*clipping<T>(1), {{3 * small, 4 * small}})[0], ElementsAre(3 * small, 4 * small));
  this->expect_near(clipped_rows<T>(*clipping<T>(static_cast<double>(small)), {{3 * small, 4 * small}})[0],
                    {0.6 * static_cast<double>(small), 0.8 * static_cast<double>(small)});
}

TYPED_TEST(ClippingOf, ItsDefinition) {
  using T = TypeParam;
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  for (const std::size_t P : {1u, 15u, 16u, 17u, 2047u, 2048u, 2049u, 5000u}) {
    std::vector<std::vector<T>> rows(4, std::vector<T>(P));
    for (std::size_t k = 0; k < rows.size(); ++k)
      for (T& x : rows[k]) x = static_cast<T>(normal(random) * std::pow(10.0, static_cast<double>(k) - 2));
    const auto after = clipped_rows<T>(*clipping<T>(1), rows);
    for (std::size_t k = 0; k < rows.size(); ++k) {
      long double sum = 0;
      for (const T x : rows[k]) sum += static_cast<long double>(x) * static_cast<long double>(x);
      const double factor = std::min(1.0, 1 / static_cast<double>(std::sqrt(sum)));
      std::vector<double> expected;
      for (const T x : rows[k]) expected.push_back(factor * static_cast<double>(x));
      for (std::size_t j = 0; j < P; ++j)
        ASSERT_NEAR(static_cast<double>(after[k][j]), expected[j], 4 * std::numeric_limits<T>::epsilon() * std::abs(expected[j])) << P;
    }
  }
}

TEST(ClippingOfTheEstimate, KnownVectors) {
  const auto part = clipping<double>(1, "l2", "server");
  EXPECT_FALSE(part->plan().changes_vectors);
  EXPECT_TRUE(part->plan().changes_estimate);
  const std::vector<double> after = clipped_estimate(*part, {3, 4});
  EXPECT_DOUBLE_EQ(after[0], 0.6);
  EXPECT_DOUBLE_EQ(after[1], 0.8);
  EXPECT_THAT(clipped_estimate(*part, {0.3, 0.4}), ElementsAre(0.3, 0.4));
  EXPECT_THAT(clipped_estimate(*part, {0, 0}), ElementsAre(0, 0));
  const std::vector<double> large = clipped_estimate(*part, {3e300, 4e300});
  EXPECT_DOUBLE_EQ(large[0], 0.6);
  EXPECT_DOUBLE_EQ(large[1], 0.8);
  EXPECT_THAT(clipped_estimate(*clipping<double>(2, "infinity", "server"), {3, -4}), ElementsAre(1.5, -2));
  EXPECT_THAT(clipped_estimate(*clipping<double>(1, "infinity", "server"), {4, -1}), ElementsAre(1, -0.25));
}

// A run that diverges ends as one: clipping does not hide numbers that are not finite.
TEST(ClippingOfTheEstimate, LeavesWhatIsNotFinite) {
  const auto part = clipping<double>(1, "l2", "server");
  EXPECT_TRUE(std::isinf(clipped_estimate(*part, {3, INFINITY})[1]));
  EXPECT_EQ(clipped_estimate(*part, {3, INFINITY})[0], 3);
  EXPECT_TRUE(std::isnan(clipped_estimate(*part, {3, NAN})[1]));
}

// ---- runs

test::ScenarioText clipped_study(const std::string& options = "") {
  test::ScenarioText text = test::quadratics();
  text.rounds = 30;
  text.local = "kind = 'gradient'\nlearning_rate = 0.1";
  text.up = "kind = 'top_k'\nk = 4";
  text.feedback = "kind = 'ef14'";
  if (!options.empty()) text.more = "[postprocessor]\nkind = 'norm_clipping'\n" + options + "\n";
  return text;
}

std::string refusal_of(const test::ScenarioText& text) {
  try {
    (void)test::run_text(text.str());
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(PostprocessorOfScenarios, NoneIsNotWritten) {
  test::ScenarioText none = clipped_study();
  none.more = "[postprocessor]\nkind = 'none'\n";
  const Cell without = parse_cells(clipped_study().str(), "test.toml").at(0), with = parse_cells(none.str(), "test.toml").at(0),
             clipped = parse_cells(clipped_study("limit = 0.5").str(), "test.toml").at(0);
  EXPECT_EQ(without.hash, with.hash);
  EXPECT_THAT(without.resolved_toml, Not(HasSubstr("postprocessor")));
  EXPECT_THAT(clipped.resolved_toml, HasSubstr("[postprocessor]\nkind = \"norm_clipping\"\nlimit = 0.5\nnorm = \"l2\"\nside = \"client\""));
  EXPECT_NE(without.hash, clipped.hash);
}

TEST(PostprocessorOfScenarios, IsTheSameOnAnyNumberOfThreadsAndInAnyBlock) {
  for (const std::string side : {"client", "server"})
    for (const std::string precision : {"float32", "float64"}) {
      test::ScenarioText text = clipped_study("limit = 0.2\nside = '" + side + "'"), plain = clipped_study();
      text.precision = plain.precision = precision;
      const std::string one = test::run_text(text.str())[0].record.checksum;
      EXPECT_EQ(test::run_text(text.str(), {.threads = 4})[0].record.checksum, one);
      EXPECT_EQ(test::run_text(text.str(), {.block = 2})[0].record.checksum, one);
      EXPECT_EQ(test::run_text(text.str(), {.materialise = true})[0].record.checksum, one);
      EXPECT_NE(test::run_text(plain.str())[0].record.checksum, one) << "the limit matters";
    }
}

TEST(PostprocessorOfScenarios, ALimitThatNothingReachesChangesNothing) {
  const std::string plain = test::run_text(clipped_study().str())[0].record.checksum;
  for (const std::string side : {"client", "server"})
    EXPECT_EQ(test::run_text(clipped_study("limit = 1e6\nside = '" + side + "'").str())[0].record.checksum, plain) << side;
}

double norm_of(const std::vector<double>& x) { return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0)); }

std::vector<double> model_after_a_round(test::ScenarioText text) {
  text.up = "kind = 'identity'";
  text.feedback = "kind = 'none'";
  test::OneRun<double> run(text.str());
  run.play(1, 1);
  return run.model();
}

// From x = 0 a round moves the model to -gamma sum_i w_i min(1, limit/|g_i|) g_i.
TEST(PostprocessorOfScenarios, ClipsWhatClientsSend) {
  const auto of_clients = [](int clients, const std::string& options) {
    test::ScenarioText text = test::mushrooms(clients);
    text.local = "kind = 'gradient'\nlearning_rate = 0.1";
    if (!options.empty()) text.more = "[postprocessor]\nkind = 'norm_clipping'\n" + options + "\n";
    return model_after_a_round(text);
  };
  const std::vector<double> plain = of_clients(1, "");
  const double length = norm_of(plain), limit = length / 0.1 / 4;  // a quarter of |g|
  const std::string options = "limit = " + std::to_string(limit);
  for (const std::string side : {"client", "server"}) {
    const std::vector<double> clipped = of_clients(1, options + "\nside = '" + side + "'");
    for (std::size_t j = 0; j < plain.size(); ++j) EXPECT_NEAR(clipped[j], plain[j] / 4, 1e-5 * length) << side;
  }
  // The mean of five clipped vectors is shorter than the limit, and the server's clipped estimate is not.
  EXPECT_LT(norm_of(of_clients(5, "limit = 1e-3")), 0.999e-4);
  EXPECT_NEAR(norm_of(of_clients(5, "limit = 1e-3\nside = 'server'")), 1e-4, 1e-12);
}

TEST(PostprocessorOfScenarios, WrongOptionsAreRefused) {
  EXPECT_THAT(refusal_of(clipped_study("limit = 0")), HasSubstr("postprocessor.limit"));
  EXPECT_THAT(refusal_of(clipped_study("limit = 0")), HasSubstr("must be > 0"));
  EXPECT_THAT(refusal_of(clipped_study("limit = -1.5")), HasSubstr("must be > 0"));
  EXPECT_THAT(refusal_of(clipped_study("limit = nan")), HasSubstr("postprocessor.limit"));
  EXPECT_THAT(refusal_of(clipped_study("limit = inf")), HasSubstr("postprocessor.limit"));
  EXPECT_THAT(refusal_of(clipped_study("limit = 'large'")), HasSubstr("postprocessor.limit"));
  EXPECT_THAT(refusal_of(clipped_study("norm = 'l1'")), HasSubstr("must be one of l2, infinity"));
  EXPECT_THAT(refusal_of(clipped_study("side = 'clients'")), HasSubstr("did you mean \"client\"?"));
  test::ScenarioText unknown = clipped_study();
  unknown.more = "[postprocessor]\nkind = 'norm_cliping'\n";
  EXPECT_THAT(refusal_of(unknown), HasSubstr("norm_clipping"));
}

// Methods that need their vectors or their estimate as they are.
TEST(PostprocessorOfScenarios, MethodsThatItWouldBreakAreRefused) {
  const std::string clips = "limit = 0.1";
  test::ScenarioText marina = clipped_study(clips), mvr = clipped_study(clips), scaffold = clipped_study(clips), lag = clipped_study(clips);
  for (test::ScenarioText* text : {&marina, &mvr}) text->up = "kind = 'random_k'\nk = 9\nscaled = true";
  marina.local = "kind = 'gradient_difference'\nlearning_rate = 0.1";
  marina.feedback = "kind = 'marina'\np = 0.4";
  mvr.local = "kind = 'mvr'\nlearning_rate = 0.1";
  mvr.feedback = "kind = 'dasha'\na = 0.04";
  EXPECT_THAT(refusal_of(marina), HasSubstr("each vector of local kind 'gradient_difference' builds on the one before"));
  EXPECT_THAT(refusal_of(mvr), HasSubstr("each vector of local kind 'mvr' builds on the one before"));
  scaffold.local = "kind = 'scaffold'\nlearning_rate = 0.1";
  scaffold.feedback = "kind = 'scaffold'";
  EXPECT_THAT(refusal_of(scaffold), HasSubstr("local kind 'scaffold' sends several, in units of their own (model, control)"));
  lag.up = "kind = 'identity'";
  lag.feedback = "kind = 'lag'";
  EXPECT_EQ(refusal_of(lag), "");
  lag.more += "side = 'server'\n";
  EXPECT_THAT(refusal_of(lag), HasSubstr("feedback 'lag' needs to know the length of the server's step"));
  for (test::ScenarioText* text : {&marina, &mvr, &scaffold}) {  // the server's half leaves their vectors alone
    text->more += "side = 'server'\n";
    EXPECT_EQ(refusal_of(*text), "");
  }
}

TEST(PostprocessorOfScenarios, TheoremsAreForVectorsThatNothingChanges) {
  for (const std::string side : {"client", "server"}) {
    test::ScenarioText text = clipped_study("limit = 0.1\nside = '" + side + "'");
    text.local = "kind = 'gradient'\nlearning_rate = 'theory'";
    EXPECT_THAT(refusal_of(text), HasSubstr("the theorem needs vectors and an estimate that nothing changes")) << side;
    text.more.clear();
    EXPECT_EQ(refusal_of(text), "");
  }
}

}  // namespace
}  // namespace fl
