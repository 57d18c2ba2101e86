// Tests peers that are away when the server writes a checkpoint: the server that goes on from it sends them the rounds that they miss.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "net/server/kept_rounds.hpp"
#include "net/server/roster.hpp"
#include "tests/net/presence_run.hpp"
#include "tests/support/every_method.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;
using net::KeptRounds;
using net::Roster;
using test::Fault;

constexpr std::uint32_t kSavedRound = 5;

class ServerIsGone : public std::runtime_error {
 public:
  ServerIsGone() : std::runtime_error("the server stops here") {}
};

// The faults of the peer of clients 3-6: its connection ends before Close of the saved round, and it is back when the server goes on.
class Away {
 public:
  Fault fault(const net::wire::Header& header) {
    if (header.has_close() && header.close().round() == kSavedRound && !was_cut_) {
      was_cut_ = true;
      return Fault::cut_before;
    }
    if (!header.has_assignment() || !was_cut_ || is_over_) return Fault::none;
    while (!server_is_back_ && !is_over_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return std::exchange(has_waited_, true) ? Fault::none
                                            : Fault::cut_before;  // and comes once more, to the offer of the server that is back
  }
  void note_server_is_back() { server_is_back_ = true; }
  std::atomic<bool> is_over_ = false;

 private:
  std::atomic<bool> server_is_back_ = false;
  bool was_cut_ = false, has_waited_ = false;
};

// Plays the scenario until the round after the checkpoint, and once more from the checkpoint.
RunResult play_with_stop(const std::string& text, const fs::path& file, Away& away, net::RemoteSource& clients) {
  const CheckpointPlan plan{.file = file, .every_rounds = kSavedRound, .resume = true, .pages = {}};
  try {
    CellRunner runner(DataCatalog(""), {.threads = 1, .source = &clients});
    static_cast<void>(runner.run(
        test::cell_of(text),
        [](const RoundRow& row) -> bool {
          if (row.round > kSavedRound) throw ServerIsGone();
          return true;
        },
        plan));
  } catch (const ServerIsGone&) {
  }
  away.note_server_is_back();
  CellRunner runner(DataCatalog(""), {.threads = 1, .source = &clients});
  return runner.run(
      test::cell_of(text), [](const RoundRow&) { return true; }, plan);
}

TEST(PeersThatAreAway, WhenACheckpointIsWrittenGoOnFromIt) {
  for (const test::Method& method : test::methods()) {
    if (method.label != "feddyn" && method.label != "scaffold") continue;
    const std::string text = test::text_of(method, "float32");
    const fs::path file = fs::path(testing::TempDir()) / ("away-" + std::to_string(::getpid()));
    Away away;
    RunResult result;
    std::string error;
    std::vector<std::thread> peers;
    {
      net::PeerHub hub({});
      peers.emplace_back([&away, port = hub.port()] {
        test::FaultyPeer late(
            port, "3-6", [&away](const net::wire::Header& header) { return away.fault(header); }, away.is_over_);
        late.play();
        away.is_over_ = true;  // it was told goodbye, or all is done
      });
      peers.emplace_back([port = hub.port()] {
        try {
          static_cast<void>(net::join_server({.port = port, .clients = net::parse_client_ranges("0-2"), .patience_s = 5}, {}));
        } catch (const Error&) {  // the server says what has failed
        }
      });
      net::RemoteSource clients(hub, [&away] { return !away.is_over_; }, {.deadline_s = 20});
      try {
        result = play_with_stop(text, file, away, clients);
      } catch (const std::exception& failure) {
        error = failure.what();
        hub.set_farewell("the test has failed");
      }
      away.is_over_ = true;
    }
    for (std::thread& peer : peers) peer.join();
    fs::remove(file);
    EXPECT_EQ(error, "");
    const RunResult simulated = test::run_simulated(text);
    EXPECT_EQ(simulated.record.checksum, result.record.checksum) << method.label;
    EXPECT_TRUE(test::bytes_of_rows(text, simulated.rows) == test::bytes_of_rows(text, result.rows)) << method.label;
  }
}

// ---- the kept rounds themselves

std::vector<KeptRounds> two_kept_rounds() {
  const auto shared = std::make_shared<const net::Bytes>(1000, std::byte{7});
  const auto own = std::make_shared<const net::Bytes>(10, std::byte{8});
  net::wire::Header open;
  open.mutable_open()->set_round(4);
  const auto round = [&](std::uint32_t number, std::uint32_t before) {
    return net::PlayedRound{.round = number,
                            .before = before,
                            .is_closed = true,
                            .num_answers = 2,
                            .frames = {net::make_frame(open, {shared, own}), net::make_frame(open, {shared})}};
  };
  return {{.clients = {{0, 1}, {4, 4}}, .rounds = {round(4, 2), round(6, 4)}}, {.clients = {{2, 3}}, .rounds = {round(6, 5)}}};
}

TEST(KeptRoundsTest, AreReadAsTheyWereWrittenAndShareTheirPieces) {
  std::vector<KeptRounds> kept = two_kept_rounds(), read;
  Archive out;
  net::persist(out, kept);
  EXPECT_LT(out.bytes().size(), 2000U) << "a piece that six frames share is written once";
  Archive in(out.bytes());
  net::persist(in, read);
  in.finish();
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].clients, kept[0].clients);
  ASSERT_EQ(read[0].rounds.size(), 2U);
  EXPECT_EQ(read[0].rounds[1].round, 6U);
  EXPECT_EQ(read[0].rounds[1].before, 4U);
  EXPECT_TRUE(read[0].rounds[1].is_closed);
  ASSERT_EQ(read[0].rounds[1].frames.size(), 2U);
  EXPECT_EQ(read[0].rounds[1].frames[0].head, kept[0].rounds[1].frames[0].head);
  EXPECT_EQ(*read[0].rounds[1].frames[0].payload.at(1), *kept[0].rounds[1].frames[0].payload.at(1));
  EXPECT_EQ(read[0].rounds[0].frames[0].payload.at(0), read[1].rounds[0].frames[1].payload.at(0));
}

