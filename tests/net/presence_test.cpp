// Tests runs whose peers lose their connections, stay silent, are slow or are not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/net/presence_run.hpp"
#include "tests/support/every_method.hpp"

namespace fl {
namespace {

using test::Fault;
using testing::HasSubstr;
using namespace std::chrono_literals;
using Header = net::wire::Header;

std::string with_rounds(std::string text, int rounds) {
  return text.replace(text.find("rounds = 14"), 11, "rounds = " + std::to_string(rounds));
}

test::Method method_of(const std::string& label) {
  for (const test::Method& one : test::methods())
    if (one.label == label) return one;
  throw Error("no method " + label);
}

std::uint32_t round_of(const Header& header) {
  if (header.has_open()) return header.open().round();
  if (header.has_mean()) return header.mean().round();
  return header.has_close() ? header.close().round() : 0;
}

// The fault meets the frames of one kind in some rounds, once in each.
test::Faults once_per_round(Header::KindCase kind, std::set<std::uint32_t> rounds, Fault fault) {
  return
      [=](const Header& header) mutable { return header.kind_case() == kind && rounds.erase(round_of(header)) > 0 ? fault : Fault::none; };
}

// Methods with phases, channels and memory, and what their rounds ask for beside messages.
std::vector<std::string> texts_of_all_kinds() {
  test::Method memory = method_of("ef14_momentum");
  memory.more += "[participation]\nkind = 'uniform'\nclients = 4\nabsent = 'server'\n";
  std::vector<std::string> texts;
  for (const test::Method& one : {method_of("powersgd"), method_of("scaffold"), method_of("ef21"), memory})
    texts.push_back(with_rounds(test::text_of(one, "float32"), 6));
  return texts;
}

TEST(Presence, APeerThatConnectsAgainInAnyPhaseChangesNothing) {
  for (const std::string& text : texts_of_all_kinds()) {
    const RunResult simulated = test::run_simulated(text);
    for (const auto kind : {Header::kOpen, Header::kMean, Header::kClose})
      for (const Fault fault : {Fault::cut_before, Fault::cut_between, Fault::cut_after}) {
        if (kind == Header::kMean && text.find("powersgd") == std::string::npos) continue;  // the others have one phase
        SCOPED_TRACE(testing::Message() << "kind " << kind << ", fault " << static_cast<int>(fault) << "\n" << text);
        const test::PresenceRun run = test::run_with_presence(
            text, {}, {{"0-1"}, {"2,5", once_per_round(kind, {1, 3, 4, 6}, fault)}, {"3-4,6", once_per_round(kind, {3}, fault)}});
        test::expect_same_run(text, simulated, run);
        EXPECT_TRUE(run.counts.refused.empty()) << run.counts.refused.begin()->first;
      }
  }
}

// The connection ends at the same time as the run, or before its first round.
TEST(Presence, APeerThatConnectsAgainBeforeTheFirstRoundChangesNothing) {
  const std::string text = test::text_of(method_of("ef21"), "float64");
  for (const Fault fault : {Fault::cut_before, Fault::cut_after}) {
    const test::PresenceRun run = test::run_with_presence(text, {}, {{"0-3"}, {"4-6", once_per_round(Header::kAssignment, {0}, fault)}});
    test::expect_same_run(text, test::run_simulated(text), run);
  }
}

TEST(Presence, APeerThatDoesNotComeBackEndsTheRunWithTheNamesOfItsClients) {
  const std::string text = test::text_of(method_of("none"), "float32");
  const test::PresenceRun run = test::run_with_presence(text, {.patience_s = 0.3}, {{"0-3"}}, {}, [](std::uint16_t port) {
    std::atomic<bool> ends = false;
    test::FaultyPeer peer(
        port, "4-6",
        [&ends](const Header& header) {
          if (!header.has_open() || header.open().round() != 5) return Fault::none;
          ends = true;
          return Fault::cut_before;
        },
        ends);
    peer.play();
  });
  EXPECT_THAT(run.error, HasSubstr("clients 4-6 have left in round 5"));
  EXPECT_THAT(run.error, HasSubstr("within 0.3 s"));
}

TEST(Presence, ASilentPeerIsAbsentAfterTheDeadline) {
  const std::string text = test::text_of(method_of("ef21"), "float32");
  const auto silent_until_4 = [](const Header& header) {
    return header.has_open() && header.open().round() >= 2 && header.open().round() < 4 ? Fault::mute : Fault::none;
  };
  const test::PresenceRun run = test::run_with_presence(text, {.deadline_s = 0.6}, {{"0-3"}, {"4-6", silent_until_4}});
  ASSERT_EQ(run.error, "");
  EXPECT_LT(run.longest_round_s, 1.6);
  ASSERT_EQ(run.result.rows.size(), 15U);
  for (const RoundRow& row : run.result.rows) EXPECT_EQ(row.refused, row.round == 2 || row.round == 3 ? 3U : 0U) << row.round;
  EXPECT_TRUE(run.counts.refused.empty());
}

// Ready for the run, a peer announces an update and sends a byte of it from time to time.
TEST(Presence, APeerThatSendsAByteAtATimeHoldsNobodyUp) {
  const std::string text = with_rounds(test::text_of(method_of("ef21"), "float32"), 4);
  const auto slow = [](std::uint16_t port) {
    test::RawPeer peer(port);
    peer.say_hello("6");
    const net::wire::Assignment assignment = peer.read()->header.assignment();
    Header ready;
    ready.mutable_ready()->set_run(assignment.run());
    ready.mutable_ready()->set_split(assignment.split());
    peer.send(ready);
    try {
      const net::Bytes frame = test::RawPeer::frame_of(net::Bytes(100), 0);
      peer.write(std::span(frame).first(net::kPrefixBytes));
      for (;;) {
        std::this_thread::sleep_for(50ms);
        peer.write(std::array{std::byte{0}});
      }
    } catch (const boost::system::system_error&) {  // the run has ended
    }
  };
  const test::PresenceRun run = test::run_with_presence(text, {.deadline_s = 0.3}, {{"0-5"}}, {}, slow);
  ASSERT_EQ(run.error, "");
  EXPECT_LT(run.longest_round_s, 1.3);
  for (const RoundRow& row : run.result.rows) EXPECT_EQ(row.refused, row.round == 0 ? 0U : 1U) << row.round;
}

TEST(Presence, LateAnswersAreCountedAndCostThePeerNothing) {
  const std::string text = test::text_of(method_of("ef21"), "float32");
  const auto slow = [](const Header& header) {
    if (header.has_open() && header.open().round() <= 6 && !header.open().is_replay()) std::this_thread::sleep_for(250ms);
    return Fault::none;
  };
  const test::PresenceRun run = test::run_with_presence(text, {.deadline_s = 0.2}, {{"0-3"}, {"4-6", slow}});
  ASSERT_EQ(run.error, "");
  EXPECT_GE(run.counts.late, 3U);
  EXPECT_TRUE(run.counts.refused.empty()) << run.counts.refused.begin()->first;
  EXPECT_EQ(run.peer_errors[1], "");
}

// The other clients come while round 5 is played, which goes on without them. The run is long enough for them to be ready before its end,
// also on a slow machine.
TEST(Presence, ARunBeginsWithFewerClientsAndTakesTheOthersLater) {
  const std::string text = with_rounds(test::text_of(method_of("ef21"), "float32"), 300);
  std::atomic<bool> may_join = false, is_joining = false, is_asked = false, is_over = false;
  const auto tells = [&](const Header& header) {
    if (!header.has_open() || header.open().round() < 5) return Fault::none;
    may_join = true;
    while (!is_joining) std::this_thread::sleep_for(1ms);
    if (!is_asked) std::this_thread::sleep_for(20ms);
    return Fault::none;
  };
  const test::PresenceRun run = test::run_with_presence(text, {.min_clients = 4}, {{"0-3", tells}}, {}, [&](std::uint16_t port) {
    while (!may_join) std::this_thread::sleep_for(1ms);
    const auto joins = [&](const Header& header) {
      is_joining = is_joining || header.has_assignment();
      is_asked = is_asked || header.has_open();
      return Fault::none;
    };
    test::FaultyPeer(port, "4-6", joins, is_over).play();
  });
  ASSERT_EQ(run.error, "");
  EXPECT_EQ(run.result.rows[1].clients, 4U);
  EXPECT_EQ(run.result.rows[5].clients, 4U);
  EXPECT_EQ(run.result.rows.back().clients, 7U);
}

TEST(Presence, OverSelectionTakesTheFirstMessages) {
  test::Method method = method_of("ef21");
  method.more = "[participation]\nkind = 'uniform'\nclients = 3\n";
  const std::string text = test::text_of(method, "float32");
  const auto slow = [](const Header& header) {
    if (header.has_open()) std::this_thread::sleep_for(20ms);
    return Fault::none;
  };
  const test::PresenceRun run =
      test::run_with_presence(text, {.over_select = 2}, {{"0"}, {"1"}, {"2"}, {"3"}, {"4", slow}, {"5", slow}, {"6", slow}});
  ASSERT_EQ(run.error, "");
  for (const RoundRow& row : run.result.rows) {
    if (row.round == 0) continue;
    EXPECT_EQ(row.clients, 6U) << row.round;
    EXPECT_GE(row.clients - row.refused, 3U) << row.round;
    EXPECT_LE(row.refused, 3U) << row.round;
  }
  EXPECT_TRUE(run.counts.refused.empty());
}

TEST(Presence, OverSelectionNeedsAParticipationWithASize) {
  const test::PresenceRun run = test::run_with_presence(test::text_of(method_of("ef21"), "float32"), {.over_select = 1.5}, {});
  EXPECT_THAT(run.error, HasSubstr("--over-select"));
}

TEST(Presence, ARunCannotBeginWithMoreClientsThanThereAre) {
  const test::PresenceRun run = test::run_with_presence(test::text_of(method_of("ef21"), "float32"), {.min_clients = 8}, {});
  EXPECT_THAT(run.error, HasSubstr("--min-clients: is 8, and the run has 7 clients"));
}

TEST(Presence, TheOrderOfArrivalDoesNotMatter) {
  const std::string text = with_rounds(test::text_of(method_of("ef14_momentum"), "float32"), 10);
  const RunResult simulated = test::run_simulated(text);
  for (unsigned order = 0; order < 10; ++order) {  // of ten rounds each
    std::vector<test::PeerPlan> peers;
    for (unsigned client = 0; client < 7; ++client)
      peers.push_back({std::to_string(client), [random = std::minstd_rand(order * 7 + client + 1)](const Header&) mutable {
                         std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
                         return Fault::none;
                       }});
    const test::PresenceRun run = test::run_with_presence(text, {}, peers);
    ASSERT_EQ(run.error, "");
    ASSERT_EQ(run.result.record.checksum, simulated.record.checksum) << order;
  }
}

// Each peer loses its connection in 30% of the rounds, at a random place. Two come back at once, the third one only after the deadline.
// The number of rounds is FEDBITS_KILLS, or 50.
TEST(Presence, RoundsEndInTimeThoughPeersAreKilled) {
  const char* wanted = std::getenv("FEDBITS_KILLS");
  const int rounds = wanted != nullptr ? std::stoi(wanted) : 50;
  const std::string text = with_rounds(test::text_of(method_of("ef21"), "float32"), rounds);
  std::vector<test::PeerPlan> peers;
  for (const unsigned peer : {1U, 2U, 3U}) {
    const std::string clients = peer == 1 ? "0-1" : peer == 2 ? "2,5" : "3-4,6";
    peers.push_back({clients,
                     [random = std::minstd_rand(peer), round = 0U, cut_at = 0U](const Header& header) mutable {
                       if (header.has_open() && header.open().round() != round) {
                         round = header.open().round();
                         cut_at = random() % 10 < 3 ? 1 + static_cast<unsigned>(random() % 6) : 0;
                       }
                       if (cut_at == 0 || (header.has_open() ? cut_at > 3 : cut_at <= 3)) return Fault::none;
                       const unsigned how = cut_at % 3;
                       cut_at = 0;
                       return how == 0 ? Fault::cut_before : how == 1 ? Fault::cut_between : Fault::cut_after;
                     },
                     peer == 3 ? 150ms : 1ms});
  }
  const double deadline_s = 0.1;
  const test::PresenceRun run = test::run_with_presence(text, {.deadline_s = deadline_s}, peers);
  ASSERT_EQ(run.error, "");
  EXPECT_EQ(run.result.rows.size(), static_cast<std::size_t>(rounds) + 1);
  EXPECT_LT(run.longest_round_s, deadline_s + 1);
  EXPECT_TRUE(run.counts.refused.empty()) << run.counts.refused.begin()->first;
  for (const std::string& goodbye : run.peer_errors) EXPECT_EQ(goodbye, "");
  std::uint64_t clients = 0, refused = 0;
  for (const RoundRow& row : run.result.rows) clients += row.clients, refused += row.refused;
  const double growth = static_cast<double>(run.heap_bytes_at_end - run.heap_bytes_at_fifth) / (0.8 * rounds);
  if (rounds >= 500) {
    EXPECT_LT(growth, 1024) << "bytes a round, of the server and all peers";
  }
  std::cout << rounds << " rounds, " << clients << " of " << 7 * rounds << " clients asked, " << refused << " absent, longest round "
            << run.longest_round_s << " s, late " << run.counts.late << ", heap +" << growth << " bytes a round" << std::endl;
}

}  // namespace
}  // namespace fl
