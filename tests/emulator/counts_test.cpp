// Tests the counts from which gpu_bench predicts (bench/gpu_counts.inc), and its predictions.
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "bench/gpu_cohort.hpp"
#include "bench/gpu_counts.hpp"
#include "bench/gpu_studies.hpp"

namespace fl::bench {
namespace {

TEST(GpuCounts, AreThereForEachRowOfTheBenchmark) {
  for (const Operator& one : compressed_rows()) EXPECT_NE(counted_row("operators", one.label), nullptr) << one.label;
  for (const Operator& one : summed_rows()) EXPECT_NE(counted_row("aggregation", one.label), nullptr) << one.label;
  for (const Study& study : training_studies(256)) {
    const CountedRow* row = counted_row("training", study.label);
    ASSERT_NE(row, nullptr) << study.label;
    EXPECT_NEAR(row->operations, study.operations, 1e-5 * study.operations) << study.label;
    EXPECT_EQ(row->share, study.steps_in_a_kernel ? kRegressionShare : share_of_tiles(row->products)) << study.label;
  }
  EXPECT_EQ(counted_row("operators", "none"), nullptr);
}

TEST(GpuCounts, AreNotBelowTheFloorsOfOperators) {
  for (const Operator& one : compressed_rows()) {
    const CountedRow* row = counted_row("operators", one.label);
    ASSERT_NE(row, nullptr) << one.label;
    EXPECT_GE(row->floor, one.bytes) << one.label;
    EXPECT_GE(row->moved, row->floor) << one.label;
    EXPECT_LE(row->distinct, row->moved) << one.label;
  }
}

// Numbers at single places take whole sectors, so that a floor in single bytes may be out of reach; a tenth above it in sectors is not.
TEST(GpuCounts, AreWithinATenthOfTheFloorsInSectors) {
  for (const CountedRow* row = kCountedRows; row->stage != nullptr; ++row) {
    EXPECT_GE(row->sectors, row->floor) << row->name;
    if (std::string(row->stage) == "training") continue;
    EXPECT_LE(row->moved, 1.1 * row->sectors) << row->stage << " " << row->name;
  }
  for (const Operator& one : compressed_rows()) {
    const CountedRow* row = counted_row("operators", one.label);
    ASSERT_NE(row, nullptr) << one.label;
    EXPECT_LE(row->moved, 1.1 * row->floor) << one.label;
  }
}

TEST(GpuCounts, PredictTheSlowerOfBytesAndOperations) {
  const Ceilings gpu{10, 4, 8, 16};
  EXPECT_EQ(predicted_seconds({"s", "bytes", 1, 1, 20, 5, 0, Products::full, 1}, 3, gpu), 6);     // 3 * 20 / 10
  EXPECT_EQ(predicted_seconds({"s", "cached", 1, 1, 20, 5, 1, Products::full, 1}, 2, gpu), 1);    // 2 * 5 / 10
  EXPECT_EQ(predicted_seconds({"s", "full", 1, 1, 20, 5, 16, Products::full, 1}, 1, gpu), 4);     // 16 / 4
  EXPECT_EQ(predicted_seconds({"s", "tf32", 1, 1, 20, 5, 16, Products::tf32, 1}, 1, gpu), 2);     // 16 / 8
  EXPECT_EQ(predicted_seconds({"s", "bf16", 1, 1, 20, 5, 16, Products::bf16, 0.25}, 1, gpu), 4);  // 16 / (16 / 4)
  EXPECT_EQ(predicted_seconds("operators", "none", 1, gpu), 0);
}

TEST(GpuCounts, TakeThePeaksOfTheGpuThatIsHere) {
  EXPECT_EQ(ceilings_of("NVIDIA H100 80GB HBM3", 3e12).tf32, kH100.tf32);
  EXPECT_EQ(ceilings_of("NVIDIA H200", 4e12).bytes, 4e12);
  EXPECT_EQ(ceilings_of("NVIDIA H200", 4e12).operations, kH200.operations);
  EXPECT_EQ(ceilings_of("another", 4e12).bf16, std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace fl::bench
