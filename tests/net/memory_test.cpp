// Tests that a run through the interface of peers needs no socket: server and clients are two halves of one process that pass frames on as
// bytes, and every row is that of the simulated run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/net/exact_run.hpp"
#include "tests/net/memory_peers.hpp"
#include "tests/support/data_folder.hpp"
#include "tests/support/every_method.hpp"

namespace fl {
namespace {

// With `known` the server has no training rows.
test::NetworkRun run_in_memory(const std::string& text, test::MemoryPeers& peers, const ServerData* known = nullptr) {
  test::NetworkRun run;
  net::RemoteSource clients(peers, [] { return true; });
  CellRunner runner(DataCatalog(""), {.threads = 1, .source = &clients, .server_data = known});
  run.result = runner.run(test::cell_of(text), [](const RoundRow&) { return true; });
  run.traffic = clients.traffic();
  return run;
}

using PeersInMemoryWithData = test::DataFolderTest;

TEST(PeersInMemory, PlayEveryMethodWithTheRowsOfTheSimulation) {
  for (const test::Method& method : test::methods()) {
    SCOPED_TRACE(method.label);
    const std::string text = test::text_of(method, "float32");
    test::MemoryPeers peers({"4-6", "0-1,3", "2"});
    test::expect_same_run(text, test::run_simulated(text), run_in_memory(text, peers));
    EXPECT_GE(peers.num_sent(net::Moment::opening), 14U);
    EXPECT_EQ(peers.num_sent(net::Moment::opening), peers.num_sent(net::Moment::closing));
  }
}

// Some clients take part, memories travel, and measures ask the clients for losses, gradients and norms.
TEST_F(PeersInMemoryWithData, PlaySampledRoundsAndMeasuresWithTheRowsOfTheSimulation) {
  for (const std::string label : {"ef14_momentum", "ef21", "powersgd"}) {
    SCOPED_TRACE(label);
    const std::vector<test::Method> all = test::methods();
    test::Method method = *std::ranges::find(all, label, &test::Method::label);
    method.more += "[participation]\nkind = 'uniform'\nclients = 4\n";
    if (label == "ef14_momentum") method.more += "absent = 'server'\n";
    std::string text = test::text_of(method, "float32");
    const std::string plain = "every = 3\n";
    text.replace(text.find(plain), plain.size(), "every = 2\ngradient = 'every'\nclients_every = 3\nmeasures = ['model_path']\n");
    const ServerData known = test::server_data_through_file(text, "", folder_ / "known");
    test::MemoryPeers peers({"0-2", "3-6"});
    test::expect_same_run(text, test::run_simulated(text), run_in_memory(text, peers, &known));
    EXPECT_GT(peers.num_sent(net::Moment::between), 14U) << "orders of sums";
  }
}

TEST(PeersInMemory, AStoppedServerIsInterrupted) {
  test::MemoryPeers peers({"0-6"});
  net::RemoteSource clients(peers, [] { return false; });
  CellRunner runner(DataCatalog(""), {.threads = 1, .source = &clients});
  const std::string text = test::text_of(test::methods().front(), "float32");
  EXPECT_THROW(static_cast<void>(runner.run(test::cell_of(text), [](const RoundRow&) { return true; })), net::Interrupted);
}

}  // namespace
}  // namespace fl
