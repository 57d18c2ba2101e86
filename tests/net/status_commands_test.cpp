// Tests `--status` and `--log` from the command line: what is shown while runs are played, and that results do not depend on who looks.
#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/net/exposition.hpp"
#include "tests/net/http_client.hpp"
#include "tests/support/binary.hpp"

namespace fl {
namespace {

using Json = nlohmann::json;
using test::HttpConnection;
using test::Outcome;
using test::Process;
using testing::HasSubstr;
using testing::Not;

// Returns the port behind a text in the output, 0 = not there yet.
std::uint16_t port_behind(const std::string& output, const std::string& text) {
  const std::size_t at = output.find(text);
  if (at == std::string::npos || output.find('\n', at) == std::string::npos) return 0;
  return static_cast<std::uint16_t>(std::stoul(output.substr(at + text.size())));
}

Json state_at(std::uint16_t port) {
  try {
    const std::string body = test::body_of(test::get(port, "/status.json"));
    return body.empty() ? Json() : Json::parse(body);
  } catch (const boost::system::system_error&) {  // the server is gone
    return {};
  }
}

// Every line of a log in JSON, by its event. The text that ends a failed command is none of them.
std::vector<Json> events_in(const std::string& log) {
  std::vector<Json> events;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("status at ")) continue;
    events.push_back(Json::parse(line));
    EXPECT_THAT(events.back()["time"].get<std::string>(), testing::MatchesRegex("[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+.[0-9]+Z"))
        << line;
    EXPECT_TRUE(events.back().contains("level")) << line;
    EXPECT_TRUE(events.back().contains("event")) << line;
  }
  return events;
}

const Json* find_event(const std::vector<Json>& events, const std::string& name) {
  for (const Json& event : events)
    if (event["event"] == name) return &event;
  return nullptr;
}

class StatusCommands : public test::BinaryTest {
 protected:
  std::filesystem::path folder_of(const std::string& name) const {
    std::filesystem::create_directories(folder_ / name);
    return folder_ / name;
  }
  [[nodiscard]] std::string scenario() const { return (folder_ / "small.toml").string(); }
  // Returns what a store exports, without times and machines.
  std::string results_in(const std::string& store) const {
    EXPECT_EQ(fedbits({"export", store, "--reproducible", "--runs", "runs.csv", "--rounds", "rounds.csv"}).code, 0);
    return read("runs.csv") + read("rounds.csv");
  }
  void write_long(int rounds, int seeds) const {
    write("small.toml",
          "name = 'small'\nrounds = " + std::to_string(rounds) +
              "\n[data]\nname = 'mushrooms'\nrows = 400\n[partition]\nclients = 4\n[local]\nkind = 'sgd'\nsteps = 5\nbatch = 32\n"
              "[model]\nkind = 'logistic_regression'\nl2 = 0.01\n[evaluate]\nevery = 5\n[sweep]\nseeds = " +
              std::to_string(seeds) + "\n");
  }
};