TEST(KeptRoundsTest, ThatCannotBeAreRefused) {
  const auto refusal = [](const std::function<void(std::vector<KeptRounds>&)>& damage) -> std::string {
    std::vector<KeptRounds> kept = two_kept_rounds(), read;
    damage(kept);
    Archive out;
    net::persist(out, kept);
    Archive in(out.bytes());
    try {
      net::persist(in, read);
    } catch (const ArchiveError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal([](auto& kept) { kept[0].clients = {{4, 4}, {0, 1}}; }), "");
  EXPECT_NE(refusal([](auto& kept) { kept[0].rounds[1].before = 3; }), "");
  EXPECT_NE(refusal([](auto& kept) { kept[0].rounds.clear(); }), "");
  EXPECT_EQ(refusal([](auto&) {}), "");
}

// ---- the sessions of a server that goes on

const std::vector<std::uint32_t> kClosedRounds = {6, 6, 6, 6, 6};

void expect_can_continue(net::Session& session) {
  EXPECT_EQ(session.closed, 6U);
  for (const std::uint32_t round : {2U, 4U, 6U}) EXPECT_TRUE(session.can_continue_from(round)) << round;
  EXPECT_FALSE(session.can_continue_from(3));
}

TEST(RosterThatGoesOn, GivesKeptRoundsToAPeerThatComesLater) {
  Roster roster;
  roster.begin_run(5, kClosedRounds, two_kept_rounds());
  EXPECT_EQ(roster.num_hosted(), 0U);
  EXPECT_EQ(roster.missing().size(), 5U);
  EXPECT_TRUE(roster.all_acknowledged());
  EXPECT_FALSE(roster.all_acknowledged(true));
  net::PeerId replaced = net::kNobody;
  net::Session& session = roster.admit(1, {{0, 1}, {4, 4}}, "a token of the process before", replaced);
  expect_can_continue(session);
  roster.leave(session, "its connection has ended");
  expect_can_continue(roster.admit(2, {{0, 1}, {4, 4}}, "", replaced));
  EXPECT_EQ(roster.kept_rounds().size(), 2U);
}

TEST(RosterThatGoesOn, GivesKeptRoundsToAPeerThatIsThere) {
  Roster roster;
  net::PeerId replaced = net::kNobody;
  net::Session& session = roster.admit(1, {{0, 1}, {4, 4}}, "", replaced);
  roster.admit(2, {{2, 2}}, "", replaced);
  roster.begin_run(5, kClosedRounds, two_kept_rounds());
  expect_can_continue(session);
  EXPECT_EQ(roster.kept_rounds().size(), 1U) << "a peer with other clients cannot use them";
}

TEST(RosterThatGoesOn, LeavesKeptRoundsOutThatAreNotTheLastOnes) {
  Roster roster;
  roster.begin_run(5, std::vector<std::uint32_t>{7, 6, 6, 6, 6}, two_kept_rounds());
  EXPECT_EQ(roster.kept_rounds().size(), 1U);
}

}  // namespace
}  // namespace fl
