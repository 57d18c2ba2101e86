// Compares postprocessors on the GPU with the CPU's, byte for byte, on odd sizes, rows in another order and extreme numbers. Skipped
// without a GPU.
#include "compressors/postprocessors/postprocessor.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "fl_core/config/registry.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/memory/thread_pool.hpp"
#include "fl_core/random/random.hpp"
#include "tests/gpu/first_difference.hpp"
#include "tests/gpu/gpu_there.hpp"

namespace fl {
namespace {

using test::Where;

// Vectors from the smallest to the largest numbers: row k is a multiple by 10 to a power that grows with k.
template <class T>
std::vector<T> rows_of_all_sizes(std::uint32_t K, std::size_t P) {
  const int digits = sizeof(T) == sizeof(float) ? 37 : 305;
  std::vector<T> all(K * P);
  for (std::uint32_t k = 0; k < K; ++k) {
    RandomSequence random(7, Purpose::synthetic_data, k);
    const double size = k == 0 ? 0 : std::pow(10.0, digits * (2.0 * k / (K - 1) - 1));
    for (std::size_t j = 0; j < P; ++j) all[k * P + j] = static_cast<T>(size * (random.uniform() - 0.5));
  }
  return all;
}

template <class T>
void expect_same_rows(const std::string& name, const Options& options, const std::string& what, std::uint32_t K, std::size_t P) {
  const std::vector<T> before = rows_of_all_sizes<T>(K, P);
  Buffer<T> there(K * P, Device::managed);
  std::vector<T> here = before;
  std::copy(before.begin(), before.end(), there.begin());
  Buffer<std::uint32_t> rows(K, Device::managed);
  RunSettings run;
  run.num_clients = K;
  run.P = P;
  run.weights.assign(K, 1.0 / K);
  RoundOrder order;
  for (std::uint32_t k = 0; k < K; ++k) {
    order.cohort.push_back(k);
    rows[k] = (3 * k + 1) % K;
  }
  const std::vector<T> reference(P);
  ClientState<T> state(K, K, P);
  SharedState<T> shared(P);
  std::vector<double> work(K, 1.0);
  ClientBlock<T> block{.first = 0, .K = K, .clients = order.cohort, .vectors = {}, .messages = {}, .work = work};
  const ClientRound<T> round{RoundView<T>{run, order, reference}, state, shared};
  const auto change = [&](Device device, const Exec& exec, T* data) {
    block.vectors = {{data, rows.data(), K, P, P}};
    make_part<Postprocessor<T>>("postprocessor", name, options, device, kPrecisionOf<T>)->on_client(exec, round, block, 0);
    synchronise(exec);
  };
  ThreadPool pool(1);
  change(Device::cpu, pool.exec(0), here.data());
  DeviceStream stream(Device::cuda);
  Workspace workspace(Device::cuda);
  Exec exec{.device = Device::cuda, .stream = stream.get(), .workspace = &workspace};
  change(Device::cuda, exec, there.data());
  EXPECT_TRUE(test::same_words(Where{.what = name, .precision = to_string(kPrecisionOf<T>), .more = what}, "vectors", here, there));
  EXPECT_NE(here, before) << what << ": nothing was changed";
}

class GpuPostprocessor : public testing::Test {
 protected:
  void SetUp() override {
    if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  }
};

TEST_F(GpuPostprocessor, NormClippingGivesTheBytesOfTheCpu) {
  for (const std::string norm : {"l2", "infinity"})
    for (const double limit : {1.0, 1e-30})
      for (const std::size_t P : {1u, 31u, 2049u, 5000u}) {
        Options options = Registry::instance().default_options("postprocessor", "norm_clipping");
        Schema schema = options.schema();
        ASSERT_FALSE(schema.find("limit")->assign(Value{limit}));
        ASSERT_FALSE(schema.find("norm")->assign(Value{norm}));
        const std::string what = norm + ", limit " + std::to_string(limit) + ", " + std::to_string(P) + " parameters";
        expect_same_rows<float>("norm_clipping", options, what, 7, P);
        expect_same_rows<double>("norm_clipping", options, what, 7, P);
      }
}

TEST_F(GpuPostprocessor, EveryOneHasBothHalves) {
  for (const std::string& name : Registry::instance().names("postprocessor"))
    for (const Precision precision : {Precision::float32, Precision::float64})
      EXPECT_TRUE(Registry::instance().contains("postprocessor", name, Device::cuda, precision)) << name;
}

}  // namespace
}  // namespace fl
