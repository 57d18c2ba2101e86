#include "scenarios/file/scenario.hpp"

#include <gtest/gtest.h>

#include "tests/scenarios/test_parts.hpp"

namespace fl::test {
namespace {

constexpr const char* kConvexExample = R"toml(
name   = "madelon-ec-gd"
rounds = 2000
precision = "float64"

[data]
path = "libsvm/madelon"
[partition]
kind = "contiguous"
clients = 20
[model]
kind = "logistic_regression"
bias = false
l2 = "L/1e4"
[start]
kind = "optimum"
shift = 1e-4
[local]
kind = "gradient"
learning_rate = "1/(L+l2)"
[compressor.up]
kind = "top_k"
k = 1
unit = "step"
[feedback.up]
kind = "ef14"
)toml";

TEST_F(ScenarioTest, TheConvexExampleIsRead) {
  const Scenario s = parse_scenario(kConvexExample, "f.toml");
  EXPECT_EQ(s.name, "madelon-ec-gd");
  EXPECT_EQ(s.rounds, 2000);
  EXPECT_EQ(s.precision, Precision::float64);
  EXPECT_EQ(s.data.path, "libsvm/madelon");
  EXPECT_EQ(s.data.file().name, "libsvm/madelon");
  EXPECT_EQ(s.partition.part.kind, "contiguous");
  EXPECT_EQ(s.partition.clients, 20);
  EXPECT_EQ(option(s.model.part, "bias"), "false");
  EXPECT_EQ(s.model.l2.text(), "L/1e4");
  EXPECT_EQ(s.model.weights, ModelSpec::Weights::rows);
  EXPECT_EQ(s.start.kind, StartOptions::Kind::optimum);
  EXPECT_EQ(s.start.shift, 1e-4);
  EXPECT_EQ(option(s.local, "learning_rate"), "\"1/(L+l2)\"");
  EXPECT_EQ(s.compressor_up("").part.kind, "top_k");
  EXPECT_EQ(option(s.compressor_up("").part, "k"), "1");
  EXPECT_EQ(s.compressor_up("").unit, Unit::step);
  EXPECT_EQ(s.feedback_up.kind, "ef14");
}

TEST_F(ScenarioTest, WhatIsNotWrittenHasItsDefault) {
  const Scenario s = parse_scenario(kShortest, "f.toml");
  EXPECT_EQ(s.precision, Precision::float32);
  EXPECT_EQ(s.seeds.data, 1u);
  EXPECT_EQ(s.seeds.compressor, 1u);
  EXPECT_FALSE(s.stop.accuracy.has_value());
  EXPECT_EQ(s.partition.part.kind, "contiguous");
  EXPECT_EQ(s.partition.clients, 10);
  EXPECT_EQ(s.local.kind, "gradient");
  EXPECT_EQ(s.participation.part.kind, "full");
  EXPECT_EQ(s.compressor_up("").part.kind, "identity");
  EXPECT_FALSE(s.compressor_up("").part.options.empty());
  EXPECT_FALSE(s.compressor_up("").unit.has_value());
  EXPECT_EQ(s.down.part.kind, "identity");
  EXPECT_EQ(s.feedback_up.kind, "none");
  EXPECT_EQ(s.server.part.kind, "sgd");
  EXPECT_EQ(option(s.server.part, "learning_rate"), "1.0");
  EXPECT_EQ(s.evaluate.every, 10);
  EXPECT_EQ(s.evaluate.measure_every, 0);
  EXPECT_TRUE(s.evaluate.optimum.is_used);
}

TEST_F(ScenarioTest, EveryCommonKeyReachesItsField) {
  const Scenario s = parse_scenario(std::string(kShortest) + R"(
    seed = 7
    [seeds]
    sampling = 8
    [stop]
    accuracy = 1
    f_gap = 1e-9
    grad_norm_sq = 1e-10
    bits = 1e9
    [evaluate]
    every = 2
    measure_every = 3
    published_metrics = "ec_sgd"
    optimum = "xstar.txt"
    [compressor.down]
    kind = "top_k"
    scope = "bucket"
    bucket = 512
    exclude = ["b"]
  )",
                                    "f.toml");
  EXPECT_EQ(s.seeds.data, 7u);
  EXPECT_EQ(s.seeds.init, 7u);
  EXPECT_EQ(s.seeds.sampling, 8u);
  EXPECT_EQ(s.stop.accuracy, 1.0);
  EXPECT_EQ(s.stop.f_gap, 1e-9);
  EXPECT_EQ(s.stop.grad_norm_sq, 1e-10);
  EXPECT_EQ(s.stop.bits, 1e9);
  EXPECT_EQ(s.evaluate.every, 2);
  EXPECT_EQ(s.evaluate.measure_every, 3);
  EXPECT_EQ(s.evaluate.published_metrics, EvaluateOptions::PublishedMetrics::ec_sgd);
  EXPECT_EQ(s.evaluate.optimum.path, "xstar.txt");
  EXPECT_EQ(s.down.scope, ScopeKind::bucket);
  EXPECT_EQ(s.down.bucket, 512);
  EXPECT_EQ(s.down.exclude, (std::vector<std::string>{"b"}));
  EXPECT_FALSE(parse_scenario(std::string(kShortest) + "evaluate.optimum = false\n", "f.toml").evaluate.optimum.is_used);
}

