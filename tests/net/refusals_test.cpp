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
  peer.write(std::array{std::byte{2}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{1}, std::byte{0}});
  EXPECT_THAT(peer.read_goodbye(), HasSubstr("announces 16777216 bytes; at most 0"));
}

TEST(Refusals, AHeaderThatIsNoneIsRefused) {
  net::PeerHub hub({});
  RawPeer peer(hub.port());
  peer.write(std::array{std::byte{3}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0},
                        std::byte{0xff}, std::byte{0xff}, std::byte{0xff}});
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
  RawPeer second(hub.port());
  second.say_hello("3-4");
  EXPECT_THAT(second.read_goodbye(), HasSubstr("client 3 is hosted by another peer already"));
  RawPeer third(hub.port());
  third.say_hello("4-7");
  EXPECT_THAT(third.read_goodbye(), HasSubstr("the run has clients 0-6, not 4-7"));
}

// One peer of a run that hosts client 6 and answers as `answer` says; the others are honest.
test::NetworkRun run_with(const std::string& text, const std::function<void(RawPeer&, const net::wire::Open&)>& answer) {
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
      if (frame->header.has_run_end() || frame->header.has_goodbye()) return;
    }
  });
  net::RemoteSource clients(*hub, [] { return true; });
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

TEST(Refusals, APeerThatLeavesEndsTheRunAtOnce) {
  const test::NetworkRun run = run_with(text_without_memory(), [](RawPeer& peer, const net::wire::Open&) {
    net::wire::Header header;
    header.mutable_goodbye();
    peer.send(header);
  });
  EXPECT_THAT(run.error, HasSubstr("client 6 has left in round 1"));
}

}  // namespace
}  // namespace fl
