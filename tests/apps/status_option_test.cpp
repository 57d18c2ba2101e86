// Tests `--status` of a binary without the network. tests/net tests it with one.
#include <gmock/gmock.h>

#include "tests/support/binary.hpp"

namespace fl {
namespace {

using StatusOption = test::BinaryTest;

TEST_F(StatusOption, WithoutTheNetworkItIsAnErrorThatSaysSo) {
  if (fedbits({"serve", "--help"}).code == 0) GTEST_SKIP() << "this fedbits has the network";
  write_small();
  for (const char* command : {"run", "sweep"}) {
    const test::Outcome outcome = fedbits({command, "small.toml", "--status", "0", "--out", "out"});
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_THAT(outcome.err, testing::HasSubstr("--status: this fedbits was built without the network (FL_NET=OFF)"));
    EXPECT_FALSE(exists("out"));
  }
}

}  // namespace
}  // namespace fl
