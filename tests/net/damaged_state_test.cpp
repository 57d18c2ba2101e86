// Tests `join --state` with one byte of the folder changed: a peer goes on with exactly the state that it had, or says what is damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "fl_core/state/checksum.hpp"
#include "net/peer/peer_run.hpp"
#include "net/peer/state_folder.hpp"
#include "net/wire/row_hashes.hpp"
#include "tests/net/network_run.hpp"
#include "tests/support/every_method.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHosted = "0-6";
constexpr std::uint32_t kStopsAfter = 9, kLastRound = 11;

std::string text_of_file(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

class DamagedPeerState : public testing::Test {
 protected:
  DamagedPeerState() : folder_(fs::path(testing::TempDir()) / ("damaged-state-" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~DamagedPeerState() override { fs::remove_all(folder_); }

  // Lets a peer play some rounds and stop. Its folder has a snapshot if a record is longer than `long_bytes`, and records of the rounds
  // after it.
  void play(std::uint32_t rounds, std::uint64_t long_bytes) const {
    fs::remove_all(folder_ / "whole");
    net::PeerHub hub({});
    net::RemoteSource clients(hub, [] { return true; }, {.patience_s = 0});
    std::thread peer([&] {
      net::JoinOptions options{.port = hub.port(), .clients = net::parse_client_ranges(kHosted), .state = folder_ / "whole"};
      options.long_bytes = long_bytes;
      std::uint32_t last = 0;
      static_cast<void>(net::join_server(options, {.tell = [&](const net::JoinEvent& event) { last = std::max(last, event.round); },
                                                   .goes_on = [&] { return last < rounds; }}));
    });
    try {
      CellRunner runner(DataCatalog(""), {.threads = 1, .source = &clients});
      static_cast<void>(runner.run(test::cell_of(text_), [](const RoundRow&) { return true; }));
    } catch (const Error&) {  // its peer has left
    }
    peer.join();
  }

  [[nodiscard]] net::PeerRun peer_in(const fs::path& folder) const {
    return {net::parse_client_ranges(kHosted), {}, {.folder = folder}, [this](const std::string& text) { said_ += text + "\n"; }};
  }
  // Lets a peer go on with the run, and returns the round that the peer has reached.
  [[nodiscard]] std::uint32_t begin(net::PeerRun& peer) const {
    const Cell cell = test::cell_of(text_);
    ThreadPool pool(1);
    const FederatedProblem<float> problem(cell.scenario, DataCatalog(""), pool);
    net::wire::Assignment assignment;
    assignment.set_run(cell.hash);
    assignment.set_split(problem.split_hash());
    assignment.set_closed_round(kStopsAfter);
    for (const std::uint64_t hash : net::stated_hashes(problem.row_hashes(), net::parse_client_ranges(kHosted))) assignment.add_rows(hash);
    const net::OutgoingFrame ready = peer.begin(assignment, std::as_bytes(std::span(cell.resolved_toml)));
    return net::parse_header(std::span(ready.head).subspan(net::kPrefixBytes)).ready().closed_round();
  }
  // Returns everything that a peer sends in further rounds.
  [[nodiscard]] std::string answers_of(net::PeerRun& peer, const std::vector<net::RoundRecord>& rounds) const {
    std::string all;
    for (const net::RoundRecord& round : rounds)
      for (const net::Frame& frame : round.frames)
        peer.take(frame, [&all](const std::vector<net::OutgoingFrame>& frames) {
          for (const net::OutgoingFrame& one : frames) {
            all.append(reinterpret_cast<const char*>(one.head.data()), one.head.size());
            for (const auto& payload : one.payload) all.append(reinterpret_cast<const char*>(payload->data()), payload->size());
          }
        });
    return all;
  }
  // Returns the two rounds that follow, as a peer that plays them is sent them.
  [[nodiscard]] std::vector<net::RoundRecord> later_rounds() const {
    play(kLastRound, net::kLongJournalBytes);
    copy("reading");
    const net::PeerJournal journal({.folder = folder_ / "reading", .run = to_hex(test::cell_of(text_).hash), .clients = kHosted});
    std::vector<net::RoundRecord> rounds;
    const net::JournalWay way = journal.ways_to(kLastRound).front();
    for (const std::size_t i : way.records)
      if (net::RoundRecord one = journal.read(i); one.round > kStopsAfter) rounds.push_back(std::move(one));
    return rounds;
  }
  void copy(const std::string& name) const {
    fs::remove_all(folder_ / name);
    fs::copy(folder_ / "whole", folder_ / name, fs::copy_options::recursive);
  }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ / "whole"))
      if (entry.is_regular_file() && fs::file_size(entry) > 0) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

  const fs::path folder_;
  const std::string text_ = test::text_of(test::written_methods().front(), "float32");
  mutable std::string said_;
};

TEST_F(DamagedPeerState, IsWholeOrNamed) {
  std::size_t whole = 0, behind = 0, refused = 0;
  const std::vector<net::RoundRecord> rounds = later_rounds();
  ASSERT_EQ(rounds.size(), 2U);
  for (const std::uint64_t long_bytes : {std::uint64_t{1}, net::kLongJournalBytes}) {
    play(kStopsAfter, long_bytes);
    copy("undamaged");
    std::string right;
    {
      net::PeerRun peer = peer_in(folder_ / "undamaged");
      ASSERT_EQ(begin(peer), kStopsAfter);
      right = answers_of(peer, rounds);
    }
    std::mt19937 random(7);
    const std::vector<std::string> names = files();
    for (int trial = 0; trial < 100; ++trial) {
      const std::string& name = names[static_cast<std::size_t>(trial) % names.size()];
      copy("damaged");
      std::string bytes = text_of_file(folder_ / "damaged" / name);
      const std::size_t place = random() % bytes.size();
      bytes[place] = static_cast<char>(bytes[place] ^ 1 << trial % 8);
      std::ofstream(folder_ / "damaged" / name, std::ios::binary) << bytes;
      SCOPED_TRACE(name + ", byte " + std::to_string(place));
      said_.clear();
      try {
        net::PeerRun peer = peer_in(folder_ / "damaged");
        const std::uint32_t reached = begin(peer);
        if (reached == kStopsAfter) {
          EXPECT_EQ(answers_of(peer, rounds), right);
          ++whole;
        } else {
          EXPECT_LT(reached, kStopsAfter);
          EXPECT_THAT(peer.mismatch(), testing::HasSubstr("has the clients' state of round " + std::to_string(reached)));
          EXPECT_THAT(said_, testing::HasSubstr(folder_.string())) << "the damage has a place";
          ++behind;
        }
      } catch (const StoreError& error) {
        EXPECT_THAT(std::string(error.what()), testing::HasSubstr(folder_.string()));
        ++refused;
      }
    }
  }
  EXPECT_GT(whole, 0U);
  EXPECT_GT(behind + refused, 50U);
}

TEST_F(DamagedPeerState, ATokenThatIsCutOffIsLeftOutAndNamed) {
  const fs::path folder = folder_ / "tokens";
  net::StateFolder(folder, {}).keep_token("0123456789abcdef");
  EXPECT_EQ(net::StateFolder(folder, {}).token(), "0123456789abcdef");
  EXPECT_EQ(net::StateFolder(folder, {}).damage(), "");
  fs::resize_file(folder / "session", 15);
  const net::StateFolder cut(folder, {});
  EXPECT_EQ(cut.token(), "");
  EXPECT_THAT(cut.damage(), testing::HasSubstr((folder / "session").string() + " is damaged: it has 15 bytes instead of 16"));
}

}  // namespace
}  // namespace fl
