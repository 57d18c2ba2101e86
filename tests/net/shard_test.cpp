// Tests peers that hold the rows of their own clients alone: their runs are the simulated ones, and other rows are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "net/wire/row_hashes.hpp"
#include "tests/net/exact_run.hpp"
#include "tests/support/data_folder.hpp"
#include "tests/support/every_method.hpp"

namespace fl {
namespace {

using testing::HasSubstr;

// Plays the scenario with one peer for each text of ids. Each peer has the shard that `shard_of` returns for its clients, and no data.
test::NetworkRun run_with_shards(const std::string& text, const std::vector<std::string>& hosted, const std::string& data_of_server,
                                 const std::function<std::shared_ptr<const ServerData>(const std::string&)>& shard_of,
                                 const ServerData* known = nullptr) {
  test::NetworkRun run;
  run.peer_errors.resize(hosted.size());
  std::vector<std::thread> peers;
  std::atomic<bool> has_failed = false;
  {
    net::PeerHub hub({});
    net::RemoteSource clients(hub, [&has_failed] { return !has_failed; });
    for (std::size_t i = 0; i < hosted.size(); ++i) {
      peers.emplace_back([&, i] {
        try {
          static_cast<void>(net::join_server({.port = hub.port(),
                                              .clients = net::parse_client_ranges(hosted[i]),
                                              .machine = {.data = "", .threads = 1, .paging = {}, .shard = shard_of(hosted[i])}},
                                             {}));
        } catch (const std::exception& error) {
          run.peer_errors[i] = error.what();
          has_failed = true;
        }
      });
    }
    try {
      CellRunner runner(DataCatalog(data_of_server), {.threads = 1, .source = &clients, .server_data = known});
      run.result = runner.run(test::cell_of(text), [](const RoundRow&) { return true; });
    } catch (const std::exception& error) {
      run.error = error.what();
    }
    run.counts = hub.counts();
    run.traffic = clients.traffic();
  }
  for (std::thread& peer : peers) peer.join();
  return run;
}

class Shards : public test::DataFolderTest {
 protected:
  void SetUp() override {
    DataFolderTest::SetUp();
    write("whole/toy", rows());
  }
  // Rows of four features and three classes; each number occurs once. `changed` = a row whose first feature is another one; -1 = none.
  [[nodiscard]] static std::string rows(int changed = -1) {
    std::ostringstream text;
    text.precision(17);
    for (int r = 0; r < 60; ++r) {
      text << r * 7 % 11 % 3;
      for (int j = 0; j < 4; ++j) text << ' ' << j + 1 << ':' << std::sin(0.37 * r + 1.3 * j + 0.1) + (r == changed && j == 0 ? 1 : 0);
      text << '\n';
    }
    return text.str();
  }
  [[nodiscard]] static std::string toy(const std::string& tables) {
    return "name = 'shards'\nrounds = 6\nprecision = 'float64'\n[data]\nname = 'toy'\nfeatures = 4\ntest_fraction = 0.2\n"
           "[partition]\nkind = 'dirichlet_class'\nbeta = 0.5\nmin_rows = 2\nclients = 7\n[evaluate]\nevery = 2\n" +
           tables;
  }
  // Returns a shard, through its file.
  [[nodiscard]] std::shared_ptr<const ServerData> shard(const std::string& text, const std::string& clients,
                                                        const std::string& data = "whole") const {
    std::vector<std::uint32_t> ids;
    for (const net::ClientRange& range : net::parse_client_ranges(clients))
      for (std::uint32_t client = range.first; client <= range.last; ++client) ids.push_back(client);
    ThreadPool pool(1);
    ServerData made(ids);
    made.add(parse_cells(text, "test.toml"), DataCatalog((folder_ / data).string()), pool);
    const std::vector<std::byte> bytes = made.bytes();
    write("shard-" + clients, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    return std::make_shared<const ServerData>(ServerData::read_shard(folder_ / ("shard-" + clients)));
  }
  void expect_simulated(const std::string& text) const {
    SCOPED_TRACE(text);
    CellRunner runner(DataCatalog((folder_ / "whole").string()), {.threads = 1});
    const RunResult simulated = runner.run(test::cell_of(text), [](const RoundRow&) { return true; });
    ASSERT_EQ(simulated.record.status, RunStatus::done) << simulated.record.message;
    const std::vector<std::string> hosted = {"0-1", "2,5", "3-4,6"};
    std::map<std::string, std::shared_ptr<const ServerData>> shards;
    for (const std::string& clients : hosted) shards[clients] = shard(text, clients);
    const auto shard_of = [&](const std::string& clients) { return shards.at(clients); };
    const test::NetworkRun network = run_with_shards(text, hosted, (folder_ / "whole").string(), shard_of);
    test::expect_same_run(text, simulated, network);
    test::expect_same_record(simulated.record, network.result.record);
    EXPECT_TRUE(network.counts.refused.empty());
  }
};

const std::string kConvexModel = "[model]\nkind = 'logistic_regression'\nl2 = 'L/1e3'\n";
const std::string kTopThree = "[compressor.up]\nkind = 'top_k'\nk = 3\n[feedback.up]\nkind = 'ef14'\n";

TEST_F(Shards, OfAConvexModelGiveTheSimulatedRun) {
  expect_simulated(toy(kConvexModel + kTopThree + "[local]\nkind = 'gradient'\nbatch = 2\nlearning_rate = '0.1/(L_max+l2)'\n"));
}

TEST_F(Shards, OfLocalEpochsAndSampledClientsGiveTheSimulatedRun) {
  expect_simulated(
      toy("[model]\nkind = 'neural_network'\nlayers = ['dense(5)', 'tanh', 'dense(classes)']\n" + kTopThree +
          "[local]\nkind = 'sgd'\nbatch = 3\nepochs = 2\nlearning_rate = 0.1\n[participation]\nkind = 'uniform'\nclients = 3\n"));
}

TEST_F(Shards, OfAMethodThatNeedsTheOptimumGiveTheSimulatedRun) {
  expect_simulated(toy("[model]\nkind = 'logistic_regression'\nl2 = 0.01\n" + kTopThree +
                       "[local]\nkind = 'gradient'\nlearning_rate = 0.1\nsubtract = 'optimum'\n"));
}

TEST_F(Shards, OfSparseDenseAndShiftedRowsGiveTheSimulatedRun) {
  const std::string local = "[evaluate]\nevery = 3\n[local]\nkind = 'gradient'\nbatch = 3\nlearning_rate = 0.05\n" + kTopThree +
                            "[model]\nkind = 'logistic_regression'\nl2 = 0.01\n";
  for (const std::string data :
       {"[data]\nname = 'mushrooms'\nrows = 200\nstorage = 'sparse'\n[partition]\nkind = 'shuffled'\nclients = 7\n",
        "[data]\nname = 'mushrooms'\nrows = 200\nstorage = 'dense'\n[partition]\nkind = 'shuffled'\nclients = 7\n",
        "[data]\nkind = 'synthetic'\nclients = 7\nfeatures = 9\nclasses = 5\n[partition]\nkind = 'natural'\nclients = 7\n"})
    expect_simulated("name = 'kinds'\nrounds = 5\nprecision = 'float32'\n" + data + local);
}

// A server without training rows asks the peers for all measures, which they compute from their shards.
TEST_F(Shards, AnswerMeasuresOfAServerWithoutRows) {
  std::string text = toy(kConvexModel + kTopThree + "[local]\nkind = 'gradient'\nlearning_rate = 0.1\n");
  text.insert(text.find("every = 2\n") + 10, "gradient = 'every'\nclients_every = 2\n");
  CellRunner runner(DataCatalog((folder_ / "whole").string()), {.threads = 1});
  const RunResult simulated = runner.run(test::cell_of(text), [](const RoundRow&) { return true; });
  const ServerData known = test::server_data_through_file(text, (folder_ / "whole").string(), folder_ / "known");
  const std::vector<std::string> hosted = {"0-1", "2,5", "3-4,6"};
  std::map<std::string, std::shared_ptr<const ServerData>> shards;
  for (const std::string& clients : hosted) shards[clients] = shard(text, clients);
  const auto shard_of = [&](const std::string& clients) { return shards.at(clients); };
  const test::NetworkRun network = run_with_shards(text, hosted, "", shard_of, &known);
  test::expect_same_run(text, simulated, network);
  test::expect_same_record(simulated.record, network.result.record);
}

TEST_F(Shards, WithOtherRowsAreRefusedAndTheClientIsNamed) {
  const std::string text = toy(kConvexModel + kTopThree + "[local]\nkind = 'gradient'\nlearning_rate = 0.1\n");
  ThreadPool pool(1);
  const FederatedProblem<double> problem(test::cell_of(text).scenario, DataCatalog((folder_ / "whole").string()), pool);
  const int row = static_cast<int>(problem.shards()[5].front());
  write("other/toy", rows(row));
  const auto shards = [&](const std::string& clients) { return shard(text, clients, "other"); };
  const test::NetworkRun run = run_with_shards(text, {"2,5"}, (folder_ / "whole").string(), shards);
  EXPECT_THAT(run.peer_errors[0], HasSubstr("--shard: the rows of client 5 are not those of the run"));
  EXPECT_NE(run.error, "");
}

// The split is that of the server, because it depends on labels alone.
TEST_F(Shards, AreNotNeededToFindOtherRowsInADataSet) {
  const std::string text = toy(kConvexModel + kTopThree + "[local]\nkind = 'gradient'\nlearning_rate = 0.1\n");
  ThreadPool pool(1);
  const FederatedProblem<double> problem(test::cell_of(text).scenario, DataCatalog((folder_ / "whole").string()), pool);
  write("other/toy", rows(static_cast<int>(problem.shards()[5].front())));
  const ServerData known = test::server_data_through_file(text, (folder_ / "whole").string(), folder_ / "known");
  const test::NetworkRun run = test::run_without_rows(text, {"2,5"}, known, (folder_ / "other").string(), "");
  EXPECT_THAT(run.peer_errors[0], HasSubstr("--data: the rows of client 5 are not those of the run"));
}

TEST_F(Shards, OfOtherClientsAreRefused) {
  const std::string text = toy(kConvexModel + kTopThree + "[local]\nkind = 'gradient'\nlearning_rate = 0.1\n");
  const auto shards = [&](const std::string&) { return shard(text, "0-3"); };
  const test::NetworkRun run = run_with_shards(text, {"3-4"}, (folder_ / "whole").string(), shards);
  EXPECT_THAT(run.peer_errors[0], HasSubstr("it has the rows of clients 0-3, not those of client 4"));
  EXPECT_THROW(static_cast<void>(shard(text, "6-7")), ConfigError);
}

TEST_F(Shards, OfAnotherSplitAreRefused) {
  const std::string text = toy(kConvexModel + kTopThree + "[local]\nkind = 'gradient'\nlearning_rate = 0.1\n");
  std::string other = text;
  other.replace(other.find("beta = 0.5"), 10, "beta = 0.7");
  const auto shards = [&](const std::string& clients) { return shard(other, clients); };
  const test::NetworkRun run = run_with_shards(text, {"0"}, (folder_ / "whole").string(), shards);
  EXPECT_THAT(run.peer_errors[0], HasSubstr("the shard has no problem with the data, the partition, the model and the seeds"));
}

// Every value of a row of the clients is in the file, and none of a row of another client.
TEST_F(Shards, HoldTheRowsOfTheirClientsAlone) {
  const std::string text = toy(kConvexModel + kTopThree + "[local]\nkind = 'gradient'\nlearning_rate = 0.1\n");
  const std::shared_ptr<const ServerData> held = shard(text, "2,5");
  std::ifstream in(folder_ / "shard-2,5", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  ThreadPool pool(1);
  const FederatedProblem<double> problem(test::cell_of(text).scenario, DataCatalog((folder_ / "whole").string()), pool);
  std::vector<double> features(4);
  std::size_t num_rows = 0;
  for (std::uint32_t client = 0; client < 7; ++client)
    for (const std::uint32_t row : problem.shards()[client]) {
      problem.train().gather(std::span(&row, 1), features.data());
      for (const double value : features) {
        const std::string raw(reinterpret_cast<const char*>(&value), sizeof value);
        EXPECT_EQ(bytes.find(raw) != std::string::npos, client == 2 || client == 5) << "client " << client << ", row " << row;
      }
      ++num_rows;
    }
  EXPECT_EQ(num_rows, 48U);
  const auto apart = held->problem<double>(test::cell_of(text), DataCatalog(""), pool);
  for (std::uint32_t client = 0; client < 7; ++client) {
    EXPECT_EQ(apart->num_rows_of(client), problem.shards()[client].size());
    EXPECT_EQ(apart->shards()[client].size(), client == 2 || client == 5 ? problem.shards()[client].size() : 0U) << "client " << client;
  }
}

TEST_F(Shards, AndServerDataAreNotEachOther) {
  const std::string text = toy(kConvexModel + kTopThree + "[local]\nkind = 'gradient'\nlearning_rate = 0.1\n");
  static_cast<void>(shard(text, "0"));
  static_cast<void>(test::server_data_through_file(text, (folder_ / "whole").string(), folder_ / "known"));
  EXPECT_THROW(static_cast<void>(ServerData::read(folder_ / "shard-0")), DataError);
  EXPECT_THROW(static_cast<void>(ServerData::read_shard(folder_ / "known")), DataError);
}

TEST_F(Shards, AreRefusedIfTheyAreDamaged) {
  static_cast<void>(shard(toy(kConvexModel + kTopThree + "[local]\nkind = 'gradient'\nlearning_rate = 0.1\n"), "0"));
  std::ifstream in(folder_ / "shard-0", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  for (std::size_t at = 0; at < bytes.size(); at += 1 + bytes.size() / 97) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    write("damaged", damaged);
    EXPECT_THROW(static_cast<void>(ServerData::read_shard(folder_ / "damaged")), DataError) << "byte " << at;
    write("damaged", bytes.substr(0, at));
    EXPECT_THROW(static_cast<void>(ServerData::read_shard(folder_ / "damaged")), DataError) << at << " bytes";
  }
}

TEST(RowHashes, NameClientsOneByOneOrInGroups) {
  std::vector<std::uint64_t> of_all(200'000);
  for (std::size_t i = 0; i < of_all.size(); ++i) of_all[i] = i * 0x9e3779b97f4a7c15ull;
  const auto others_of = [&](const std::string& text, std::uint32_t changed) {
    const std::vector<net::ClientRange> clients = net::parse_client_ranges(text);
    std::vector<std::uint64_t> own;
    for (const net::ClientRange& range : clients)
      for (std::uint32_t client = range.first; client <= range.last; ++client) own.push_back(of_all[client] ^ (client == changed ? 1 : 0));
    const std::vector<std::uint64_t> stated = net::stated_hashes(of_all, clients);
    EXPECT_LE(stated.size(), net::kMostRowHashes);
    return net::clients_with_other_rows(own, stated, clients);
  };
  EXPECT_EQ(others_of("3-9,12", 12), "12");
  EXPECT_EQ(others_of("3-9,12", 11), "");
  EXPECT_EQ(others_of("0-65535", 65535), "65535");
  EXPECT_EQ(others_of("0-199999", 8), "8-11");
  EXPECT_EQ(others_of("0-199999", 200'000), "");
  EXPECT_EQ(net::clients_with_other_rows(std::vector<std::uint64_t>{1}, {}, net::parse_client_ranges("0")), "0");
}

}  // namespace
}  // namespace fl
