// Compares server optimisers with three steps that were calculated from their published equations, outside of this program.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "fl_core/config/aliases.hpp"
#include "fl_core/config/registry.hpp"
#include "server/server_optimizer.hpp"

namespace fl {
namespace {

using Settings = std::vector<std::pair<std::string, double>>;
using Vector = std::vector<double>;

const std::vector<Vector> kEstimates = {{0.5, -0.25, 0.0}, {-0.1, 0.4, 2.0}, {0.3, 0.3, -1.0}};

std::unique_ptr<ServerOptimizer<double>> make(const std::string& name, const Settings& settings) {
  NamedPart named = resolve_name("server_optimizer", name);
  Schema schema = named.options.schema();
  for (const auto& [key, value] : settings) EXPECT_EQ(schema.find(key)->assign(Value{value}), std::nullopt) << key;
  return make_part<ServerOptimizer<double>>("server_optimizer", named.part, named.options, Device::cpu, Precision::float64);
}

void expect_trace(const std::string& name, const Settings& settings, const std::vector<Vector>& expected, double step_size = 1) {
  const auto optimizer = make(name, settings);
  Vector x = {1.0, -2.0, 0.5};
  optimizer->open(x.size());
  for (std::uint32_t r = 1; r <= 3; ++r) {
    Vector estimate = kEstimates[r - 1];
    for (double& e : estimate) e /= step_size;
    optimizer->step(r, step_size, 0, estimate, x);
    for (std::size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(x[j], expected[r - 1][j], 1e-14) << name << ", round " << r << ", " << j;
  }
}

TEST(Adagrad, FollowsItsEquations) {
  expect_trace("adagrad", {{"learning_rate", 0.1}, {"tau", 0.01}},
               {{0.90198000199960005, -1.9039200319744256, 0.5},
                {0.92121077123036932, -1.9869411635669503, 0.40049875000781238},
                {0.87135141514184244, -2.0396553808411686, 0.44502055676916763}});
}

const std::vector<Vector> kAdam = {{0.91800642579807223, -1.9322626278279351, 0.5},
                                   {0.86128139874805598, -1.9623661496361635, 0.4048728298780489},
                                   {0.77285663188462372, -2.0311508556200555, 0.37052749797954998}};

TEST(Adam, FollowsItsEquations) { expect_trace("adam", {{"learning_rate", 0.1}, {"beta1", 0.9}, {"beta2", 0.99}, {"tau", 0.01}}, kAdam); }

TEST(Adam, TakesGradientsTimesTheStepSize) { expect_trace("adam", {{"learning_rate", 0.1}, {"tau", 0.01}}, kAdam, 0.125); }

// Estimates (0.5, -0.25, 0), (-0.1, 0.4, 2), (0.3, 0.3, -1): a tie counts as +1.
TEST(SignSgd, StepsAlongSignsOnly) {
  expect_trace("sign_sgd", {{"learning_rate", 0.25}}, {{0.75, -1.75, 0.25}, {1.0, -2.0, 0.0}, {0.75, -2.25, 0.25}});
}

TEST(Yogi, FollowsItsEquationsOnBothSidesOfTheSign) {
  expect_trace("yogi", {{"learning_rate", 0.1}, {"beta1", 0.9}, {"beta2", 0.99}, {"tau", 0.01}},
               {{0.91801960972814434, -1.93229670385731, 0.5},
                {0.86153294249940127, -1.9623560046027879, 0.40487507802749612},
                {0.77367579964225841, -2.0308552227853038, 0.37066223117053709}});
  expect_trace("yogi", {{"learning_rate", 0.1}, {"beta1", 0.5}, {"beta2", 0.9}, {"tau", 1.0}},
               {{0.98742088290657493, -1.9937402037376886, 0.5},
                {0.98364618578677476, -2.0006538773795719, 0.4541960108450192},
                {0.97418768679718104, -2.0116781884035384, 0.4541960108450192}});
}

TEST(FedAvgM, IsSgdWithMomentum) {
  expect_trace("fedavgm", {}, {{0.5, -1.75, 0.5}, {0.15, -1.925, -1.5}, {-0.465, -2.3825, -2.3}});
  expect_trace("fedavg", {}, {{0.5, -1.75, 0.5}, {0.6, -2.15, -1.5}, {0.3, -2.45, -0.5}});
}

TEST(ServerOptimizers, GoOnAfterACheckpointAsIfThereHadBeenNone) {
  for (const std::string& name : Registry::instance().names("server_optimizer")) {
    const Settings settings = name == "sgd" ? Settings{{"momentum", 0.5}} : Settings{};
    const auto one = make(name, settings), other = make(name, settings);
    Vector x = {1.0, -2.0, 0.5};
    for (const auto& optimizer : {one.get(), other.get()}) optimizer->open(x.size());
    one->step(1, 1, 0, kEstimates[0], x);
    Archive written;
    one->persist(written);
    Archive read(written.bytes());
    other->persist(read);
    Vector y = x;
    one->step(2, 1, 0, kEstimates[1], x);
    other->step(2, 1, 0, kEstimates[1], y);
    EXPECT_EQ(x, y) << name;
  }
}

}  // namespace
}  // namespace fl
