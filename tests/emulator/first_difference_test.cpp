// Tests the line with which the GPU tests begin a failure: its exact text, and that an altered outcome is found by the comparison that
// GpuParity makes.
#include "tests/gpu/first_difference.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/gpu/messages.hpp"
#include "tests/gpu/operator_outcome.cuh"
#include "tests/gpu/same_runs.hpp"

namespace fl::test {
namespace {

// Returns what a failing comparison prints before GoogleTest's own text, "" if it succeeds.
template <class Compare>
std::string printed(const Compare& compare) {
  testing::internal::CaptureStdout();
  const testing::AssertionResult result = compare();
  std::string text = testing::internal::GetCapturedStdout();
  EXPECT_EQ(text.empty(), static_cast<bool>(result));
  if (!text.empty()) {
    EXPECT_EQ(text, std::string(result.message()) + '\n');
  }
  return text;
}

const Where kWhere{.what = "operator top_k(ratio = 0.1)", .pattern = "ties", .K = 3, .P = 1000, .precision = "float32"};
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(FirstDifference, SaysWhatWasComparedWhereAndBothWords) {
  std::vector<float> cpu(3000, 1.0f), gpu = cpu;
  EXPECT_EQ(printed([&] { return same_words(kWhere, "state", cpu, gpu); }), "");
  gpu[17] = std::nextafter(1.0f, 2.0f);
  for (std::size_t i : {100u, 200u, 300u, 2999u}) gpu[i] = -7;
  EXPECT_EQ(
      printed([&] { return same_words(kWhere, "state", cpu, gpu); }),
      "FIRST DIFFERENCE: operator top_k(ratio = 0.1), pattern ties, K 3, P 1000, float32, state: [17] is 0x3f800000 (1) on the CPU and "
      "0x3f800001 (1.0000001) on the GPU; 5 of 3000 differ\n");
}

TEST(FirstDifference, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ(printed([] {
              return same_words({.what = "hadamard_rows"}, "rows", std::vector<std::uint8_t>{1, 2}, std::vector<std::uint8_t>{1, 255});
            }),
            "FIRST DIFFERENCE: hadamard_rows, rows: [1] is 0x02 (2) on the CPU and 0xff (255) on the GPU; 1 of 2 differ\n");
  const Where where = Where{.what = "run"}.with("").with("one block").with("4 rounds").between("alone", "beside others");
  EXPECT_EQ(printed([&] { return same_value(where, "checksum", std::string("12ab"), "34cd"); }),
            "FIRST DIFFERENCE: run, one block, 4 rounds, checksum: 12ab alone and 34cd beside others\n");
  EXPECT_EQ(printed([&] { return same_value(where, "checksum", std::string("12ab"), "12ab"); }), "");
}

TEST(FirstDifference, IsOneLineWhateverTheTextsAre) {
  EXPECT_EQ(printed([] { return same_value({.what = "kind = 'sgd'\nbatch = 3"}, "bits_up", 10, 11); }),
            "FIRST DIFFERENCE: kind = 'sgd' batch = 3, bits_up: 0x0000000a (10) on the CPU and 0x0000000b (11) on the GPU\n");
}

TEST(FirstDifference, ShowsNumbersOfEveryKind) {
  const auto words = [](auto a, auto b) { return printed([=] { return same_value({.what = "x"}, "y", a, b); }); };
  EXPECT_EQ(words(0.1, -0.5), "FIRST DIFFERENCE: x, y: 0x3fb999999999999a (0.1) on the CPU and 0xbfe0000000000000 (-0.5) on the GPU\n");
  EXPECT_EQ(words(std::int8_t{-1}, std::int8_t{7}), "FIRST DIFFERENCE: x, y: 0xff (-1) on the CPU and 0x07 (7) on the GPU\n");
  EXPECT_EQ(words(Positions::all, Positions::factors), "FIRST DIFFERENCE: x, y: 0x00 (0) on the CPU and 0x02 (2) on the GPU\n");
  EXPECT_EQ(words(true, false), "FIRST DIFFERENCE: x, y: 0x01 (1) on the CPU and 0x00 (0) on the GPU\n");
  EXPECT_EQ(words(std::size_t{3}, std::size_t{4}),
            "FIRST DIFFERENCE: x, y: 0x0000000000000003 (3) on the CPU and 0x0000000000000004 (4) on the GPU\n");
}

TEST(FirstDifference, ComparesNanByBitsOrAsOneNumber) {
  const std::vector<float> cpu{kNaN, 1}, gpu{-kNaN, 1}, number{2, 1}, zero{0, 1}, minus_zero{-0.0f, 1};
  EXPECT_EQ(printed([&] { return same_words({.what = "x"}, "y", cpu, cpu); }), "");
  EXPECT_EQ(printed([&] { return same_words({.what = "x"}, "y", cpu, gpu); }),
            "FIRST DIFFERENCE: x, y: [0] is 0x7fc00000 (nan) on the CPU and 0xffc00000 (-nan) on the GPU; 1 of 2 differ\n");
  EXPECT_EQ(printed([&] { return same_numbers({.what = "x"}, "y", cpu, gpu); }), "");
  EXPECT_EQ(printed([&] { return same_numbers({.what = "x"}, "y", cpu, number); }),
            "FIRST DIFFERENCE: x, y: [0] is 0x7fc00000 (nan) on the CPU and 0x40000000 (2) on the GPU; 1 of 2 differ\n");
  EXPECT_EQ(printed([&] { return same_numbers({.what = "x"}, "y", zero, minus_zero); }),
            "FIRST DIFFERENCE: x, y: [0] is 0x00000000 (0) on the CPU and 0x80000000 (-0) on the GPU; 1 of 2 differ\n");
}

TEST(FirstDifference, SaysBothSizes) {
  const std::vector<int> three{1, 2, 3}, two{1, 2}, other{1, 5};
  EXPECT_EQ(printed([&] { return same_words({.what = "x"}, "positions", three, two); }),
            "FIRST DIFFERENCE: x, positions: 3 entries on the CPU and 2 entries on the GPU\n");
  EXPECT_EQ(
      printed([&] { return same_words({.what = "x"}, "positions", three, other); }),
      "FIRST DIFFERENCE: x, positions: 3 entries on the CPU and 2 entries on the GPU; [1] is 0x00000002 (2) on the CPU and 0x00000005 (5) "
      "on the GPU; 1 of 2 differ\n");
}

TEST(FirstDifference, SaysTheBound) {
  const std::vector<double> cpu{1, 2, kNaN, 4}, gpu{1.25, 2.5, kNaN, 8};
  EXPECT_EQ(printed([&] { return near_numbers({.what = "x"}, "y", cpu, gpu, 4); }), "");
  EXPECT_EQ(
      printed([&] { return near_numbers({.what = "x"}, "y", cpu, gpu, 0.25); }),
      "FIRST DIFFERENCE: x, y: [1] is 0x4000000000000000 (2) on the CPU and 0x4004000000000000 (2.5) on the GPU; 2 of 4 differ by more "
      "than the bound of 0.25\n");
  EXPECT_EQ(printed([&] { return near_value({.what = "x"}, "loss", 1, 1.5, 0.5); }), "");
  EXPECT_EQ(
      printed([&] { return near_value({.what = "x"}, "loss", 1, 1.5, 0.25); }),
      "FIRST DIFFERENCE: x, loss: 0x3ff0000000000000 (1) on the CPU and 0x3ff8000000000000 (1.5) on the GPU; they differ by more than the "
      "bound of 0.25\n");
  EXPECT_NE(printed([&] { return near_value({.what = "x"}, "loss", 1, kNaN, 0.25); }), "");
}

// |b - a| / |a| = 4 / 8; each of four entries has a share of 0.25 * 8 / 2.
TEST(FirstDifference, SaysTheRelativeErrorOfVectors) {
  const std::vector<double> cpu{4, 4, 4, 4};
  EXPECT_EQ(printed([&] { return near_vectors({.what = "x"}, "model", cpu, std::vector<double>{4, 4, 0, 4}, 0.5); }), "");
  EXPECT_EQ(printed([&] {
              return near_vectors({.what = "x"}, "model", cpu, std::vector<double>{4, 4, 0, 4}, 0.25);
            }),
            "FIRST DIFFERENCE: x, model, relative error 0.5 above the bound of 0.25: [2] is 0x4010000000000000 (4) on the CPU and "
            "0x0000000000000000 (0) on the GPU; 1 of 4 differ by more than 1\n");
  EXPECT_NE(printed([&] { return near_vectors({.what = "x"}, "model", cpu, std::vector<double>{4, 4, 4}, 0.25); }), "");
  EXPECT_NE(printed([&] { return near_vectors({.what = "x"}, "model", cpu, std::vector<double>{4, 4, kNaN, 4}, 0.25); }), "");
}

// These tests alter one of two equal outcomes of an operator. The comparison that GpuParity uses has to report it.
class AlteredOutcome : public testing::Test {
 protected:
  static void TearDownTestSuite() { release_rooms(); }
  static constexpr std::uint32_t kClients = 3;
  static constexpr std::size_t kLength = 1000;