TEST_F(ScenarioTest, AChannelReplacesTheDefaultCompressor) {
  const Scenario s = parse_scenario(std::string(kShortest) + R"(
    [compressor.up]
    kind = "top_k"
    k = 3
    [compressor.up.control]
    kind = "hard_threshold"
    threshold = "1/d"
  )",
                                    "f.toml");
  EXPECT_EQ(option(s.compressor_up("model").part, "k"), "3");
  EXPECT_EQ(s.compressor_up("control").part.kind, "hard_threshold");
  EXPECT_EQ(option(s.compressor_up("control").part, "threshold"), "\"1/d\"");
}

TEST_F(ScenarioTest, SyntheticDataIsAPartOfItsOwn) {
  const Scenario s =
      parse_scenario("name = \"q\"\nrounds = 1\nmodel.kind = \"mlp\"\n[data]\nkind = \"test_numbers\"\nlow = 0.5\n", "f.toml");
  EXPECT_EQ(s.data.synthetic.kind, "test_numbers");
  EXPECT_EQ(option(s.data.synthetic, "low"), "0.5");
  EXPECT_EQ(option(s.data.synthetic, "features"), "7");
  const std::string once = to_toml(s);
  EXPECT_TRUE(contains(once, "features = 7\n"));
  EXPECT_FALSE(contains(once, "features = 0\n"));
  EXPECT_FALSE(contains(once, "storage"));
  EXPECT_EQ(to_toml(parse_scenario(once, "again.toml")), once);
}

// Reading what was written gives the same text, whatever the options.
TEST_F(ScenarioTest, CanonicalTextIsAFixedPoint) {
  const std::string odd = std::string(kShortest) + R"(
    stop = { accuracy = 0.5, bits = 1e6 }
    [seeds]
    init = 4
    [model]
    l2 = " L / 1e4 "
    nonconvex = "1/8"
    weights = "uniform"
    [compressor.up]
    kind = "test_odd"
    low = 1e-7
    high = 3
    weights = [1, 0.1, 1e300]
    tags = ["a b", "\"", "é"]
    flag = true
    [compressor.up.second]
    kind = "top_k"
    unit = "update"
  )";
  std::string text = odd;
  text.replace(text.find("model.kind = \"logistic_regression\"\n"), 34, "");
  text.replace(text.find("[model]"), 7, "[model]\nkind = \"logistic_regression\"\n");
  for (const std::string& source : {std::string(kShortest), std::string(kConvexExample), text}) {
    const std::string once = to_toml(parse_scenario(source, "f.toml"));
    EXPECT_EQ(to_toml(parse_scenario(once, "again.toml")), once);
  }
  const std::string once = to_toml(parse_scenario(text, "f.toml"));
  EXPECT_TRUE(contains(once, "l2 = \"L/1e4\"\n"));
  EXPECT_TRUE(contains(once, "nonconvex = 0.125\n"));
  EXPECT_TRUE(contains(once, "[seeds]\ndata = 1\ninit = 4\nsampling = 1\ncompressor = 1\n"));
  EXPECT_TRUE(contains(once, "weights = [1.0, 0.1, 1e+300]\n"));
  EXPECT_TRUE(contains(once, "word = \"a \\\"quoted\\\" \\\\ word\\n\"\n"));
  EXPECT_TRUE(contains(once, "[compressor.up.second]\nkind = \"top_k\"\nunit = \"update\"\n"));
}

TEST_F(ScenarioTest, CanonicalTextNamesEveryKey) {
  const std::string text = to_toml(parse_scenario(kShortest, "f.toml"));
  for (const char* key : {"seed = 1\n", "precision = \"float32\"\n", "matrix_products = \"full\"\n", "\n[data]\nname = \"a9a\"\n",
                          "test_fraction = 0.0\n", "clients = 10\n", "\n[start]\nkind = \"auto\"\n", "\n[participation]\nkind = \"full\"\n",
                          "\n[compressor.up]\nkind = \"identity\"\n", "scope = \"model\"\n", "\n[feedback.up]\nkind = \"none\"\n",
                          "\n[evaluate]\nevery = 10\n", "optimum = true\n"})
    EXPECT_TRUE(contains(text, key));
  EXPECT_FALSE(contains(text, "[stop]")) << "there is nothing in it";
  EXPECT_FALSE(contains(text, "[compressor]\n"));
}

// The hash names results in stores, so it must never change for a given text.
TEST(HashOfText, IsFixed) {
  EXPECT_NE(hash_of_text("fedbits"), hash_of_text("fedbitt"));
  EXPECT_NE(hash_of_text(""), hash_of_text(std::string(1, '\0')));
  EXPECT_EQ(hash_of_text("fedbits"), 1314819360926266449u);
}

}  // namespace
}  // namespace fl::test
