// Products of matrices on the GPU: how a product is divided among blocks changes no bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "clients/cuda/layer.hpp"
#include "clients/learning/network_form.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/memory/workspace.hpp"
#include "tests/gpu/first_difference.hpp"
#include "tests/gpu/gpu_there.hpp"
#include "tests/support/sanitized.hpp"

namespace fl {
namespace {

using test::Where;

// A dense layer without bias that several clients share, each with examples of its own.
struct SharedLayer {
  std::size_t examples, inputs, outputs;
  MatrixProducts products = MatrixProducts::full;

  // Returns the outputs [clients,examples,outputs] of clients first .. first+clients-1.
  [[nodiscard]] std::vector<float> outputs_of(std::size_t first, std::size_t clients) const {
    Workspace workspace(Device::cuda);
    const Exec exec{.device = Device::cuda, .workspace = &workspace};
    const Buffer<float> in = numbers(first * examples * inputs, clients * examples * inputs), w = numbers(7, outputs * inputs);
    Buffer<float> out(clients * examples * outputs, Device::cuda);
    const auto layer = cuda::make_device_layer<float>(
        {.form = dense_form(1, inputs, outputs, false), .begin = 0, .inputs = inputs, .outputs = outputs, .number = 0});
    layer->forward({.exec = exec, .clients = clients, .B = examples, .products = products}, {w.data(), 0}, in.data(), out.data());
    std::vector<float> here(out.size());
    copy_bytes(here.data(), Device::cpu, out.data(), Device::cuda, out.size() * sizeof(float));
    return here;
  }

 private:
  [[nodiscard]] static Buffer<float> numbers(std::size_t begin, std::size_t count) {
    std::vector<float> here;
    for (std::size_t i = begin; i < begin + count; ++i) here.push_back(static_cast<float>(std::sin(0.7 * static_cast<double>(i) + 1)));
    Buffer<float> there(count, Device::cuda);
    copy_bytes(there.data(), Device::cuda, here.data(), Device::cpu, count * sizeof(float));
    return there;
  }
};

// Compares the outputs of the first and of the last of many clients with those of the same client alone.
void expect_same_alone(const SharedLayer& layer, std::size_t clients) {
  const Where where{.what = "dense layer, products in " + std::string(to_string(layer.products)) + ", " + std::to_string(layer.examples) +
                            " x " + std::to_string(layer.outputs) + " sums of " + std::to_string(layer.inputs) + " terms",
                    .K = static_cast<std::uint32_t>(clients),
                    .precision = "float32",
                    .on_first = "among all clients",
                    .on_second = "alone"};
  const std::vector<float> all = layer.outputs_of(0, clients);
  const std::size_t each = all.size() / clients;
  for (const std::size_t k : {std::size_t{0}, clients - 1}) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(k * each);
    const std::vector<float> among(begin, begin + static_cast<std::ptrdiff_t>(each));
    EXPECT_TRUE(test::same_words(where, "outputs of client " + std::to_string(k), among, layer.outputs_of(k, 1)));
  }
}

class GpuProducts : public testing::Test {
 protected:
  void SetUp() override {
    if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
    if (test::kSanitized) GTEST_SKIP() << "under the sanitizers smaller products";
  }
};

// Long sums of few clients are taken in parts side by side, those of many as a whole.
TEST_F(GpuProducts, PartsOfLongSumsGiveTheBitsOfTheWhole) {
  for (const MatrixProducts products : {MatrixProducts::full, MatrixProducts::tf32, MatrixProducts::bf16})
    for (const std::size_t terms : {513u, 1024u, 1500u})
      expect_same_alone({.examples = 3, .inputs = terms, .outputs = 5, .products = products}, 256);
}

// Each form of tiles: of few rows, of some, and of many.
TEST_F(GpuProducts, EveryFormOfTilesGivesTheSameBitsInPartsAndWhole) {
  for (const std::size_t examples : {10u, 20u, 40u}) expect_same_alone({.examples = examples, .inputs = 520, .outputs = 40}, 256);
}

}  // namespace
}  // namespace fl
