// Tests the description of layers for a GPU: by name, with plain numbers and the memory that they need.
#include "clients/learning/network_form.hpp"

#include <gmock/gmock.h>

#include "clients/nn/network.hpp"
#include "fl_core/config/error.hpp"

namespace fl::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

NetworkForm form_of_network(const std::vector<std::string>& layers, const Shape& input) {
  return *Network<float>(layers, input, {{"classes", 4}, {"vocabulary", 9}}).as_form();
}

// max_pool and relu change places, and each keeps its name; blanks are no part of one.
TEST(NetworkForm, LayersHaveTheNamesOfScenarios) {
  const NetworkForm form =
      form_of_network({"conv2d (3, 3)", "relu", "max_pool(2)", " flatten", "residual([dense(12), tanh])", "dense(classes)"}, {{1, 6, 6}});
  std::vector<std::string> names;
  for (const NetworkForm::Layer& layer : form.layers) names.push_back(layer.form.name);
  EXPECT_THAT(names, ElementsAre("conv2d", "max_pool", "relu", "flatten", "residual", "dense"));
  ASSERT_EQ(form.layers[4].form.networks.size(), 1u);
  EXPECT_EQ(form.layers[4].form.networks[0].layers[1].form.name, "tanh");
  EXPECT_EQ(form.layers[1].form.size("window_height"), 2u);
  EXPECT_FALSE(form.layers[3].form.memory.writes_output);
}

TEST(NetworkForm, LayersStateTheirMemory) {
  const auto memory = [](const std::string& layer, const Shape& input) { return form_of_network({layer}, input).layers[0].form.memory; };
  EXPECT_EQ(memory("group_norm(2)", {{6, 4, 5}}).kept, 2u * 2);
  EXPECT_EQ(memory("group_norm(2)", {{6, 4, 5}}).room, 2u * 6 * 2) << "two numbers in double for each channel";
  EXPECT_EQ(memory("batch_norm", {{6, 4, 5}}).kept, 3u * 6);
  EXPECT_EQ(memory("lstm(8)", {{5, 3}}).kept, 5u * 8 * 5);
  EXPECT_EQ(memory("lstm(8, last=true)", {{5, 3}}).kept, 5u * 8 * 6);
  EXPECT_EQ(memory("lstm(8)", {{5, 3}}).products.size(), 2u);
  const LayerMemory convolution = memory("conv2d(8, 3, padding=1)", {{2, 6, 7}});
  EXPECT_EQ(convolution.windows, 6u * 7 * 8 * 9) << "those of slopes by eight channels are more than those of two";
  EXPECT_EQ(memory("relu", {{9}}).kept + memory("relu", {{9}}).room, 0u);
}

TEST(NetworkForm, ANumberThatALayerDoesNotGiveIsNamed) {
  const LayerForm form({{"inputs", 3}, {"rate", 0.5}}, {}, "dense");
  EXPECT_EQ(form.size("inputs"), 3u);
  EXPECT_EQ(form.number("rate"), 0.5);
  const auto said = [&form](const std::string& number, bool is_size) {
    try {
      static_cast<void>(is_size ? static_cast<double>(form.size(number)) : form.number(number));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(said("outputs", false), HasSubstr("\"dense\" asks for the number \"outputs\""));
  EXPECT_THAT(said("outputs", false), HasSubstr("it gives inputs, rate"));
  EXPECT_THAT(said("rate", true), HasSubstr("takes \"rate\" for a size"));
  EXPECT_EQ(said("inputs", true), "");
}

// Whatever the build is: a layer that only the CPU knows is found, also inside of others.
TEST(NetworkForm, ALayerWithoutACudaHalfIsFound) {
  NetworkForm inner, outer;
  inner.layers.push_back({.form = LayerForm({}, {}, "nowhere")});
  outer.layers.push_back({.form = LayerForm({}, {}, "nowhere_else")});
  EXPECT_EQ(layer_without_cuda_half(inner, Precision::float32), "nowhere");
  EXPECT_EQ(layer_without_cuda_half(outer, Precision::float32), "nowhere_else");
  EXPECT_EQ(layer_without_cuda_half({}, Precision::float32), "");
  try {
    require_cuda_halves(inner, Precision::float64);
    ADD_FAILURE() << "nothing was said";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("layer \"nowhere\" has no CUDA half for float64"));
    EXPECT_THAT(error.what(), HasSubstr("--device cpu"));
  }
}

}  // namespace
}  // namespace fl::nn