// A server with two peers, at whose status 200 connections look at once while others ask all the time.
TEST_F(StatusCommands, AServerIsWatchedAndItsResultsStay) {
  write_long(150, 1);
  Process server(folder_of("server"), {"serve", scenario(), "--listen", "127.0.0.1:0", "--insecure", "--status", "0", "--log", "json",
                                       "--out", (folder_ / "served").string()});
  const auto said = [&] { return read("server/stdout.txt"); };
  ASSERT_TRUE(server.wait_until([&] { return port_behind(said(), "status at http://127.0.0.1:") != 0; })) << read("server/stderr.txt");
  const std::uint16_t port = port_behind(said(), "status at http://127.0.0.1:"), joined = port_behind(said(), "listening at 127.0.0.1:");
  EXPECT_EQ(state_at(port)["phase"], "waiting");
  EXPECT_THAT(test::get(port, "/cells.json"), HasSubstr("404"));
  const std::string address = "127.0.0.1:" + std::to_string(joined);
  Process one(folder_of("one"), {"join", address, "--clients", "0-1", "--insecure", "--log", "json", "-v"});
  Process two(folder_of("two"), {"join", address, "--clients", "2-3", "--insecure", "--log", "text"});
  std::vector<std::unique_ptr<HttpConnection>> crowd;
  for (int i = 0; i < 200; ++i) crowd.push_back(std::make_unique<HttpConnection>(port));
  for (const auto& connection : crowd) connection->write("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  std::uint64_t most_round = 0;
  Json last;
  while (!server.has_ended()) {
    const Json state = state_at(port);
    if (!state.is_null()) last = state;
    if (!state.is_null()) most_round = std::max<std::uint64_t>(most_round, state["run"]["round"]);
    if (!state.is_null() && state["phase"] == "playing") {
      test::read_exposition(test::body_of(test::get(port, "/metrics")));
    }
  }
  for (const auto& connection : crowd) EXPECT_THAT(connection->read_until("\r\n"), HasSubstr("200 OK"));
  const Outcome outcome = server.wait();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(one.wait().code, 0);
  EXPECT_EQ(two.wait().code, 0);
  EXPECT_GT(most_round, 0u);
  EXPECT_EQ(last["phase"], "ended") << "a page that is open hears of the end";
  EXPECT_EQ(last["outcome"], "done");
  EXPECT_EQ(last["run"]["round"], 150);
  EXPECT_EQ(last["run"]["clients"], 4);

  ASSERT_EQ(fedbits({"run", "small.toml", "--out", "simulated"}).code, 0);
  EXPECT_EQ(results_in("served"), results_in("simulated"));

  const std::vector<Json> events = events_in(outcome.err);
  for (const char* name : {"listening", "status_listening", "run_begun", "peer_joined", "run_ended", "sockets", "ended"})
    EXPECT_NE(find_event(events, name), nullptr) << name;
  EXPECT_EQ((*find_event(events, "run_ended"))["status"], "done");
  EXPECT_EQ((*find_event(events, "run_ended"))["rounds"], 150);
  EXPECT_EQ(find_event(events, "round"), nullptr) << "rounds are at the level debug";
  EXPECT_THAT(outcome.err, Not(HasSubstr("token")));
  const std::vector<Json> of_peer = events_in(read("one/stderr.txt"));
  for (const char* name : {"connected", "run_begun", "round", "run_ended", "ended"}) EXPECT_NE(find_event(of_peer, name), nullptr) << name;
  EXPECT_THAT(read("two/stderr.txt"), testing::ContainsRegex("[0-9]Z info run_begun run=\"[0-9a-f]+\" clients=\"2-3\""));
}

TEST_F(StatusCommands, RoundsAndPeersThatLeaveAreLogged) {
  write_long(100000, 1);
  Process server(folder_of("server"), {"serve", scenario(), "--listen", "127.0.0.1:0", "--insecure", "--log", "json", "-v", "--out",
                                       (folder_ / "served").string()});
  ASSERT_TRUE(server.wait_until([&] { return port_behind(read("server/stdout.txt"), "listening at 127.0.0.1:") != 0; }));
  const std::string address = "127.0.0.1:" + std::to_string(port_behind(read("server/stdout.txt"), "listening at 127.0.0.1:"));
  {
    Process peer(folder_of("peer"), {"join", address, "--clients", "0-3", "--insecure", "-q"});
    ASSERT_TRUE(server.wait_until([&] { return read("server/stderr.txt").find("\"round\":3,") != std::string::npos; }));
  }  // killed
  ASSERT_TRUE(server.wait_until([&] { return read("server/stderr.txt").find("peer_left") != std::string::npos; }));
  server.signal(SIGINT);
  static_cast<void>(server.wait());
  std::string log = read("server/stderr.txt");
  if (const std::size_t at = log.find("\nfedbits: "); at != std::string::npos) log.resize(at);
  const std::vector<Json> events = events_in(log);
  ASSERT_NE(find_event(events, "peer_left"), nullptr);
  EXPECT_EQ((*find_event(events, "peer_left"))["clients"], "0-3");
  EXPECT_NE((*find_event(events, "peer_left"))["reason"], "");
  EXPECT_EQ((*find_event(events, "round"))["level"], "debug");
  EXPECT_TRUE((*find_event(events, "round"))["bits_up"].is_number());
}

TEST_F(StatusCommands, ASweepIsWatchedAndItsResultsStay) {
  write_long(5000, 6);
  Process sweep(folder_of("watched"), {"sweep", scenario(), "--jobs", "2", "--status", "0", "--out", (folder_ / "out").string()});
  ASSERT_TRUE(sweep.wait_until([&] { return port_behind(read("watched/stderr.txt"), "status at http://127.0.0.1:") != 0; }));
  const std::uint16_t port = port_behind(read("watched/stderr.txt"), "status at http://127.0.0.1:");
  Json last;
  bool has_run = false;
  while (!sweep.has_ended()) {
    const Json state = state_at(port);
    if (state.is_null()) continue;
    last = state;
    has_run = has_run || state["counts"]["running"] > 0;
    if (state["cells"] != 6) continue;
    try {
      const auto values = test::read_exposition(test::body_of(test::get(port, "/metrics")));
      double cells = 0;
      for (const auto& [name, value] : values) cells += name.starts_with("fedbits_cells{") ? value : 0;
      if (!values.empty()) {
        EXPECT_EQ(cells, 6);
      }
    } catch (const boost::system::system_error&) {  // it has ended between the two
    }
  }
  EXPECT_EQ(sweep.wait().code, 0);
  EXPECT_TRUE(has_run);
  EXPECT_EQ(last["outcome"], "done") << last;
  EXPECT_EQ(last["states"], "dddddd");
  EXPECT_THROW(HttpConnection connection(port), boost::system::system_error) << "nobody listens after the end";
  ASSERT_EQ(fedbits({"sweep", "small.toml", "--jobs", "1", "--out", "alone"}).code, 0);
  EXPECT_EQ(results_in("out"), results_in("alone"));
}

// The process that shows the status is killed or stopped: the sweep goes on, and says so if it is gone.
TEST_F(StatusCommands, ASweepOutlivesTheProcessThatShowsIt) {
  write_long(1000, 4);
  for (const int signal : {SIGKILL, SIGSTOP}) {
    Process sweep(folder_of("watched"),
                  {"sweep", scenario(), "--jobs", "2", "--status", "0", "--again", "--out", (folder_ / "out").string()});
    ASSERT_TRUE(sweep.wait_until([&] { return port_behind(read("watched/stderr.txt"), "status at http://127.0.0.1:") != 0; }));
    const std::vector<pid_t> children = sweep.children();
    ASSERT_FALSE(children.empty());
    ::kill(children.front(), signal);  // the first process that the sweep has started
    const Outcome outcome = sweep.wait();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    if (signal == SIGKILL) {
      EXPECT_THAT(outcome.err, HasSubstr("the process that shows the status has ended; the runs go on"));
    }
  }
}

TEST_F(StatusCommands, RunHasAStatusToo) {
  write_long(1500, 2);
  Process run(folder_of("watched"), {"run", scenario(), "--threads", "1", "--status", "127.0.0.1:0", "--out", (folder_ / "out").string()});
  ASSERT_TRUE(run.wait_until([&] { return port_behind(read("watched/stderr.txt"), "status at http://127.0.0.1:") != 0; }));
  const std::uint16_t port = port_behind(read("watched/stderr.txt"), "status at http://127.0.0.1:");
  Json last;
  while (!run.has_ended())
    if (const Json state = state_at(port); !state.is_null()) last = state;
  EXPECT_EQ(run.wait().code, 0);
  EXPECT_EQ(last["command"], "run");
  EXPECT_EQ(last["states"], "dd");
}

TEST_F(StatusCommands, WrongAddressesAreErrors) {
  write_small();
  for (const char* address : {"nonsense", "127.0.0.1", "70000", ":", "-1"}) {
    const Outcome outcome = fedbits({"sweep", "small.toml", "--status", address, "--out", "out"});
    EXPECT_EQ(outcome.code, 2) << address << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("--status")) << address;
    EXPECT_FALSE(exists("out")) << address;
  }
  const Outcome far = fedbits({"sweep", "small.toml", "--status", "192.0.2.1:0", "--out", "out"});
  EXPECT_NE(far.code, 0);
  EXPECT_THAT(far.err, HasSubstr("everybody who reaches 192.0.2.1 can read the state"));
  EXPECT_EQ(fedbits({"sweep", "small.toml", "--list", "--status", "0"}).code, 2);
  EXPECT_THAT(fedbits({"join", "127.0.0.1:1", "--clients", "0", "--insecure", "--log", "xml"}).err, HasSubstr("--log"));
}

}  // namespace
}  // namespace fl
