// Tests layers that are not part of the library: prelu of examples/, whose two files are linked into this program and which trains on both
// devices; and a layer without a CUDA half, which a run on a GPU rejects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "clients/learning/device_room.hpp"
#include "clients/nn/module.hpp"
#include "tests/gpu/first_difference.hpp"
#include "tests/gpu/gpu_there.hpp"
#include "tests/support/run_scenario.hpp"

namespace fl {
namespace nn {
namespace {

// Halves every number, on the CPU alone. It states memory all the same, for the figures below.
template <class T>
class OnlyOnCpu final : public Module<T> {
 public:
  explicit OnlyOnCpu(const NoOptions&) {}
  Shape bind(const Shape& input) override {
    n_ = input.size();
    return input;
  }
  [[nodiscard]] std::optional<LayerForm> as_form() const override {
    return LayerForm({}, {.kept = 1000, .room = 500, .windows = 70, .products = {{2, 3, 700}}});
  }
  void forward(const Pass& pass, const T*, const T* in, T* out, T*) const override {
    for (std::size_t j = 0; j < pass.B * n_; ++j) out[j] = in[j] / 2;
  }
  void backward(const Pass& pass, const T*, const T*, const T*, const T*, const T* d_out, T* d_in, T*) const override {
    for (std::size_t j = 0; d_in != nullptr && j < pass.B * n_; ++j) d_in[j] = d_out[j] / 2;
  }

 private:
  std::size_t n_ = 0;
};
FL_REGISTER_PART(Module, OnlyOnCpu, NoOptions, (PartInfo{"layer", "only_on_cpu", "half of every number", ""}));

}  // namespace
}  // namespace nn

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string own_layer_study(const std::string& layers, const std::string& precision = "float32") {
  return "name = 'own'\nrounds = 4\nprecision = '" + precision +
         "'\n[data]\nkind = 'synthetic'\nclients = 5\nfeatures = 13\nclasses = 4\n[partition]\nkind = 'natural'\nclients = 5\n"
         "[model]\nkind = 'neural_network'\nlayers = " +
         layers + "\n[evaluate]\nevery = 4\noptimum = false\n[local]\nkind = 'sgd'\nsteps = 3\nbatch = 6\nlearning_rate = 0.2\n";
}

template <class T>
std::vector<T> own_layer_model(const std::string& text, Device device) {
  test::OneRun<T> run(text, {.threads = 2, .device = device});
  run.play(1, 4);
  return run.model();
}

template <class T>
void expect_same_training(const std::string& layers, const std::string& precision, double tolerance) {
  const std::string text = own_layer_study(layers, precision);
  const auto on_cpu = own_layer_model<T>(text, Device::cpu), on_gpu = own_layer_model<T>(text, Device::cuda);
  const test::Where where{.what = "layers " + layers, .P = on_cpu.size(), .precision = precision, .more = "4 rounds"};
  EXPECT_TRUE(near_vectors(where, "model", on_cpu, on_gpu, tolerance));
  EXPECT_TRUE(
      same_words(where.between("the first time", "the second time"), "model of the GPU", on_gpu, own_layer_model<T>(text, Device::cuda)));
}

TEST(GpuOwnLayer, TrainsOnBothDevices) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  expect_same_training<float>("['dense(7)', 'prelu(0.4)', 'dense(classes)']", "float32", 1e-4);
  expect_same_training<double>("['dense(6)', 'residual([dense(6), prelu])', 'prelu', 'dense(classes)']", "float64", 1e-10);
}

// The slopes move: a CUDA half whose gradient is lost would leave them where they begin.
TEST(GpuOwnLayer, LearnsItsParameters) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  const auto model = own_layer_model<float>(own_layer_study("['dense(7)', 'prelu(0.4)', 'dense(classes)']"), Device::cuda);
  const std::size_t begin = 7 * 13 + 7;
  for (std::size_t j = begin; j < begin + 7; ++j) EXPECT_NE(model[j], 0.4f) << j;
}

TEST(GpuOwnLayer, ALayerWithoutACudaHalfIsRefused) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  for (const char* layers : {"['dense(7)', 'only_on_cpu', 'dense(classes)']", "['residual([only_on_cpu, dense(13)])', 'dense(classes)']"}) {
    const std::string text = own_layer_study(layers);
    try {
      static_cast<void>(own_layer_model<float>(text, Device::cuda));
      ADD_FAILURE() << layers << " trains on the CPU unasked";
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr("model.layers"), HasSubstr("layer \"only_on_cpu\" has no CUDA half"), HasSubstr("use --device cpu")));
    }
    EXPECT_FALSE(own_layer_model<float>(text, Device::cpu).empty());
  }
}

TEST(GpuOwnLayer, EveryLayerOfOursHasACudaHalf) {
  const Registry& registry = Registry::instance();
  std::size_t layers = 0;
  for (const std::string& name : registry.names("layer")) {
    if (name == "only_on_cpu") continue;
    ++layers;
    for (const Precision precision : {Precision::float32, Precision::float64})
      EXPECT_TRUE(registry.contains("layer", name, Device::cuda, precision)) << name << ' ' << to_string(precision);
  }
  EXPECT_GE(layers, 17u);
}

// Each figure counts once: for E examples E (kept + output + room), their windows, and their product in parts of 512 terms.
TEST(GpuOwnLayer, TheMemoryThatALayerStatesIsAddedUp) {
  const auto bytes = [](const std::string& layers, std::size_t rows) {
    test::OneRun<float> run(own_layer_study(layers), {.threads = 1});
    return device_gradient_bytes(run.problem().model(), 1, rows);
  };
  for (const std::size_t rows : {1u, 6u, 300u}) {
    const std::uint64_t without = bytes("['dense(classes)']", rows), with = bytes("['only_on_cpu', 'dense(classes)']", rows);
    // One client: a wave of one, and room for one more.
    const std::uint64_t per_example = (1000 + 13 + 500) * sizeof(float);
    // [2 rows,700] [700,3] in two parts; with 300 rows the gradient's 3 x 700 sums over 600 rows, in two parts, are more.
    const std::uint64_t parts = (rows < 300 ? 2 * rows * 3 * 2 : 3 * 700 * 2) * sizeof(float);
    EXPECT_EQ(with - without, 2 * rows * per_example + rows * 70 * sizeof(float) + parts) << rows;
  }
}

}  // namespace
}  // namespace fl
