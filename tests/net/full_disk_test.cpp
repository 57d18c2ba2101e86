// Tests `serve` and `join` whose disk is full: what fits is whole, the error names the place, and after making room the run goes on.
#include <gmock/gmock.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>

#include "scenarios/results/run_store.hpp"
#include "tests/net/serve_and_join.hpp"

namespace fl {
namespace {

using test::Outcome;
using testing::HasSubstr;

class FullDiskTest : public test::ServeAndJoin {
 protected:
  void TearDown() override {
    ::umount((folder_ / "disk").c_str());
    ServeAndJoin::TearDown();
  }
  // False where this process may not mount.
  [[nodiscard]] bool mount_disk(const std::string& size, int flags = 0) const {
    std::filesystem::create_directories(folder_ / "disk");
    return ::mount("tmpfs", (folder_ / "disk").c_str(), "tmpfs", static_cast<unsigned long>(flags), ("size=" + size).c_str()) == 0;
  }
  // A run whose clients have state, and which sends each of them some kilobytes in each of its rounds.
  void write_scenario(int rounds) const {
    write("small.toml",
          "name = 'small'\nrounds = " + std::to_string(rounds) +
              "\n[data]\nkind = 'synthetic'\nclients = 4\nfeatures = 2000\nclasses = 2\n[partition]\nkind = 'natural'\nclients = 4\n"
              "[model]\nkind = 'logistic_regression'\nl2 = 0.01\n[evaluate]\nevery = 1\n[compressor.up]\nkind = 'top_k'\nratio = 0.1\n"
              "[feedback.up]\nkind = 'ef14'\n");
  }
  [[nodiscard]] std::string checksum_in(const std::string& out) const {
    const std::vector<RunRecord> runs = RunStore::open(folder_ / out, RunStore::Mode::read).list();
    return runs.size() == 1 && runs[0].status == RunStatus::done ? runs[0].checksum : "";
  }
};

// The peer ends with an error that names its folder; another one goes on from there, and the run has the bytes of an undisturbed one.
TEST_F(FullDiskTest, OfAPeerEndsItWithItsStateWhole) {
  write_scenario(200);
  ASSERT_EQ(fedbits({"run", "small.toml", "--out", "simulated"}).code, 0);
  if (!mount_disk("300k")) GTEST_SKIP() << "NO MOUNT: " << std::strerror(errno);
  const auto server = serve("served", {"--patience", "60"});
  const std::string address = address_of(*server);
  const auto other = join("other", address, "2-3");
  const auto first = join("first", address, "0-1", {"--state", (folder_ / "disk/state").string()});
  const Outcome ended = first->wait();
  EXPECT_EQ(ended.code, 2) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("disk/state"));
  EXPECT_THAT(ended.err, HasSubstr("No space left on device"));
  ASSERT_TRUE(mount_disk("16m", MS_REMOUNT));
  const auto second = join("second", address, "0-1", {"--state", (folder_ / "disk/state").string()});
  EXPECT_EQ(second->wait().code, 0) << read("second/stderr.txt");
  EXPECT_EQ(other->wait().code, 0) << read("other/stderr.txt");
  EXPECT_EQ(server->wait().code, 0) << read("server/stderr.txt");
  EXPECT_EQ(checksum_in("served"), checksum_in("simulated"));
  EXPECT_NE(checksum_in("served"), "");
}

// The server ends with an error that names its store; its peers are told, and the same command goes on where the checkpoint was.
TEST_F(FullDiskTest, OfAServerEndsItAndThePeers) {
  write_scenario(1000);
  ASSERT_EQ(fedbits({"run", "small.toml", "--out", "simulated"}).code, 0);
  if (!mount_disk("300k")) GTEST_SKIP() << "NO MOUNT: " << std::strerror(errno);
  {
    const auto server = serve("disk/served", {"--checkpoint-rounds", "100"});
    const std::string address = address_of(*server);
    const auto peer = join("first", address, "0-3", {"--state", (folder_ / "state").string()});
    const Outcome ended = server->wait();
    EXPECT_NE(ended.code, 0);
    EXPECT_THAT(ended.err, HasSubstr("disk/served"));
    const Outcome told = peer->wait();
    EXPECT_NE(told.code, 0);
    EXPECT_THAT(told.err, HasSubstr("its run has ended with an error"));
    const bool has_store = exists("disk/served/results.sqlite");
    EXPECT_TRUE(!has_store || RunStore::open(folder_ / "disk/served", RunStore::Mode::read).list().empty()) << "no half run is stored";
  }
  ASSERT_TRUE(mount_disk("64m", MS_REMOUNT));
  const auto server = serve("disk/served", {"--resume"});
  const auto peer = join("second", address_of(*server), "0-3", {"--state", (folder_ / "state").string()});
  EXPECT_EQ(server->wait().code, 0) << read("server/stderr.txt");
  EXPECT_EQ(peer->wait().code, 0) << read("second/stderr.txt");
  EXPECT_EQ(checksum_in("disk/served"), checksum_in("simulated"));
}

}  // namespace
}  // namespace fl
