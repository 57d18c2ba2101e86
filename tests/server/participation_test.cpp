// Tests which clients take part and how often, and whether the weights of the estimate are those that each participation states.
#include "server/participation.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "fl_core/config/error.hpp"

namespace fl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Settings = std::vector<std::pair<std::string, Value>>;

const std::vector<double> kWeights = {0.4, 0.05, 0.15, 0.1, 0.3};  // w_i
const std::vector<double> kValues = {20, -20, 5, 10, -2};          // what each client would send

std::unique_ptr<Participation> make(const std::string& name, const Settings& settings = {}) {
  Options options = Registry::instance().default_options("participation", name);
  Schema schema = options.schema();
  for (const auto& [key, value] : settings) EXPECT_EQ(schema.find(key)->assign(value), std::nullopt) << key;
  auto part = make_part<Participation>("participation", name, options, Device::cpu, Precision::float64);
  part->open(kWeights.size(), [](const std::string& path) { return path; });
  return part;
}

RoundPlan plan_of(const Participation& part, std::uint32_t round) {
  RoundPlan plan;
  part.sample(round, 1, kWeights, plan);
  return plan;
}

struct Mean {
  double mean = 0, deviation = 0;  // of the mean
};
// Returns the mean of sum_i cohort_weight_i g_i over rounds.
Mean estimate_of(const Participation& part, std::uint32_t rounds) {
  double sum = 0, squares = 0;
  for (std::uint32_t r = 1; r <= rounds; ++r) {
    const RoundPlan plan = plan_of(part, r);
    double estimate = 0;
    for (std::size_t k = 0; k < plan.cohort.size(); ++k) estimate += plan.cohort_weight[k] * kValues[plan.cohort[k]];
    sum += estimate;
    squares += estimate * estimate;
  }
  const double n = rounds, mean = sum / n;
  return {mean, std::sqrt(std::max(0.0, squares / n - mean * mean) / n)};
}
double truth() { return std::inner_product(kWeights.begin(), kWeights.end(), kValues.begin(), 0.0); }

const Value kTwo{std::int64_t{2}}, kUnbiased{std::string("unbiased")}, kNormalised{std::string("normalised")};

TEST(Participation, UnbiasedWeightsEstimateTheSumOverAllClients) {
  for (const auto& [name, settings] :
       std::vector<std::pair<std::string, Settings>>{{"uniform", {{"clients", kTwo}, {"estimate", kUnbiased}}},
                                                     {"poisson", {{"p", Value{0.3}}, {"estimate", kUnbiased}}},
                                                     {"by_data", {{"clients", kTwo}}}}) {
    const Mean mean = estimate_of(*make(name, settings), 40000);
    EXPECT_NEAR(mean.mean, truth(), 4 * mean.deviation) << name;
    EXPECT_LT(mean.deviation, 0.2) << name;
  }
}

// The check above would tell: without the matching weights the same samples are far off.
TEST(Participation, NormalisedWeightsSumToOneAndAreBiased) {
  for (const auto& [name, settings] :
       std::vector<std::pair<std::string, Settings>>{{"uniform", {{"clients", kTwo}}},
                                                     {"poisson", {{"p", Value{0.3}}}},
                                                     {"by_data", {{"clients", kTwo}, {"estimate", kNormalised}}}}) {
    const auto part = make(name, settings);
    for (std::uint32_t r = 1; r <= 50; ++r) {
      const RoundPlan plan = plan_of(*part, r);
      if (plan.cohort.empty()) continue;
      EXPECT_NEAR(std::accumulate(plan.cohort_weight.begin(), plan.cohort_weight.end(), 0.0), 1, 1e-12) << name;
      EXPECT_TRUE(std::ranges::is_sorted(plan.cohort)) << name;
      for (std::size_t k = 0; k < plan.cohort.size(); ++k) EXPECT_EQ(plan.population_weight[k], kWeights[plan.cohort[k]]) << name;
    }
    const Mean mean = estimate_of(*part, 40000);
    EXPECT_GT(std::abs(mean.mean - truth()), 8 * mean.deviation) << name;
  }
}

TEST(Poisson, VariesFromNobodyToSeveral) {
  const auto part = make("poisson", {{"p", Value{0.3}}});
  EXPECT_EQ(part->cohort_size(5), 5u);
  std::size_t empty = 0, clients = 0;
  for (std::uint32_t r = 1; r <= 10000; ++r) {
    const RoundPlan plan = plan_of(*part, r);
    empty += plan.cohort.empty() ? 1 : 0;
    clients += plan.cohort.size();
  }
  EXPECT_NEAR(static_cast<double>(empty), 10000 * std::pow(0.7, 5), 4 * std::sqrt(10000 * 0.168 * 0.832));
  EXPECT_NEAR(static_cast<double>(clients), 15000, 4 * std::sqrt(50000 * 0.21));
}

TEST(Cyclic, GoesRoundAndIsUnbiasedOverNRounds) {
  const auto part = make("cyclic", {{"clients", kTwo}, {"estimate", kUnbiased}});
  EXPECT_THAT(plan_of(*part, 1).cohort, ElementsAre(0, 1));
  EXPECT_THAT(plan_of(*part, 2).cohort, ElementsAre(2, 3));
  EXPECT_THAT(plan_of(*part, 3).cohort, ElementsAre(0, 4));
  EXPECT_THAT(plan_of(*part, 6).cohort, ElementsAre(0, 1));
  EXPECT_NEAR(estimate_of(*part, 5).mean, truth(), 1e-12);
  const auto shuffled = make("cyclic", {{"clients", kTwo}, {"estimate", kUnbiased}, {"order", Value{std::string("shuffled")}}});
  EXPECT_NEAR(estimate_of(*shuffled, 5).mean, truth(), 1e-12);
  EXPECT_THROW((void)make("cyclic", {{"clients", Value{std::int64_t{6}}}})->cohort_size(5), ConfigError);
}

