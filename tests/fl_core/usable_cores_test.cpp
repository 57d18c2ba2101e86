// Tests of the cores that a process may use: its affinity, and the quota of its control groups in both versions.
#include "fl_core/memory/usable_cores.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace fl {
namespace {

class UsableCores : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "fedbits_cgroup_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  [[nodiscard]] int quota(const std::string& membership) const { return quota_cores(membership, root_.string()); }

  std::filesystem::path root_;
};

TEST_F(UsableCores, AreThoseOfTheAffinityMask) {
  int cores = 0;
  std::thread pinned([&cores] {  // affinity belongs to a thread, so that other tests keep theirs
    cpu_set_t mask;
    ASSERT_EQ(::sched_getaffinity(0, sizeof(mask), &mask), 0);
    int first = 0;
    while (!CPU_ISSET(first, &mask)) ++first;
    CPU_ZERO(&mask);
    CPU_SET(first, &mask);
    ASSERT_EQ(::sched_setaffinity(0, sizeof(mask), &mask), 0);
    cores = usable_cores();
  });
  pinned.join();
  EXPECT_EQ(cores, 1);
}

TEST_F(UsableCores, OfVersion2AreTheQuotaRoundedUp) {
  write("job/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota("0::/job\n"), 2);
  write("job/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota("0::/job\n"), 2);
  write("job/cpu.max", "max 100000\n");
  EXPECT_EQ(quota("0::/job\n"), 0);
}

TEST_F(UsableCores, AreBoundedByTheGroupsAbove) {
  write("slice/cpu.max", "300000 100000\n");
  write("slice/job/cpu.max", "700000 100000\n");
  EXPECT_EQ(quota("0::/slice/job\n"), 3);
  write("cpu.max", "100000 100000\n");
  EXPECT_EQ(quota("0::/slice/job\n"), 1);
  EXPECT_EQ(quota("0::/kubepods/pod7\n"), 1) << "a container sees its own group as the root";
}

TEST_F(UsableCores, OfVersion1AreTheQuotaOfTheControllerCpu) {
  write("cpu,cpuacct/job/cpu.cfs_quota_us", "250000\n");
  write("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota("5:memory:/other\n4:cpu,cpuacct:/job\n0::/\n"), 3);
  write("cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(quota("4:cpu,cpuacct:/job\n"), 0);
  write("cpu/job/cpu.cfs_quota_us", "100000\n");
  write("cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota("4:cpu,cpuacct:/job\n"), 1) << "the mount is often called cpu";
}

TEST_F(UsableCores, AreNotBoundedByTextThatIsNoQuota) {
  for (const char* text : {"", "max", "abc 100000", "0 100000", "-5 100000", "100000 0"}) {
    write("job/cpu.max", text);
    EXPECT_EQ(quota("0::/job\n"), 0) << text;
  }
  EXPECT_EQ(quota(""), 0);
  EXPECT_EQ(quota("nonsense\n0:only one colon\n"), 0);
}

}  // namespace
}  // namespace fl
