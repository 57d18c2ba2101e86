// Tests recorded work, and choices by time. Skipped without a GPU.
#include "fl_core/ops/cuda/graph.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "fl_core/config/error.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/ops/cuda/measured_choice.hpp"
#include "tests/gpu/first_difference.hpp"
#include "tests/gpu/gpu_there.hpp"

namespace fl {
namespace {

class GpuRepeatedWork : public testing::Test {
 protected:
  void SetUp() override {
    if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
    exec_.device = Device::cuda;
    exec_.stream = stream_.emplace(Device::cuda).get();
    for (Buffer<int>* buffer : {&from_, &to_}) *buffer = Buffer<int>(1, Device::cuda);
  }
  // Copies x within the GPU, as repeated work, and gives what arrived.
  int copied(int x, std::uint64_t key) {
    copy_bytes(from_.data(), Device::cuda, &x, Device::cpu, sizeof x, exec_.stream);
    repeated_.run(exec_, std::span(&key, 1), [&] {
      ++done_;
      copy_bytes(to_.data(), Device::cuda, from_.data(), Device::cuda, sizeof x, exec_.stream);
    });
    int here = 0;
    copy_bytes(&here, Device::cpu, to_.data(), Device::cuda, sizeof here, exec_.stream);
    return here;
  }
  // Compares x with its copy.
  testing::AssertionResult copies(int x, std::uint64_t key) {
    const test::Where where{.what = "copy of a number as repeated work"};
    return same_value(where, "number of key " + std::to_string(key), x, copied(x, key));
  }
  Exec exec_;
  std::optional<DeviceStream> stream_;
  Buffer<int> from_, to_;
  cuda::RepeatedWork repeated_;
  int done_ = 0;
};

TEST_F(GpuRepeatedWork, IsRecordedTheSecondTimeAndReadsWhatMemoryHoldsThen) {
  for (const int x : {3, 5, 8, 13}) EXPECT_TRUE(copies(x, 1));
  EXPECT_EQ(done_, 2);  // as it is, and to be recorded
  EXPECT_EQ(repeated_.repeats(), 3u);
  EXPECT_TRUE(copies(21, 2));
  EXPECT_EQ(done_, 3);
  EXPECT_EQ(repeated_.repeats(), 3u);
}

TEST_F(GpuRepeatedWork, ThatCannotBeRecordedIsDone) {
  const std::uint64_t key = 1;
  int done = 0;
  for (int i = 0; i < 4; ++i)
    repeated_.run(exec_, std::span(&key, 1), [&] {
      if (++done == 2) throw DeviceError("not while it is recorded");
    });
  EXPECT_EQ(done, 5);
  EXPECT_EQ(repeated_.repeats(), 0u);
  EXPECT_TRUE(copies(34, 2));
  EXPECT_THROW(repeated_.run(exec_, std::span(&key, 1), [] { throw DeviceError("for good"); }), DeviceError);
}

TEST_F(GpuRepeatedWork, FewAreRemembered) {
  for (std::uint64_t key = 0; key < 1000; ++key) EXPECT_TRUE(copies(static_cast<int>(key), key));
  EXPECT_EQ(done_, 1000);
}

TEST(GpuMeasuredChoice, StaysWithTheFastestAfterAWarmTurn) {
  cuda::MeasuredChoice choice(3, std::nullopt);
  const std::vector<double> seconds{2, 1, 3};
  std::vector<std::size_t> ways;
  for (int turn = 0; turn < 12; ++turn) {
    const std::size_t way = choice.way();
    ways.push_back(way);
    choice.took(turn % 3 == 0 ? 0.001 : seconds[way]);
  }
  EXPECT_THAT(ways, testing::ElementsAre(0, 0, 0, 1, 1, 1, 2, 2, 2, 1, 1, 1));
  EXPECT_TRUE(choice.is_made());
  EXPECT_EQ(cuda::MeasuredChoice(1).way(), 0u);
}

// FEDBITS_CUDA_WAY: the way is taken from the first turn on, and measurements change nothing.
TEST(GpuMeasuredChoice, TakesTheWayThatIsAskedFor) {
  cuda::MeasuredChoice choice(3, 1);
  EXPECT_TRUE(choice.is_made());
  choice.took(1000);
  EXPECT_EQ(choice.way(), 1u);
  EXPECT_EQ(cuda::MeasuredChoice(3, 7).way(), 2u) << "the last one where there are fewer";
}

}  // namespace
}  // namespace fl
