// Tests `join --memory`: a scenario of a server takes no more of a peer's memory, whatever it asks for.
#include <gmock/gmock.h>

#include "tests/net/serve_and_join.hpp"
#include "tests/support/sanitized.hpp"

namespace fl {
namespace {

using test::Outcome;
using testing::HasSubstr;

class PeerMemory : public test::ServeAndJoin {
 protected:
  // Rows of some megabytes in double precision.
  void write_scenario(int features) const {
    write("small.toml", "name = 'small'\nrounds = 3\nprecision = 'float64'\n[data]\nkind = 'synthetic'\nclients = 4\nfeatures = " +
                            std::to_string(features) +
                            "\nclasses = 2\n[partition]\nkind = 'natural'\nclients = 4\n[model]\nkind = 'logistic_regression'\nl2 = 0.01\n"
                            "[local]\nkind = 'gradient'\nlearning_rate = 0.1\n[evaluate]\noptimum = false\n");
  }
};

TEST_F(PeerMemory, IsLimitedWhateverAServerAsksFor) {
  if (test::kSanitized) GTEST_SKIP() << "SANITIZER: its own memory is beyond every limit";
  write_scenario(60'000);
  const auto server = serve("served", {"--log", "json"});
  const Outcome peer = join("peer", address_of(*server), "0-3", {"--memory", "200M"})->wait();
  EXPECT_NE(peer.code, 0);
  EXPECT_THAT(peer.err, testing::AnyOf(HasSubstr("--memory allows"), HasSubstr("out of memory")));
  const auto is_told = [&] {
    const std::string said = read("server/stderr.txt");
    return said.find("it has no memory for the run") != std::string::npos ||
           said.find("does not fit its data and settings") != std::string::npos;
  };
  EXPECT_TRUE(server->wait_until(is_told));
  server->signal(SIGTERM);
  EXPECT_EQ(server->wait().code, 143);
}

TEST_F(PeerMemory, IsEnoughForAnOrdinaryRun) {
  if (test::kSanitized) GTEST_SKIP() << "SANITIZER: its own memory is beyond every limit";
  write_scenario(50);
  const auto server = serve("served");
  const auto peer = join("peer", address_of(*server), "0-3", {"--memory", "200M"});
  EXPECT_EQ(server->wait().code, 0) << read("server/stderr.txt");
  EXPECT_EQ(peer->wait().code, 0) << read("peer/stderr.txt");
}

}  // namespace
}  // namespace fl
