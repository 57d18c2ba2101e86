// Tests peers that ask for the same clients: a hello alone keeps nobody out, and a peer without a place asks again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/net/network_run.hpp"
#include "tests/net/presence_run.hpp"
#include "tests/net/raw_peer.hpp"
#include "tests/support/every_method.hpp"

namespace fl {
namespace {

using namespace std::chrono_literals;
using test::RawPeer;
using testing::HasSubstr;

std::string text() { return test::text_of(test::written_methods().front(), "float32"); }

net::RunOffer offer() { return {.run = 7, .split = 3, .scenario = std::make_shared<const net::Bytes>(), .num_clients = 7}; }

net::wire::Header ready() {
  net::wire::Header header;
  header.mutable_ready()->set_run(7);
  header.mutable_ready()->set_split(3);
  return header;
}

net::wire::Header heartbeat() {
  net::wire::Header header;
  header.mutable_heartbeat();
  return header;
}

// Returns the goodbye that comes next.
net::wire::Goodbye goodbye_of(RawPeer& peer) {
  while (const std::optional<net::Frame> frame = peer.read())
    if (frame->header.has_goodbye()) return frame->header.goodbye();
  return {};
}

// Returns a peer that has said hello and was told of the run.
std::unique_ptr<RawPeer> greeted(const net::PeerHub& hub, const std::string& clients) {
  auto peer = std::make_unique<RawPeer>(hub.port());
  peer->say_hello(clients);
  EXPECT_TRUE(peer->read()->header.has_assignment());
  return peer;
}

void wait_for_hosted(net::PeerHub& hub, std::size_t clients) {
  for (int i = 0; i < 1000 && hub.attendance().num_hosted != clients; ++i) std::this_thread::sleep_for(10ms);
  ASSERT_EQ(hub.attendance().num_hosted, clients);
}

TEST(Rivals, TheFirstOneThatIsReadyHasThePlace) {
  net::PeerHub hub({});
  hub.begin_run(offer());
  const auto first = greeted(hub, "0-3"), second = greeted(hub, "0-3"), third = greeted(hub, "2-5");
  second->send(ready());
  wait_for_hosted(hub, 4);
  for (const auto& other : {first.get(), third.get()}) {
    const net::wire::Goodbye goodbye = goodbye_of(*other);
    EXPECT_EQ(goodbye.reason(), "another peer was ready for these clients first");
    EXPECT_TRUE(goodbye.may_return());
  }
  RawPeer late(hub.port());
  late.say_hello("3-4");
  const net::wire::Goodbye goodbye = goodbye_of(late);
  EXPECT_EQ(goodbye.reason(), "client 3 is hosted by another peer already");
  EXPECT_TRUE(goodbye.may_return());
  EXPECT_EQ(hub.attendance().num_hosted, 4U);
}

TEST(Rivals, MayHaveOtherClientsThanThoseThatTheyDisplace) {
  net::PeerHub hub({});
  hub.begin_run(offer());
  const auto first = greeted(hub, "0-1"), second = greeted(hub, "2-3"), wide = greeted(hub, "1-6");
  wide->send(ready());
  wait_for_hosted(hub, 6);
  EXPECT_TRUE(goodbye_of(*first).may_return());
  EXPECT_TRUE(goodbye_of(*second).may_return());
  const auto again = greeted(hub, "0");
  again->send(ready());
  wait_for_hosted(hub, 7);
}

TEST(Rivals, AreLimitedInNumber) {
  net::PeerHub hub({});
  hub.begin_run(offer());
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (std::size_t i = 0; i <= net::kMostRivals; ++i) peers.push_back(greeted(hub, i % 2 == 0 ? "0-3" : "3-6"));
  RawPeer another(hub.port());
  another.say_hello("3");
  const net::wire::Goodbye goodbye = goodbye_of(another);
  EXPECT_THAT(goodbye.reason(), HasSubstr("16 peers wait for clients 3 already"));
  EXPECT_TRUE(goodbye.may_return());
  peers.back()->send(ready());
  wait_for_hosted(hub, 4);
}

// A rival that leaves takes nothing with it.
TEST(Rivals, ThatLeaveChangeNothing) {
  net::PeerHub hub({});
  hub.begin_run(offer());
  const auto first = greeted(hub, "0-3");
  greeted(hub, "0-3")->kill();
  greeted(hub, "3-6")->kill();
  first->send(ready());
  wait_for_hosted(hub, 4);
  hub.begin_run(offer());
  EXPECT_TRUE(first->read()->header.has_assignment());
  RawPeer late(hub.port());
  late.say_hello("0-3");
  EXPECT_EQ(goodbye_of(late).reason(), "client 0 is hosted by another peer already") << "a peer that was ready keeps its place";
  first->send(ready());
  wait_for_hosted(hub, 4);
}

TEST(Rivals, AreThemselvesDisplacedByATokenAlone) {
  net::PeerHub hub({});
  hub.begin_run(offer());
  RawPeer first(hub.port());
  first.say_hello("0-3");
  const std::string token = first.read()->header.assignment().token();
  first.send(ready());
  wait_for_hosted(hub, 4);
  first.kill();
  wait_for_hosted(hub, 0);
  const auto squatter = greeted(hub, "0-3");
  net::wire::Header hello = RawPeer::hello("0-3");
  hello.mutable_hello()->set_token(token);
  RawPeer back(hub.port());
  back.send(hello);
  EXPECT_TRUE(back.read()->header.has_assignment());
  back.send(ready());
  wait_for_hosted(hub, 4);
}

// Heartbeats show that a peer lives, and not that it prepares anything.
TEST(ReadyLimit, HoldsWhateverAPeerSends) {
  net::PeerHub hub({.ready_limit = 300ms});
  hub.begin_run(offer());
  const auto peer = greeted(hub, "0-3");
  std::atomic<bool> is_over = false;
  std::thread beats([&] {
    for (; !is_over; std::this_thread::sleep_for(50ms)) try {
        peer->send(heartbeat());
      } catch (const std::exception&) {  // the server has closed the connection
        return;
      }
  });
  const net::wire::Goodbye goodbye = goodbye_of(*peer);
  is_over = true;
  beats.join();
  EXPECT_EQ(goodbye.reason(), "its clients were not ready 300 ms after it was told of the run (--ready-limit)");
  EXPECT_TRUE(goodbye.may_return());
}

// Peers that say hello and nothing more, for all clients and for some of them, before and between the honest ones.
TEST(ReadyLimit, NobodyKeepsARunFromBeginning) {
  const std::string scenario = text();
  std::vector<std::unique_ptr<RawPeer>> silent;
  const auto before = [&silent](std::uint16_t port) {
    for (const char* clients : {"0-6", "2-3", "0-3", "4-6"}) {
      silent.push_back(std::make_unique<RawPeer>(port));
      silent.back()->say_hello(clients);
    }
  };
  const test::NetworkRun network = test::run_over_network(scenario, {"0-3", "4-6"}, {}, {}, before);
  test::expect_same_run(scenario, test::run_simulated(scenario), network);
}

TEST(TurnedAway, APeerAsksAgainForAsLongAsItHasPatience) {
  net::PeerHub hub({});
  hub.begin_run(offer());
  const auto host = greeted(hub, "0-3");
  host->send(ready());
  wait_for_hosted(hub, 4);
  std::vector<std::string> said;
  try {
    static_cast<void>(net::join_server({.port = hub.port(), .clients = net::parse_client_ranges("3"), .patience_s = 0.4},
                                       {.say = [&said](const std::string& text) { said.push_back(text); }}));
    ADD_FAILURE() << "it has found a place";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("client 3 is hosted by another peer already; it was asked for"));
  }
  ASSERT_EQ(said.size(), 1U) << "once, and not at each attempt";
  EXPECT_THAT(said[0], HasSubstr("tried again"));
}

// The place is taken by a peer that is ready, takes part in nothing and leaves.
TEST(TurnedAway, APeerFindsAPlaceThatBecomesFree) {
  const std::string scenario = text();
  std::thread host;
  const auto before = [&](std::uint16_t port) {
    auto peer = std::make_shared<RawPeer>(port);
    peer->say_hello("0-3");
    host = std::thread([peer] {
      const std::optional<net::Frame> frame = peer->read();
      net::wire::Header header;
      header.mutable_ready()->set_run(frame->header.assignment().run());
      header.mutable_ready()->set_split(frame->header.assignment().split());
      peer->send(header);
      std::this_thread::sleep_for(400ms);
      peer->kill();
    });
  };
  const test::NetworkRun network = test::run_over_network(scenario, {"0-3", "4-6"}, {}, {}, before);
  host.join();
  test::expect_same_run(scenario, test::run_simulated(scenario), network);
}

// A run that goes on has had its peers, so it does not wait for ever for them.
TEST(Resumed, ARunWaitsForItsPeersWithPatience) {
  const std::string scenario = text();
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / ("resumed-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const CheckpointPlan plan{.file = folder / "server.checkpoint", .every_rounds = 1, .resume = true, .pages = {}};
  std::thread peer;
  {
    net::PeerHub hub({});
    net::RemoteSource clients(hub, [] { return true; });
    peer = std::thread([port = hub.port()] {
      try {
        static_cast<void>(net::join_server({.port = port, .clients = net::parse_client_ranges("0-6"), .patience_s = 0.1}, {}));
      } catch (const Error&) {  // the server stops
      }
    });
    CellRunner runner(DataCatalog(""), {.threads = 1, .source = &clients});
    const RunResult result = runner.run(
        test::cell_of(scenario), [](const RoundRow& row) { return row.round < 5; }, plan);
    EXPECT_EQ(result.record.status, RunStatus::interrupted);
    hub.set_farewell("it is stopped");
  }
  peer.join();
  net::PeerHub hub({});
  net::RemoteSource clients(hub, [] { return true; }, {.patience_s = 0.3});
  CellRunner runner(DataCatalog(""), {.threads = 1, .source = &clients});
  try {
    static_cast<void>(runner.run(
        test::cell_of(scenario), [](const RoundRow&) { return true; }, plan));
    ADD_FAILURE() << "it has gone on without peers";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("clients 0-6 have left before the run went on, and no peer takes the place within 0.3 s"));
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fl
