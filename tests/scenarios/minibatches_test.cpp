// Tests the requirements of batch normalisation on minibatches, which are checked before a run: two values per channel, and memory for all
// rows at once.
#include <gmock/gmock.h>

#include "tests/support/run_scenario.hpp"

namespace fl {
namespace {

using ::testing::HasSubstr;

std::string text_of(const std::string& layers, const std::string& local) {
  return "name = 'minibatches'\nrounds = 1\n[data]\nname = 'mushrooms'\nrows = 66\n[partition]\nkind = 'contiguous'\nclients = "
         "2\n[model]\nkind = 'neural_network'\nlayers = [" +
         layers + "]\n[local]\nkind = 'sgd'\nlearning_rate = 0.1\n" + local + "\n";
}
const std::string kBatchNorm = "'dense(4)', 'batch_norm', 'relu', 'dense(classes)'";

std::string refusal_of_minibatches(const std::string& text) {
  try {
    const test::OneRun<float> run(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(MinibatchesTest, OneValuePerChannelIsRefusedBeforeTheRun) {
  EXPECT_THAT(refusal_of_minibatches(text_of(kBatchNorm, "batch = 32\nepochs = 1")),
              HasSubstr("local.batch: client 0 has 33 rows, so that the last minibatch of its epochs with batch = 32 has 1 row"));
  EXPECT_THAT(refusal_of_minibatches(text_of(kBatchNorm, "batch = 1\nsteps = 3")), HasSubstr("local.batch: a minibatch has 1 row"));
  EXPECT_EQ(refusal_of_minibatches(text_of(kBatchNorm, "batch = 31\nepochs = 1")), "");
  EXPECT_EQ(refusal_of_minibatches(text_of(kBatchNorm, "batch = 32\nsteps = 3")), "") << "steps draw whole minibatches";
}

TEST(MinibatchesTest, OtherNetworksTakeSingleRows) {
  EXPECT_EQ(refusal_of_minibatches(text_of("'dense(4)', 'group_norm', 'relu', 'dense(classes)'", "batch = 1\nepochs = 1")), "");
  EXPECT_THAT(refusal_of_minibatches(text_of("'dense(4)', 'residual([dense(4), batch_norm])', 'dense(classes)'", "batch = 1\nsteps = 1")),
              HasSubstr("one value per channel for batch_norm"))
      << "also inside of a layer";
}

TEST(MinibatchesTest, AClientWithOneRowIsNamed) {
  std::string text = text_of(kBatchNorm, "batch = 4\nepochs = 1");
  text.replace(text.find("clients = 2"), 11, "clients = 66");
  EXPECT_THAT(refusal_of_minibatches(text), HasSubstr("local.batch: client 0 has 1 row,"));
  text.replace(text.find("epochs = 1"), 10, "steps = 2 ");
  EXPECT_THAT(refusal_of_minibatches(text), HasSubstr("evaluate.gradient: client 0 has 1 row,"));
  EXPECT_EQ(refusal_of_minibatches(text + "[evaluate]\ngradient = 'never'\n"), "") << "minibatches with replacement have 4 rows";
}

TEST(MinibatchesTest, AWholeMinibatchIsCounted) {
  const auto need = [](const std::string& layers, const std::string& local) {
    test::OneRun<float> run(text_of(layers, local) + "[evaluate]\ngradient = 'never'\n");
    return std::pair{run->whole_minibatch(), run->size_bytes()};
  };
  const auto [small, small_bytes] = need(kBatchNorm, "batch = 100\nsteps = 1");
  const auto [large, large_bytes] = need(kBatchNorm, "batch = 100000\nsteps = 1");
  EXPECT_EQ(large.rows, 100000u);
  EXPECT_GT(large.bytes, 100000u * (112 + 3 * 4 + 2) * sizeof(float)) << "inputs and outputs of all layers";
  EXPECT_EQ(large_bytes - small_bytes, large.bytes - small.bytes);
  EXPECT_EQ(need("'dense(4)', 'relu', 'dense(classes)'", "batch = 100000\nsteps = 1").first.rows, 0u);
}

}  // namespace
}  // namespace fl
