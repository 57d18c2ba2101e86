// Tests messages of a peer that the protocol does not allow: the peer is rejected with a reason, and other peers are not affected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/net/network_run.hpp"
#include "tests/net/raw_peer.hpp"
#include "tests/support/every_method.hpp"

namespace fl {
namespace {

using test::RawPeer;
using testing::HasSubstr;

TEST(Refusals, AFrameThatAnnouncesTooMuchIsRefusedByItsFirstBytes) {
  net::PeerHub hub({});
  RawPeer peer(hub.port());
  peer.write(RawPeer::frame_of(net::Bytes(2), 1 << 24));
  EXPECT_THAT(peer.read_goodbye(), HasSubstr("announces 16777216 bytes; at most 0"));
}

TEST(Refusals, AHeaderThatIsNoneIsRefused) {
  net::PeerHub hub({});
  RawPeer peer(hub.port());
  peer.write(RawPeer::frame_of(net::Bytes(3, std::byte{0xff}), 0));
  EXPECT_THAT(peer.read_goodbye(), HasSubstr("a header cannot be read"));
}

TEST(Refusals, OtherVersionsAndBuildsAreRefused) {
  net::PeerHub hub({});
  net::wire::Header header = RawPeer::hello("0");
  header.mutable_hello()->set_protocol(99);
  RawPeer old(hub.port());
  old.send(header);
  EXPECT_THAT(old.read_goodbye(), HasSubstr("version 99"));

  header = RawPeer::hello("0");
  header.mutable_hello()->set_build("another one");
  RawPeer other(hub.port());
  other.send(header);
  EXPECT_THAT(other.read_goodbye(), HasSubstr("another build (another one"));
}

TEST(Refusals, AClientHasOneHost) {
  net::PeerHub hub({});
  RawPeer first(hub.port());
  first.say_hello("0-3");
  hub.begin_run({.run = 1, .split = 1, .scenario = std::make_shared<const net::Bytes>(), .num_clients = 7});
  ASSERT_TRUE(first.read()->header.has_assignment());
  net::wire::Header ready;
  ready.mutable_ready()->set_run(1);
  ready.mutable_ready()->set_split(1);
  first.send(ready);
  for (int i = 0; i < 1000 && hub.attendance().num_hosted != 4; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  RawPeer second(hub.port());
  second.say_hello("3-4");
  EXPECT_THAT(second.read_goodbye(), HasSubstr("client 3 is hosted by another peer already"));
  RawPeer third(hub.port());
  third.say_hello("4-7");
  EXPECT_THAT(third.read_goodbye(), HasSubstr("the run has clients 0-6, not 4-7"));
}

// One peer of a run that hosts client 6 and answers as `answer` says; the others are honest.
// `remember` answers a Close that wants memories.
test::NetworkRun run_with(const std::string& text, const std::function<void(RawPeer&, const net::wire::Open&)>& answer,
                          const std::function<void(RawPeer&, std::uint32_t round)>& remember = {}) {
  test::NetworkRun run;
  auto hub = std::make_unique<net::PeerHub>(net::HubOptions{});
  std::thread honest([port = hub->port()] {
    try {
      static_cast<void>(net::join_server({.port = port, .clients = net::parse_client_ranges("0-5")}, {}));
    } catch (const Error&) {  // of a run that failed, which the test knows of
    }
  });
  std::thread other([&, port = hub->port()] {
    RawPeer peer(port);
    peer.say_hello("6");
    while (const std::optional<net::Frame> frame = peer.read()) {
      if (frame->header.has_assignment()) {
        net::wire::Header ready;
        ready.mutable_ready()->set_run(frame->header.assignment().run());
        ready.mutable_ready()->set_split(frame->header.assignment().split());
        peer.send(ready);
      }
      if (frame->header.has_refused()) run.peer_errors.push_back(frame->header.refused().reason());
      if (frame->header.has_open()) {
        answer(peer, frame->header.open());
        if (!frame->header.open().measure()) continue;
        net::wire::Header norms;
        norms.mutable_norms()->set_round(frame->header.open().round());
        norms.mutable_norms()->set_client(6);
        for (int i = 0; i < 6; ++i) norms.mutable_norms()->add_values(0);
        peer.send(norms);
      }
      if (frame->header.has_close() && frame->header.close().wants_memory()) remember(peer, frame->header.close().round());
      if (frame->header.has_run_end() || frame->header.has_goodbye()) return;
    }
  });
  net::RemoteSource clients(*hub, [] { return true; }, {.patience_s = 0.2});
  try {
    CellRunner runner(DataCatalog(""), {.threads = 1, .source = &clients});
    run.result = runner.run(test::cell_of(text), [](const RoundRow&) { return true; });
  } catch (const std::exception& error) {
    run.error = error.what();
  }
  run.counts = hub->counts();
  run.traffic = clients.traffic();
  hub.reset();
  other.join();
  honest.join();
  return run;
}

net::wire::Header update_of(std::uint32_t round, std::uint32_t client) {
  net::wire::Header header;
  header.mutable_update()->set_round(round);
  header.mutable_update()->set_client(client);
  return header;
}

std::string text_without_memory() {
  test::Method method = test::methods().at(0);
  return test::text_of(method, "float32");
}

TEST(Refusals, BytesThatAreNoMessageCountForNothing) {
  const test::NetworkRun run = run_with(text_without_memory(), [](RawPeer& peer, const net::wire::Open& open) {
    peer.send(update_of(open.round(), 6), net::Bytes(40, std::byte{0x5a}));
  });
  ASSERT_EQ(run.error, "");
  EXPECT_EQ(run.peer_errors.size(), 14U) << "one for each round";
  for (const RoundRow& row : run.result.rows) EXPECT_EQ(row.refused, row.round == 0 ? 0U : 1U) << row.round;
  EXPECT_EQ(run.traffic.refused_bytes, 14U * 40);
}

// Each of them once: a client of another peer, another round, another phase, and an answer that comes twice.
TEST(Refusals, AnswersThatNobodyWaitsForAreCounted) {
  const test::NetworkRun run = run_with(text_without_memory(), [](RawPeer& peer, const net::wire::Open& open) {
    if (open.round() == 1) {
      peer.send(update_of(open.round(), 2));
      peer.send(update_of(open.round() + 1, 6));
      net::wire::Header late = update_of(open.round(), 6);
      late.mutable_update()->set_phase(1);
      peer.send(late);
    }
    net::wire::Header nothing = update_of(open.round(), 6);
    nothing.mutable_update()->set_refused(true);
    peer.send(nothing);
    if (open.round() == 2) peer.send(nothing);
  });
  ASSERT_EQ(run.error, "");
  const auto refused = [&run](const char* why) {
    const auto found = run.counts.refused.find(why);
    return found == run.counts.refused.end() ? 0U : found->second;
  };
  EXPECT_EQ(refused("it speaks for a client that it does not host"), 1U);
  EXPECT_EQ(refused("nobody waits for this answer"), 1U);
  EXPECT_EQ(refused("the answer is of another round") + refused("the answer was there already"), 2U)
      << "an answer that comes twice may come after its round";
  EXPECT_EQ(run.result.rows.size(), 15U);
}

TEST(Refusals, APeerThatIsRefusedTooOftenIsDisconnected) {
  const test::NetworkRun run = run_with(text_without_memory(), [](RawPeer& peer, const net::wire::Open& open) {
    for (std::uint64_t i = 0; i < net::kMostRefusals; ++i) peer.send(update_of(open.round(), 2));
  });
  EXPECT_THAT(run.error, HasSubstr("client 6 has left in round 1"));
  EXPECT_THAT(run.error, HasSubstr("refused 16 times"));
}

TEST(Refusals, APeerThatLeavesEndsTheRunWhenPatienceEnds) {
  const test::NetworkRun run = run_with(text_without_memory(), [](RawPeer& peer, const net::wire::Open&) {
    net::wire::Header header;
    header.mutable_goodbye();
    peer.send(header);
  });
  EXPECT_THAT(run.error, HasSubstr("client 6 has left in round 1"));
}

std::uint64_t times_refused(const net::WireCounts& counts, const std::string& part) {
  std::uint64_t times = 0;
  for (const auto& [reason, count] : counts.refused) times += reason.find(part) != std::string::npos ? count : 0;
  return times;
}

TEST(Refusals, NormsThatAreNoneRefuseTheMessageAlone) {
  std::string text = text_without_memory();
  text.replace(text.find("every = 3"), 9, "every = 3\nmeasure_every = 1");
  const test::NetworkRun run = run_with(text, [](RawPeer& peer, const net::wire::Open& open) {
    net::wire::Header header = update_of(open.round(), 6);
    header.mutable_update()->set_refused(true);
    peer.send(header);
    if (open.round() != 2) return;
    net::wire::Header norms;
    norms.mutable_norms()->set_round(open.round());
    norms.mutable_norms()->set_client(6);
    for (int i = 0; i < 6; ++i) norms.mutable_norms()->add_values(-1);
    peer.send(norms);
  });
  ASSERT_EQ(run.error, "");
  EXPECT_EQ(times_refused(run.counts, "its norms are negative"), 1U);
  EXPECT_EQ(run.result.rows.size(), 15U);
}

TEST(Refusals, WorkThatIsOutOfRangeRefusesTheMessage) {
  const test::NetworkRun run = run_with(text_without_memory(), [](RawPeer& peer, const net::wire::Open& open) {
    net::wire::Header header = update_of(open.round(), 6);
    header.mutable_update()->set_work_less_one(open.round() == 1 ? 1e300 : std::numeric_limits<double>::quiet_NaN());
    peer.send(header, net::Bytes(40, std::byte{1}));
  });
  ASSERT_EQ(run.error, "");
  EXPECT_EQ(times_refused(run.counts, "its work is out of range"), 14U);
}

TEST(Refusals, AMemoryThatIsNoneIsRefusedAndTheRunGoesOn) {
  test::Method method = test::methods().at(1);
  method.more = "[participation]\nkind = 'uniform'\nclients = 7\nabsent = 'server'\n";
  const auto refuse = [](RawPeer& peer, const net::wire::Open& open) {
    net::wire::Header header = update_of(open.round(), 6);
    header.mutable_update()->set_refused(true);
    peer.send(header);
  };
  const test::NetworkRun run = run_with(test::text_of(method, "float32"), refuse, [](RawPeer& peer, std::uint32_t round) {
    net::wire::Header memory;
    memory.mutable_memory()->set_round(round);
    memory.mutable_memory()->set_client(6);
    peer.send(memory, net::Bytes(round == 1 ? 3 : 4 * 112, std::byte{0xff}));  // too short; NaN
  });
  ASSERT_EQ(run.error, "");
  EXPECT_EQ(times_refused(run.counts, "its memory"), 14U);
  EXPECT_EQ(run.result.rows.size(), 15U);
}

// ---- connections

net::RunOffer offer_of(std::uint32_t clients) {
  return {.run = 1, .split = 1, .scenario = std::make_shared<const net::Bytes>(), .num_clients = clients};
}

net::wire::Header ready_with(std::uint32_t closed_round) {
  net::wire::Header ready;
  ready.mutable_ready()->set_run(1);
  ready.mutable_ready()->set_split(1);
  ready.mutable_ready()->set_closed_round(closed_round);
  return ready;
}

void wait_for(const std::function<bool()>& is_true) {
  for (int i = 0; i < 1000 && !is_true(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_TRUE(is_true());
}

TEST(Refusals, APeerThatSaysNothingIsDisconnected) {
  net::PeerHub hub({.hello_limit = std::chrono::milliseconds(60)});
  RawPeer peer(hub.port());
  EXPECT_THAT(peer.read_goodbye(), HasSubstr("no hello after 60 ms"));
}

TEST(Refusals, APeerThatFallsSilentIsDisconnectedAndOneThatSendsHeartbeatsIsNot) {
  using std::chrono::milliseconds;
  net::PeerHub hub({.heartbeat_every = milliseconds(30), .silence_limit = milliseconds(400)});
  RawPeer silent(hub.port()), alive(hub.port());
  silent.say_hello("0");
  alive.say_hello("1");
  net::wire::Header heartbeat;
  heartbeat.mutable_heartbeat();
  std::thread beats([&] {
    for (int i = 0; i < 20; ++i) {
      alive.send(heartbeat);
      std::this_thread::sleep_for(milliseconds(40));
    }
  });
  EXPECT_TRUE(silent.read()->header.has_heartbeat());
  EXPECT_EQ(silent.read_goodbye(), "") << "the connection ends without a word";
  beats.join();
  EXPECT_TRUE(alive.read()->header.has_heartbeat());
}

TEST(Refusals, APeerThatDoesNotReadIsDisconnected) {
  net::PeerHub hub({.most_outbox_bytes = 1 << 20});
  hub.begin_run(offer_of(1));
  RawPeer peer(hub.port());
  peer.say_hello("0");
  ASSERT_TRUE(peer.read()->header.has_assignment());
  peer.send(ready_with(0));
  wait_for([&hub] { return hub.attendance().num_hosted == 1; });
  const std::vector<std::uint32_t> cohort{0};
  const std::vector<net::HostId> hosts = hub.hosts_of(cohort);
  const auto payload = std::make_shared<const net::Bytes>(1 << 20);
  net::wire::Header mean;
  mean.mutable_mean()->set_round(1);
  for (int i = 0; i < 64; ++i)
    hub.send({.host = hosts[0],
              .moment = i == 0 ? net::Moment::opening : net::Moment::within,
              .round = 1,
              .frame = net::make_frame(mean, {payload})});
  EXPECT_EQ(hub.attendance().num_hosted, 0U);
  EXPECT_EQ(times_refused(hub.counts(), "it does not read"), 1U);
}

TEST(Sessions, ATokenTakesTheClientsBackAndClosesTheOldConnection) {
  net::PeerHub hub({});
  hub.begin_run(offer_of(7));
  RawPeer first(hub.port());
  first.say_hello("0-3");
  const std::string token = first.read()->header.assignment().token();
  EXPECT_EQ(token.size(), 16U);
  first.send(ready_with(0));
  wait_for([&hub] { return hub.attendance().num_hosted == 4; });

  net::wire::Header hello = RawPeer::hello("0-2");
  hello.mutable_hello()->set_token(token);
  RawPeer other(hub.port());
  other.send(hello);
  EXPECT_THAT(other.read_goodbye(), HasSubstr("its session has the clients 0-3, not 0-2"));

  hello = RawPeer::hello("0-3");
  hello.mutable_hello()->set_token(token);
  RawPeer second(hub.port());
  second.send(hello);
  EXPECT_EQ(second.read()->header.assignment().token(), token);
  EXPECT_FALSE(first.read().has_value());
  EXPECT_EQ(hub.attendance().num_hosted, 0U) << "before it is ready";
  second.send(ready_with(0));
  wait_for([&hub] { return hub.attendance().num_hosted == 4; });

  hello.mutable_hello()->set_token(std::string(16, 'x'));
  RawPeer thief(hub.port());
  thief.send(hello);
  EXPECT_THAT(thief.read_goodbye(), HasSubstr("client 0 is hosted by another peer already"));
}

// Two rounds with the clients 0-3 close, and their peer leaves after it has acknowledged the first one. Returns its token.
std::string play_two_rounds(net::PeerHub& hub) {
  hub.begin_run(offer_of(7));
  RawPeer first(hub.port());
  first.say_hello("0-3");
  const std::string token = first.read()->header.assignment().token();
  first.send(ready_with(0));
  wait_for([&hub] { return hub.attendance().num_hosted == 4; });
  const std::vector<std::uint32_t> cohort{0, 1};
  const std::vector<net::HostId> hosts(1, hub.hosts_of(cohort)[0]);
  for (const std::uint32_t round : {5U, 8U}) {
    net::wire::Header open, close;
    open.mutable_open()->set_round(round);
    close.mutable_close()->set_round(round);
    hub.send({.host = hosts[0], .moment = net::Moment::opening, .round = round, .frame = net::make_frame(open)});
    hub.send({.host = hosts[0], .moment = net::Moment::closing, .round = round, .clients = cohort, .frame = net::make_frame(close)});
  }
  net::wire::Header closed;
  closed.mutable_closed()->set_round(5);
  const std::uint64_t seen = hub.attendance().num_changes;
  first.send(closed);
  wait_for([&] { return hub.attendance().num_changes != seen; });
  first.kill();
  wait_for([&hub] { return hub.attendance().num_hosted == 0; });
  return token;
}

net::wire::Header hello_with(const std::string& token) {
  net::wire::Header hello = RawPeer::hello("0-3");
  hello.mutable_hello()->set_token(token);
  return hello;
}

TEST(Sessions, APeerWithAnotherStateIsNotTakenBackAndOneWithTheLastRoundIsSentItAgain) {
  net::PeerHub hub({});
  const std::string token = play_two_rounds(hub);
  RawPeer restarted(hub.port());  // as a new process, which has lost the token and the state
  restarted.say_hello("0-3");
  EXPECT_EQ(restarted.read()->header.assignment().closed_round(), 8U);
  restarted.send(ready_with(0));
  EXPECT_THAT(restarted.read_goodbye(), HasSubstr("have the state of round 0, and their last one is round 8"));

  RawPeer back(hub.port());
  back.send(hello_with(token));
  EXPECT_EQ(back.read()->header.assignment().closed_round(), 8U);
  back.send(ready_with(5));
  const std::optional<net::Frame> open = back.read(), close = back.read();
  ASSERT_TRUE(open && open->header.has_open() && close && close->header.has_close());
  EXPECT_EQ(open->header.open().round(), 8U);
  EXPECT_TRUE(open->header.open().is_replay());
  EXPECT_EQ(close->header.close().round(), 8U);
  EXPECT_EQ(hub.attendance().num_hosted, 4U);
}

// The peer leaves after the run has counted on it for its first round, and before that round opens.
TEST(Sessions, APeerThatLeavesJustBeforeItsFirstRoundIsSentItLater) {
  net::PeerHub hub({});
  hub.begin_run(offer_of(7));
  RawPeer first(hub.port());
  first.say_hello("0-3");
  const std::string token = first.read()->header.assignment().token();
  first.send(ready_with(0));
  wait_for([&hub] { return hub.attendance().num_hosted == 4; });
  const std::vector<net::HostId> hosts(1, hub.hosts_of(std::vector<std::uint32_t>{0, 1})[0]);
  first.kill();
  wait_for([&hub] { return hub.attendance().num_hosted == 0; });

  net::wire::Header open;
  open.mutable_open()->set_round(1);
  hub.send({.host = hosts[0], .moment = net::Moment::opening, .round = 1, .frame = net::make_frame(open)});
  RawPeer back(hub.port());
  back.send(hello_with(token));
  ASSERT_EQ(back.read()->header.assignment().token(), token);
  back.send(ready_with(0));
  const std::optional<net::Frame> sent = back.read();
  ASSERT_TRUE(sent && sent->header.has_open());
  EXPECT_EQ(sent->header.open().round(), 1U);
  EXPECT_FALSE(sent->header.open().is_replay());
}

// The run begins again while the peer prepares its answer to the first offer, which names a round that the server has gone back from.
TEST(Sessions, AnAnswerToAnEarlierOfferOfTheSameRunCountsForNothing) {
  net::PeerHub hub({});
  const std::string token = play_two_rounds(hub);
  RawPeer back(hub.port());
  back.send(hello_with(token));
  EXPECT_EQ(back.read()->header.assignment().closed_round(), 8U);
  net::RunOffer offer = offer_of(7);
  offer.closed_rounds.assign(7, 5);
  hub.begin_run(offer);
  EXPECT_EQ(back.read()->header.assignment().closed_round(), 5U);
  back.send(ready_with(8));
  back.send(ready_with(5));
  wait_for([&hub] { return hub.attendance().num_hosted == 4; });
  EXPECT_TRUE(hub.counts().refused.empty());
}

TEST(Sessions, FramesAreNotKeptForEverForAPeerThatHasLeft) {
  net::PeerHub hub({.keeps_rounds = std::chrono::seconds(0)});
  const std::string token = play_two_rounds(hub);
  std::this_thread::sleep_for(std::chrono::milliseconds(600));  // two looks at all connections
  RawPeer back(hub.port());
  back.send(hello_with(token));
  EXPECT_EQ(back.read()->header.assignment().closed_round(), 8U);
  back.send(ready_with(5));
  EXPECT_THAT(back.read_goodbye(), HasSubstr("that state is lost"));
}

}  // namespace
}  // namespace fl