  [[nodiscard]] Outcome<float> on(Device device) const {
    return compress_on(device, tested_, model_scope(kLength), StateRule::residual, make_block<float>(Pattern::ties, kClients, kLength));
  }
  [[nodiscard]] std::string compare(const Outcome<float>& cpu, const Outcome<float>& gpu) const {
    const Where where = of_vectors<float>(tested_.text(), Pattern::ties, kClients, model_scope(kLength));
    return printed([&] { return same_outcome(where, cpu, gpu); });
  }
  const OperatorCase tested_{"top_k", "top_k", {{"ratio", Value{0.1}}}};
  const std::string begin_ = "FIRST DIFFERENCE: operator top_k(ratio = 0.1), pattern ties, K 3, P 1000, float32, 1 segment, ";
};

TEST_F(AlteredOutcome, IsFoundInEveryArray) {
  const Outcome<float> cpu = on(Device::cpu);
  EXPECT_EQ(compare(cpu, on(Device::cuda)), "");
  Outcome<float> gpu = on(Device::cuda);
  gpu.state[2017] += 1.5f;
  EXPECT_THAT(compare(cpu, gpu),
              testing::AllOf(testing::StartsWith(begin_ + "state: [2017] is 0x"), testing::EndsWith(" on the GPU; 1 of 3000 differ\n")));
  gpu.messages[1].value[3] = 8;
  EXPECT_THAT(compare(cpu, gpu), testing::AllOf(testing::StartsWith(begin_ + "values of message 1: [3] is 0x"),
                                                testing::EndsWith(" and 0x41000000 (8) on the GPU; 1 of 100 differ\n")));
  gpu.messages[1].index[99] = 1000;
  EXPECT_THAT(compare(cpu, gpu), testing::StartsWith(begin_ + "positions of message 1: [99] is 0x"));
  gpu.messages[0].counts[0] = 99;
  EXPECT_EQ(compare(cpu, gpu),
            begin_ + "counts of message 0: [0] is 0x00000064 (100) on the CPU and 0x00000063 (99) on the GPU; 1 of 1 differ\n");
}

TEST_F(AlteredOutcome, IsFoundBehindTheEndOfTheState) {
  const Outcome<float> cpu = on(Device::cpu);
  Outcome<float> gpu = on(Device::cuda);
  if (gpu.behind.empty()) GTEST_SKIP() << "memory is not kept from case to case";
  EXPECT_THAT(gpu.behind, testing::Each(0));
  gpu.behind[5] = 1;
  EXPECT_THAT(compare(cpu, gpu),
              testing::StartsWith(begin_ + "changes behind the end of state and memory: [5] is 0x00 (0) on the CPU and 0x01 (1)"));
}

// The line comes before GoogleTest's own text, and is in it as well.
TEST_F(AlteredOutcome, IsSaidFirst) {
  const Outcome<float> cpu = on(Device::cpu);
  Outcome<float> gpu = on(Device::cuda);
  gpu.messages.pop_back();
  const std::string line =
      "FIRST DIFFERENCE: x, number of messages: 0x0000000000000003 (3) on the CPU and 0x0000000000000002 (2) on the GPU";
  testing::internal::CaptureStdout();
  EXPECT_NONFATAL_FAILURE(EXPECT_TRUE(same_outcome({.what = "x"}, cpu, gpu)), line);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), line + '\n');
}

