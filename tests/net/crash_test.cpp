// Tests that a run whose peers and server stop and go on again has the bytes of the undisturbed one.
#include <gtest/gtest.h>

#include <filesystem>

#include "fl_core/state/checksum.hpp"
#include "tests/net/exact_run.hpp"
#include "tests/net/network_run.hpp"
#include "tests/support/every_method.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kScenarioRounds = 14;  // of test::text_of()

// The interruptions of a run over the network, and its settings.
struct Trouble {
  std::vector<std::uint64_t> server_stops_after{};  // rounds in which the server stops and goes on from its last checkpoint
  std::uint64_t peers_stop_every = 0;               // rounds of a peer after which another process takes its place; 0 = never
  std::uint64_t long_bytes = net::kLongJournalBytes;
  std::uint64_t state_memory = 0;
  const ServerData* known = nullptr;  // of a server without training rows
};

class Crash : public std::runtime_error {
 public:
  Crash() : std::runtime_error("the server stops here") {}
};

fs::path crash_folder() {
  const fs::path folder = fs::path(testing::TempDir()) / ("crash-" + std::to_string(::getpid()));
  fs::remove_all(folder);
  return folder;
}

// One peer, by one process after another.
std::string join_with_stops(std::uint16_t port, const std::string& ids, const fs::path& folder, const Trouble& trouble) {
  try {
    for (bool is_done = false; !is_done;) {
      std::uint64_t closed = 0, last = 0;
      net::JoinOptions options{.port = port, .clients = net::parse_client_ranges(ids), .patience_s = 3, .state = folder / ids};
      options.long_bytes = trouble.long_bytes;
      options.machine.paging.memory_bytes = trouble.state_memory;
      net::JoinEvents events;
      events.tell = [&](const net::JoinEvent& event) {
        if (event.kind != net::JoinEvent::Kind::round_closed) return;
        ++closed;
        last = event.round;
      };
      // Nobody stops at the end, when the server may be gone before the next process is there.
      events.goes_on = [&] { return trouble.peers_stop_every == 0 || closed < trouble.peers_stop_every || last > kScenarioRounds - 2; };
      is_done = !net::join_server(options, events).was_stopped;
    }
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

RunResult serve_with_stops(const std::string& text, const fs::path& folder, const Trouble& trouble, net::RemoteSource& clients) {
  std::size_t stops = 0;
  const CheckpointPlan plan{.file = folder / "server.checkpoint", .every_rounds = 3, .resume = true, .pages = {}};
  for (;;) {
    try {
      CellRunner runner(DataCatalog(""), {.threads = 1, .source = &clients, .server_data = trouble.known});
      return runner.run(
          test::cell_of(text),
          [&](const RoundRow& row) {
            if (stops >= trouble.server_stops_after.size() || row.round != trouble.server_stops_after[stops]) return true;
            ++stops;
            throw Crash();
          },
          plan);
    } catch (const Crash&) {
    }
  }
}

void expect_same_run_in_trouble(const std::string& text, const std::vector<std::string>& hosted, const Trouble& trouble) {
  const RunResult simulated = test::run_simulated(text);
  const fs::path folder = crash_folder();
  std::vector<std::string> errors(hosted.size());
  std::vector<std::thread> peers;
  std::atomic<std::size_t> failed = 0;
  RunResult result;
  {
    net::PeerHub hub({});
    net::RemoteSource clients(hub, [&failed] { return failed == 0; });
    for (std::size_t i = 0; i < hosted.size(); ++i)
      peers.emplace_back([&, i] {
        errors[i] = join_with_stops(hub.port(), hosted[i], folder, trouble);
        if (!errors[i].empty() && !errors[i].starts_with("cannot reach")) ++failed;
      });
    try {
      result = serve_with_stops(text, folder, trouble, clients);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "the server: " << error.what();
      hub.set_farewell("the test has failed");
    }
  }
  for (std::thread& peer : peers) peer.join();
  EXPECT_EQ(simulated.record.checksum, result.record.checksum);
  EXPECT_TRUE(test::bytes_of_rows(text, simulated.rows) == test::bytes_of_rows(text, result.rows));
  for (std::size_t i = 0; i < hosted.size(); ++i) {
    // A peer that has no part in the last rounds may find that the server has ended without it.
    if (trouble.peers_stop_every > 0 && errors[i].starts_with("cannot reach")) continue;
    EXPECT_EQ(errors[i], "");
    EXPECT_TRUE(net::PeerJournal::runs_in(folder / hosted[i]).empty()) << "state is left at a clean end";
  }
  fs::remove_all(folder);
}

test::Method method_called(const std::string& label) {
  for (test::Method& method : test::methods())
    if (method.label == label) return method;
  throw Error("no method is called " + label);
}

std::string text_of_label(const std::string& label) { return test::text_of(method_called(label), "float32"); }

// Methods with state at clients, at operators and in common; with sampled clients and compressed differences downwards; with phases.
class CrashOfMethod : public testing::TestWithParam<std::string> {};

TEST_P(CrashOfMethod, PeersThatGoOnFromTheirState) {
  expect_same_run_in_trouble(text_of_label(GetParam()), {"0-1", "2,5", "3-4,6"}, {.peers_stop_every = 3});
}

TEST_P(CrashOfMethod, PeersThatGoOnFromSnapshots) {
  expect_same_run_in_trouble(text_of_label(GetParam()), {"0-3", "4-6"}, {.peers_stop_every = 2, .long_bytes = 1});
}

TEST_P(CrashOfMethod, AServerThatGoesBack) {
  expect_same_run_in_trouble(text_of_label(GetParam()), {"0-3", "4-6"}, {.server_stops_after = {2, 8, 11}});
}

TEST_P(CrashOfMethod, BothInTrouble) {
  expect_same_run_in_trouble(text_of_label(GetParam()), {"0-1", "2", "3-6"},
                             {.server_stops_after = {5, 6, 13}, .peers_stop_every = 4, .long_bytes = 200});
}

INSTANTIATE_TEST_SUITE_P(Methods, CrashOfMethod,
                         testing::Values("ef14", "ef14_sampled", "ef21_p", "scaffold", "feddyn", "powersgd", "marina", "variance_based",
                                         "lgreco"),
                         [](const auto& one) { return one.param; });

// A server that goes on from its checkpoint asks for the sums of the rounds that it plays again.
TEST(CrashOfAServerWithoutRows, GoesOnFromItsCheckpoint) {
  for (const std::string label : {"ef14", "scaffold"}) {
    const std::string text = text_of_label(label);
    const std::string file = (fs::temp_directory_path() / ("fedbits_crash_" + std::to_string(::getpid()))).string();
    const ServerData known = test::server_data_through_file(text, "", file);
    fs::remove(file);
    expect_same_run_in_trouble(text, {"0-3", "4-6"},
                               {.server_stops_after = {2, 8, 11}, .peers_stop_every = 4, .long_bytes = 200, .known = &known});
  }
}

// The server asks for the memories of all clients after each round.
TEST(CrashOfMemories, AreAskedForAgain) {
  test::Method method = method_called("ef14");
  method.more = "[participation]\nkind = 'uniform'\nclients = 3\nabsent = 'server'\n";
  expect_same_run_in_trouble(test::text_of(method, "float32"), {"0-2", "3-6"},
                             {.server_stops_after = {7}, .peers_stop_every = 3, .long_bytes = 1});
}

TEST(CrashOfPages, StateBeyondMemoryIsRestored) {
  test::Method method = method_called("scaffold");
  method.more = "[participation]\nkind = 'uniform'\nclients = 1\n";
  expect_same_run_in_trouble(test::text_of(method, "float32"), {"0-6"},
                             {.server_stops_after = {4, 8}, .peers_stop_every = 3, .long_bytes = 1, .state_memory = 4096});
}

}  // namespace
}  // namespace fl
