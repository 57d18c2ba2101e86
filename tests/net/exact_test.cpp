// Tests that measures over the network have the bits of the simulated run when the clients alone have training rows.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <sstream>

#include "tests/net/exact_run.hpp"
#include "tests/net/raw_peer.hpp"
#include "tests/support/data_folder.hpp"
#include "tests/support/every_method.hpp"

namespace fl {
namespace {

const std::string kEveryMeasure =
    "[evaluate]\nevery = 2\naverage = true\ngradient = 'every'\nclients_every = 3\nmeasure_every = 2\nmeasures = ['model_path']\n";

// Rows of four features and three classes. The training set has 60 of them and the test set 25.
class ExactMeasures : public test::DataFolderTest {
 protected:
  void SetUp() override {
    DataFolderTest::SetUp();
    write("peers/toy", rows(60, 0));
    write("peers/toy.t", rows(25, 1000));
    write("server/toy.t", rows(25, 1000));
  }
  [[nodiscard]] static std::string rows(int count, int first) {
    std::ostringstream text;
    for (int r = first; r < first + count; ++r) {
      text << r * 7 % 11 % 3;
      for (int j = 0; j < 4; ++j) text << ' ' << j + 1 << ':' << std::sin(0.37 * r + 1.3 * j) + 0.2 * (r * 7 % 11 % 3);
      text << '\n';
    }
    return text.str();
  }
  [[nodiscard]] static std::string scenario(const std::string& tables, const std::string& data = "name = 'toy'\nfeatures = 4") {
    return "name = 'exact'\nrounds = 7\n" + tables + "\n[data]\n" + data +
           "\n[partition]\nkind = 'dirichlet_class'\nbeta = 0.5\nmin_rows = 2\nclients = 7\n";
  }
  // Compares the simulated run with runs whose clients are distributed in different ways.
  void expect_exact(const std::string& text) const {
    const std::string peers = (folder_ / "peers").string(), server = (folder_ / "server").string();
    CellRunner runner(DataCatalog(peers), {.threads = 1});
    const RunResult simulated = runner.run(test::cell_of(text), [](const RoundRow&) { return true; });
    const ServerData known = test::server_data_through_file(text, peers, folder_ / "known");
    for (const std::vector<std::string>& hosted : {std::vector<std::string>{"0-1", "2,5", "3-4,6"}, {"6", "5", "4", "3", "2", "1", "0"}}) {
      const test::NetworkRun network = test::run_without_rows(text, hosted, known, peers, server);
      test::expect_same_run(text, simulated, network);
      test::expect_same_record(simulated.record, network.result.record);
    }
  }
};

const std::string kLogistic = "[model]\nkind = 'logistic_regression'\nl2 = 0.01\n";
const std::string kNetwork = "[model]\nkind = 'neural_network'\nlayers = ['dense(5)', 'batch_norm', 'tanh', 'dense(classes)']\n";
const std::string kEf14 = "[compressor.up]\nkind = 'top_k'\nk = 3\n[feedback.up]\nkind = 'ef14'\n";

TEST_F(ExactMeasures, OfAConvexModelAreTheSimulatedOnes) {
  for (const std::string precision : {"float32", "float64"})
    expect_exact(scenario("precision = '" + precision + "'\n" + kLogistic + kEf14 + kEveryMeasure +
                          "[local]\nkind = 'gradient'\nbatch = 3\nlearning_rate = '0.1/(L_max+l2)'\n"));
}

TEST_F(ExactMeasures, WithEveryConstantOfTheTheoremsAreTheSimulatedOnes) {
  expect_exact(scenario("precision = 'float64'\n" + kLogistic + kEf14 + kEveryMeasure + "gradient_every = 1\n" +
                        "[local]\nkind = 'gradient'\nlearning_rate = 'theory'\n"));
}

TEST_F(ExactMeasures, OfANetworkAreTheSimulatedOnes) {
  const std::string local = "[local]\nkind = 'sgd'\nbatch = 4\nsteps = 2\nlearning_rate = 0.1\n";
  std::string measures = kEveryMeasure;
  measures.replace(measures.find("average = true\n"), 15, "");
  for (const std::string statistics : {"average", "local"})
    for (const std::string more : {"", "[participation]\nkind = 'uniform'\nclients = 3\n[compressor.down]\nkind = 'qsgd'\n",
                                   "[participation]\nkind = 'uniform'\nclients = 3\n[compressor.down]\nkind = 'top_k'\nk = 20\n"})
      expect_exact(scenario("precision = 'float32'\n" + kNetwork + kEf14 + measures + local + "[server]\nkind = 'sgd'\nstatistics = '" +
                            statistics + "'\n" + more));
}

TEST_F(ExactMeasures, OfTensorsThatStayWithTheClientsAreTheSimulatedOnes) {
  std::string measures = kEveryMeasure, network = kNetwork;
  measures.replace(measures.find("average = true\n"), 15, "");
  network.insert(network.find("[model]\n") + 8, "keep = ['1.dense.*', '*.running_mean']\n");
  for (const std::string more : {"", "[participation]\nkind = 'uniform'\nclients = 3\n[compressor.down]\nkind = 'qsgd'\n"})
    expect_exact(scenario("precision = 'float32'\n" + network + kEf14 + measures + more +
                          "[local]\nkind = 'sgd'\nbatch = 4\nsteps = 2\nlearning_rate = 0.1\n"));
}

TEST_F(ExactMeasures, OfTestRowsThatAreHeldOutAreTheSimulatedOnes) {
  expect_exact(scenario("precision = 'float64'\n" + kLogistic + kEf14 + kEveryMeasure + "[local]\nkind = 'gradient'\nlearning_rate = 0.1\n",
                        "name = 'toy'\ntest = 'none'\ntest_fraction = 0.2"));
}

// A model that diverges ends both runs in the same round with the same row.
TEST_F(ExactMeasures, OfARunThatDivergesAreTheSimulatedOnes) {
  expect_exact(scenario("precision = 'float32'\n" + kLogistic + kEf14 + "[evaluate]\nevery = 1\n" +
                        "[local]\nkind = 'gradient'\nlearning_rate = 1e38\n"));
}

TEST_F(ExactMeasures, AreRefusedWhereTheServerWouldReadTrainingRows) {
  const auto why = [this](const std::string& text) -> std::string {
    try {
      static_cast<void>(test::server_data_through_file(text, (folder_ / "peers").string(), folder_ / "known"));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  write("peers/u.data", "1\t1\t5\t1\n1\t2\t5\t2\n2\t2\t5\t2\n2\t3\t5\t3\n3\t3\t5\t3\n3\t4\t5\t4\n4\t4\t5\t4\n4\t5\t5\t5\n");
  EXPECT_NE(why("name = 'r'\nrounds = 1\n[data]\npath = '" + (folder_ / "peers/u.data").string() +
                "'\nlabels = 'target'\n[partition]\nkind = 'shuffled'\nclients = 2\n[model]\nkind = 'ncf'\n[local]\nlearning_rate = 0.1\n")
                .find("draw items that a user has not met"),
            std::string::npos);
}

TEST_F(ExactMeasures, OfAnotherProblemAreNotInTheFile) {
  const std::string text = scenario(kLogistic + kEf14 + "[local]\nlearning_rate = 0.1\n");
  const ServerData known = test::server_data_through_file(text, (folder_ / "peers").string(), folder_ / "known");
  std::string other = text;
  other.replace(other.find("beta = 0.5"), 10, "beta = 0.7");
  const test::NetworkRun run = test::run_without_rows(other, {}, known, "", (folder_ / "server").string());
  EXPECT_NE(run.error.find("has no problem with the data"), std::string::npos) << run.error;
}

TEST_F(ExactMeasures, FileOfServerDataIsRefusedIfItIsDamaged) {
  const std::string text = scenario(kLogistic + kEf14 + "[local]\nlearning_rate = 0.1\n");
  static_cast<void>(test::server_data_through_file(text, (folder_ / "peers").string(), folder_ / "known"));
  std::ifstream in(folder_ / "known", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  for (std::size_t at = 0; at < bytes.size(); at += 1 + bytes.size() / 97) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    write("damaged", damaged);
    EXPECT_THROW(static_cast<void>(ServerData::read(folder_ / "damaged")), DataError) << "byte " << at;
    write("damaged", bytes.substr(0, at));
    EXPECT_THROW(static_cast<void>(ServerData::read(folder_ / "damaged")), DataError) << at << " bytes";
  }
  EXPECT_THROW(static_cast<void>(ServerData::read(folder_ / "nothing")), DataError);
}

// No training row, label or target is in the file: it is as long as that of another training set of the same size.
TEST_F(ExactMeasures, FileOfServerDataHoldsNoTrainingRow) {
  const std::string text = scenario(kLogistic + kEf14 + "[evaluate]\noptimum = false\n[local]\nlearning_rate = 0.1\n");
  static_cast<void>(test::server_data_through_file(text, (folder_ / "peers").string(), folder_ / "known"));
  const auto size = std::filesystem::file_size(folder_ / "known");
  write("peers/toy", rows(60 * 30, 0));
  static_cast<void>(test::server_data_through_file(text, (folder_ / "peers").string(), folder_ / "known"));
  EXPECT_EQ(std::filesystem::file_size(folder_ / "known"), size);
}

class ExactMethods : public testing::TestWithParam<test::Method> {};

TEST_P(ExactMethods, WithoutTrainingRowsAtTheServerAreTheSimulatedOnes) {
  const std::string text = test::text_of(GetParam(), "float32");
  const std::string file = (std::filesystem::temp_directory_path() / ("fedbits_exact_" + GetParam().label)).string();
  const ServerData known = test::server_data_through_file(text, "", file);
  std::filesystem::remove(file);
  const RunResult simulated = test::run_simulated(text);
  const test::NetworkRun network = test::run_without_rows(text, {"0-1", "2,5", "3-4,6"}, known, "", "");
  test::expect_same_run(text, simulated, network);
  test::expect_same_record(simulated.record, network.result.record);
}

INSTANTIATE_TEST_SUITE_P(EveryMethod, ExactMethods, testing::ValuesIn(test::methods()), [](const auto& one) { return one.param.label; });

// ---- answers that are none

// Hosts client 1 beside a real peer with client 0: it refuses to compute, and answers measures with what `answer` makes of a right frame.
struct OddPeer {
  std::function<void(net::wire::PartialSums&, net::Bytes&)> damage;  // null = it does not answer measures

  void play(std::uint16_t port) const {
    test::RawPeer peer(port);
    peer.say_hello("1");
    while (const std::optional<net::Frame> frame = peer.read()) {
      const net::wire::Header& header = frame->header;
      net::wire::Header answer;
      net::Bytes payload;
      if (header.has_open() && header.open().measure()) {
        net::wire::Header norms;
        norms.mutable_norms()->set_round(header.open().round());
        norms.mutable_norms()->set_client(1);
        for (int i = 0; i < 6; ++i) norms.mutable_norms()->add_values(0);
        peer.send(norms);
      }
      if (header.has_goodbye()) return;
      if (header.has_assignment()) {
        answer.mutable_ready()->set_run(header.assignment().run());
        answer.mutable_ready()->set_split(header.assignment().split());
      } else if (header.has_open()) {
        answer.mutable_update()->set_round(header.open().round());
        answer.mutable_update()->set_client(1);
        answer.mutable_update()->set_refused(true);
      } else if (header.has_measure_order() && damage) {
        net::wire::PartialSums& sums = *answer.mutable_partial_sums();
        sums.set_round(header.measure_order().round());
        sums.set_order(header.measure_order().order());
        sums.set_client(1);
        damage(sums, payload);
      } else {
        continue;
      }
      peer.send(answer, payload);
    }
  }
};

class OddSums : public ExactMeasures {
 protected:
  [[nodiscard]] test::NetworkRun play(const OddPeer& odd, const std::string& evaluate, const net::Presence& presence = {},
                                      const std::string& rate = "0.1", int rounds = 3) const {
    const std::string text = "name = 'odd'\nrounds = " + std::to_string(rounds) + "\nprecision = 'float64'\n" + kLogistic +
                             "[data]\nname = 'toy'\nfeatures = 4\n" + "[partition]\nkind = 'shuffled'\nclients = 3\n" +
                             "[local]\nkind = 'gradient'\nlearning_rate = " + rate + "\n[evaluate]\n" +
                             "measure_every = 0\noptimum = false\n" + evaluate;
    const ServerData known = test::server_data_through_file(text, (folder_ / "peers").string(), folder_ / "known");
    test::NetworkRun run;
    std::thread real, other;
    {
      net::PeerHub hub({});
      net::RemoteSource clients(
          hub, [] { return true; }, presence);
      real = std::thread([this, port = hub.port()] {
        const net::HostOptions machine{.data = (folder_ / "peers").string()};
        static_cast<void>(net::join_server({.port = port, .clients = net::parse_client_ranges("0,2"), .machine = machine}, {}));
      });
      other = std::thread([&odd, port = hub.port()] { odd.play(port); });
      try {
        CellRunner runner(DataCatalog(""), {.threads = 1, .source = &clients, .server_data = &known});
        run.result = runner.run(test::cell_of(text), [](const RoundRow&) { return true; });
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
      run.counts = hub.counts();
    }
    real.join();
    other.join();
    return run;
  }
  void expect_refused(const OddPeer& odd, const std::string& evaluate, const std::string& why) const {
    const test::NetworkRun run = play(odd, evaluate);
    EXPECT_EQ(run.result.record.status, RunStatus::done) << run.result.record.message;
    ASSERT_EQ(run.result.rows.size(), 4u);
    std::uint64_t refused = 0;
    for (const auto& [reason, times] : run.counts.refused) refused += reason.find(why) == std::string::npos ? 0 : times;
    EXPECT_GE(refused, 4u) << why;
  }
};

TEST_F(OddSums, ThatAreNotFiniteAreRefusedAndTheRunGoesOn) {
  const OddPeer odd{[](net::wire::PartialSums& sums, net::Bytes&) { sums.set_sum(std::nan("")); }};
  expect_refused(odd, "every = 1\ngradient = 'never'\n", "not finite");
  const test::NetworkRun run = play(odd, "every = 1\ngradient = 'never'\n");
  for (const RoundRow& row : run.result.rows) {
    EXPECT_TRUE(std::isnan(row.train_loss)) << row.round;
    EXPECT_FALSE(std::isnan(row.test_accuracy)) << row.round;
  }
}

// More of them than refusals after which a peer is disconnected: they break no rule.
TEST_F(OddSums, ThatAreNotFiniteCostThePeerNothing) {
  const OddPeer odd{[](net::wire::PartialSums& sums, net::Bytes&) { sums.set_sum(std::nan("")); }};
  const test::NetworkRun run = play(odd, "every = 1\ngradient = 'never'\n", {.patience_s = 3}, "0.1", 20);
  EXPECT_EQ(run.result.record.status, RunStatus::done) << run.result.record.message;
  EXPECT_EQ(run.result.rows.size(), 21U);
  std::uint64_t counted = 0;
  for (const auto& [reason, times] : run.counts.refused)
    if (reason.find("its sums are not finite") != std::string::npos) counted += times;
  EXPECT_EQ(counted, 21U);
}

// The loss of the server's test rows is far above that of a model of zeros, so that a client may well see a sum that is not finite. A
// simulation ends there too.
TEST_F(OddSums, ThatAreNotFiniteAreBelievedIfTheTestRowsTellTheSame) {
  const OddPeer odd{[](net::wire::PartialSums& sums, net::Bytes&) { sums.set_sum(std::nan("")); }};
  const test::NetworkRun run = play(odd, "every = 1\ngradient = 'never'\n", {}, "1e9");
  EXPECT_EQ(run.result.record.status, RunStatus::diverged);
  EXPECT_NE(run.result.record.message.find("train_loss is not finite in round 1"), std::string::npos) << run.result.record.message;
  ASSERT_EQ(run.result.rows.size(), 2U);
  EXPECT_GT(run.result.rows.at(1).test_loss, 1e6);
}

TEST_F(OddSums, ThatDoNotArriveInTimeLeaveTheValueEmpty) {
  const test::NetworkRun run = play({}, "every = 1\ngradient = 'never'\n", {.deadline_s = 0.5});
  EXPECT_EQ(run.result.record.status, RunStatus::done) << run.result.record.message;
  ASSERT_EQ(run.result.rows.size(), 4u);
  for (const RoundRow& row : run.result.rows) {
    EXPECT_TRUE(std::isnan(row.train_loss)) << row.round;
    EXPECT_FALSE(std::isnan(row.test_accuracy)) << row.round;
  }
}

TEST_F(OddSums, OfTheWrongLengthAreRefused) {
  expect_refused({[](net::wire::PartialSums&, net::Bytes& payload) { payload.resize(8); }}, "every = 1\ngradient = 'never'\n",
                 "bytes, not 0");
  expect_refused({[](net::wire::PartialSums&, net::Bytes& payload) { payload.resize(3); }},
                 "every = 1\ntrain_loss = false\ngradient = 'every'\ngradient_every = 1\n", "have 3 bytes");
}

TEST_F(OddSums, OfMoreLabelsThanRowsAreRefused) {
  const OddPeer odd{[](net::wire::PartialSums& sums, net::Bytes&) { sums.set_correct(1000000); }};
  const std::string evaluate = "every = 1\ntrain_loss = false\ngradient = 'never'\nclients_every = 1\n";
  expect_refused(odd, evaluate, "more labels than its rows have");
  for (const RoundRow& row : play(odd, evaluate).result.rows) EXPECT_TRUE(std::isnan(row.client_accuracy_mean)) << row.round;
}

}  // namespace
}  // namespace fl
