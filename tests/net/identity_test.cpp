// Tests that a run over sockets has the bytes of the simulated one, for every method.
#include <gtest/gtest.h>

#include "tests/net/network_run.hpp"
#include "tests/support/every_method.hpp"

namespace fl {
namespace {

class NetworkIdentity : public testing::TestWithParam<test::Method> {};

TEST_P(NetworkIdentity, ARunOverSocketsIsTheSimulatedOne) {
  for (const std::string precision : {"float32", "float64"}) {
    const std::string text = test::text_of(GetParam(), precision);
    test::expect_same_run(text, test::run_simulated(text), test::run_over_network(text, {"0-1", "2,5", "3-4,6"}));
  }
}

// Peers without a client in a round receive nothing in it, and later the updates that they missed.
TEST_P(NetworkIdentity, SampledClientsOverSocketsAreTheSimulatedOnes) {
  test::Method method = GetParam();
  if (method.label == "marina" || method.label == "dasha") GTEST_SKIP() << "this method needs all clients in every round";
  if (method.more.find("[participation]") == std::string::npos) method.more += "[participation]\nkind = 'uniform'\nclients = 2\n";
  const std::string text = test::text_of(method, "float32");
  test::expect_same_run(text, test::run_simulated(text), test::run_over_network(text, {"0", "1", "2", "3", "4", "5", "6"}));
}

INSTANTIATE_TEST_SUITE_P(EveryMethod, NetworkIdentity, testing::ValuesIn(test::methods()), [](const auto& one) { return one.param.label; });

TEST(NetworkAbsence, EveryRuleOverSocketsIsTheSimulatedOne) {
  for (const std::string rule : {"'keep'", "'decay'\nabsent_decay = 0.5", "'drop'", "'server'"}) {
    test::Method method = test::methods().at(1);
    method.more = "[participation]\nkind = 'uniform'\nclients = 2\nabsent = " + rule + "\n";
    const std::string text = test::text_of(method, "float32");
    test::expect_same_run(text, test::run_simulated(text), test::run_over_network(text, {"0-2", "3", "4-6"}));
  }
}

}  // namespace
}  // namespace fl
