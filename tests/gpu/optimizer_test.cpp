// Compares the two halves of local optimizers: the same bits, whatever the number of clients. Skipped without a GPU.
#include <gtest/gtest.h>

#include <vector>

#include "clients/learning/local_optimizer.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/memory/workspace.hpp"
#include "fl_core/random/random.hpp"
#include "tests/gpu/first_difference.hpp"
#include "tests/gpu/gpu_there.hpp"

namespace fl {
namespace {

// Returns y and the optimizer's vectors after three steps of K clients, which have taken different numbers of steps before.
template <class T>
std::vector<T> stepped(const std::string& kind, Device device, std::uint32_t K, std::size_t P) {
  Options options = Registry::instance().default_options("local_optimizer", kind);
  Schema schema = options.schema();
  if (kind == "sgd") {
    EXPECT_FALSE(schema.find("momentum")->assign(Value{0.9}));
  } else if (kind == "adamw") {
    EXPECT_FALSE(schema.find("no_decay")->assign(Value{Value::List{Value{std::string("b")}}}));
  }
  const auto rule = make_part<LocalOptimizer<T>>("local_optimizer", kind, options, device, kPrecisionOf<T>);
  const Device memory = device == Device::cpu ? Device::cpu : Device::managed;
  const LayerTable layers{{{"a", 0, P / 2}, {"b", P / 2, 1}, {"c", P / 2 + 1, P - P / 2 - 1}}};
  std::vector<Buffer<T>> matrices;  // w, g, y, and the optimizer's
  for (std::size_t i = 0; i < 3 + rule->num_states(); ++i) matrices.emplace_back(K * P, memory);
  RandomSequence random(7, Purpose::synthetic_data);
  for (std::size_t i = 0; i < K * P; ++i) matrices[0].data()[i] = matrices[2].data()[i] = static_cast<T>(random.normal());
  const auto view = [&](std::size_t i) { return BatchView<T>{matrices[i].data(), nullptr, K, P, P}; };
  std::vector<BatchView<T>> states;
  for (std::size_t i = 3; i < matrices.size(); ++i) states.push_back(view(i));
  std::vector<std::uint64_t> count;
  for (std::uint32_t k = 0; k < K; ++k) count.push_back(k % 5);
  Workspace workspace(device);
  DeviceStream stream(device);
  const Exec exec{.device = device, .stream = stream.get(), .workspace = &workspace};
  for (int step = 0; step < 3; ++step) {
    synchronise(exec);
    for (std::size_t i = 0; i < K * P; ++i) matrices[1].data()[i] = i % 11 == 0 ? T(0) : static_cast<T>(random.normal());
    for (std::uint64_t& t : count) ++t;
    rule->step(exec, {.count = count, .gamma = 0.03, .layers = layers, .w = view(0), .g = view(1), .y = view(2), .states = states});
  }
  synchronise(exec);
  std::vector<T> all;
  for (std::size_t i = 2; i < matrices.size(); ++i) all.insert(all.end(), matrices[i].data(), matrices[i].data() + K * P);
  return all;
}

template <class T>
void expect_same_halves(const std::string& precision) {
  for (const std::string& kind : Registry::instance().names("local_optimizer")) {
    ASSERT_TRUE(Registry::instance().contains("local_optimizer", kind, Device::cuda, kPrecisionOf<T>)) << kind;
    for (const std::uint32_t K : {1U, 3U})
      for (const std::size_t P : {std::size_t{3}, std::size_t{1023}})
        EXPECT_TRUE(test::same_words({.what = kind, .precision = precision, .more = std::to_string(K) + " clients"}, "y and states",
                                     stepped<T>(kind, Device::cpu, K, P), stepped<T>(kind, Device::cuda, K, P)));
  }
}

TEST(GpuOptimizers, HaveTheBitsOfTheCpu) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  expect_same_halves<float>("float32");
  expect_same_halves<double>("float64");
}

}  // namespace
}  // namespace fl