TEST(ByData, CountsClientsThatAreDrawnAgain) {
  const auto part = make("by_data", {{"clients", Value{std::int64_t{5}}}});
  bool drawn_twice = false;
  for (std::uint32_t r = 1; r <= 20; ++r) {
    const RoundPlan plan = plan_of(*part, r);
    EXPECT_NEAR(std::accumulate(plan.cohort_weight.begin(), plan.cohort_weight.end(), 0.0), 1, 1e-12);
    drawn_twice = drawn_twice || plan.cohort.size() < 5;
  }
  EXPECT_TRUE(drawn_twice);
}

class TraceTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::unique_ptr<Participation> read(const std::string& text) {
    std::ofstream(folder_ / "trace.csv") << text;
    return make("trace", {{"path", Value{(folder_ / "trace.csv").string()}}});
  }
  std::string refusal(const std::string& text) {
    try {
      (void)read(text);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }
  std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) / ("trace" + std::to_string(::getpid()));
};

TEST_F(TraceTest, IsFollowed) {
  const auto part = read("round,client\n4,3\n1,4\r\n1,0\n4,0\n4,1\n");
  EXPECT_EQ(part->cohort_size(5), 3u);
  EXPECT_THAT(plan_of(*part, 1).cohort, ElementsAre(0, 4));
  EXPECT_THAT(plan_of(*part, 2).cohort, ElementsAre());
  EXPECT_THAT(plan_of(*part, 4).cohort, ElementsAre(0, 1, 3));
  EXPECT_NEAR(plan_of(*part, 1).cohort_weight[0], 4.0 / 7, 1e-15);
}

TEST_F(TraceTest, IsRefusedWithItsLine) {
  EXPECT_THAT(refusal("1,0\n1,five\n"), HasSubstr("trace.csv:2: expected"));
  EXPECT_THAT(refusal("1,0\n1,5\n"), HasSubstr("client 5, but clients are 0 to 4"));
  EXPECT_THAT(refusal("1,0\n0,1\n"), HasSubstr(":2: rounds are counted from 1"));
  EXPECT_THAT(refusal("1,0\n1,0\n"), HasSubstr("in round 1 already"));
  EXPECT_THAT(refusal("round,client\n"), HasSubstr("names no round"));
  EXPECT_THROW((void)make("trace", {{"path", Value{std::string("/no/such/file")}}}), ConfigError);
  EXPECT_THAT(refusal("1;0\n1,1\n"), HasSubstr("trace.csv:1: expected \"round,client\", is \"1;0\"")) << "no header";
  EXPECT_THAT(refusal("2,3\n1,0\n2,1\n2,3\n2,3\n"), HasSubstr("trace.csv:4: client 3 is in round 2 already"));
}

TEST_F(TraceTest, IsAnOrdinaryFile) {
  const std::filesystem::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& [path, kind] : {std::pair(pipe.string(), "it is a pipe"), std::pair(folder_.string(), "it is a folder")}) try {
      (void)make("trace", {{"path", Value{path}}});
      ADD_FAILURE() << kind;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("participation.path: cannot read '" + path + "': " + kind));
    }
}

// A round moves the weights of messages that do not count to the others, in the plan itself.
TEST(Participation, FullBeginsEachRoundWithTheClientsOwnWeights) {
  const auto part = make("full");
  RoundPlan plan;
  part->sample(1, 1, kWeights, plan);
  plan.cohort_weight = {0, 0.1, 0.2, 0.2, 0.5};
  part->sample(2, 1, kWeights, plan);
  EXPECT_EQ(plan.cohort_weight, kWeights);
}

TEST(Participation, AbsentClientsShareOutTheirWeight) {
  RoundPlan plan{.cohort = {1, 4, 6}, .cohort_weight = {0.5, 0.125, 0.375}, .population_weight = {0.1, 0.2, 0.3}};
  RoundPlan all = plan;
  keep_present(std::vector<std::uint8_t>{1, 1, 1}, all);
  EXPECT_EQ(all.cohort, plan.cohort);
  EXPECT_EQ(all.cohort_weight, plan.cohort_weight);
  keep_present(std::vector<std::uint8_t>{0, 1, 1}, plan);
  EXPECT_THAT(plan.cohort, ElementsAre(4, 6));
  EXPECT_THAT(plan.cohort_weight, ElementsAre(0.25, 0.75));
  EXPECT_THAT(plan.population_weight, ElementsAre(0.2, 0.3));
  keep_present(std::vector<std::uint8_t>{0, 0}, plan);
  EXPECT_TRUE(plan.cohort.empty() && plan.cohort_weight.empty() && plan.population_weight.empty());
}

TEST(Participation, OverSelectionAsksMoreClientsWhereThereIsANumberOfThem) {
  for (const std::string name : {"uniform", "cyclic", "by_data"}) {
    const auto part = make(name, {{"clients", kTwo}});
    EXPECT_TRUE(part->over_select(1.1)) << name;
    EXPECT_EQ(part->cohort_size(5), 3U) << name;
    EXPECT_TRUE(part->over_select(1.5)) << name;
    EXPECT_EQ(part->cohort_size(5), 3U) << name;
    EXPECT_TRUE(part->over_select(9)) << name;
    EXPECT_EQ(part->cohort_size(5), 5U) << name;
  }
  const auto uniform = make("uniform", {{"clients", kTwo}});
  EXPECT_TRUE(uniform->over_select(2));
  EXPECT_EQ(plan_of(*uniform, 1).cohort.size(), 4U);
  EXPECT_FALSE(make("full")->over_select(2));
}

}  // namespace
}  // namespace fl