TEST(FirstDifference, OfRunsIsTheFirstRoundAndColumn) {
  RunResult cpu;
  cpu.record.status = RunStatus::done;
  cpu.record.checksum = "12ab";
  cpu.rows.resize(4);
  for (std::size_t r = 0; r < cpu.rows.size(); ++r) cpu.rows[r].round = r;
  RunResult gpu = cpu;
  EXPECT_EQ(printed([&] { return same_run({.what = "method ef14"}, cpu, gpu); }), "");
  gpu.record.checksum = "34cd";
  EXPECT_EQ(printed([&] { return same_run({.what = "method ef14"}, cpu, gpu); }),
            "FIRST DIFFERENCE: method ef14, checksum of the model: 12ab on the CPU and 34cd on the GPU\n");
  cpu.rows[2].train_loss = 0.5;
  gpu.rows[2].train_loss = 0.25;
  gpu.rows[3].bits_up = 7;
  EXPECT_EQ(
      printed([&] { return same_run({.what = "method ef14"}, cpu, gpu); }),
      "FIRST DIFFERENCE: method ef14, round 2, train_loss: 0x3fe0000000000000 (0.5) on the CPU and 0x3fd0000000000000 (0.25) on the GPU; 2 "
      "of 4 rounds differ, the checksums are 12ab on the CPU and 34cd on the GPU\n");
  gpu.record.status = RunStatus::failed;
  gpu.record.message = "an error";
  EXPECT_EQ(printed([&] { return same_run({.what = "method ef14"}, cpu, gpu); }),
            "FIRST DIFFERENCE: method ef14, status: the run on the GPU is not done: an error\n");
}

}  // namespace
}  // namespace fl::test
