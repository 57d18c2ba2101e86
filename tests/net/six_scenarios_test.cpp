// Tests that six scenarios, with all clients, with some of them and with a compressed downlink, end with one checksum and the same export
// as a simulation, over TCP and over TLS, and that the ledger is what is on the connections without the documented framing.
#include <gtest/gtest.h>

#include "net/transport/tls_transport.hpp"
#include "scenarios/results/run_store.hpp"
#include "tests/net/network_run.hpp"
#include "tests/net/tls_peer.hpp"
#include "tests/net/watched_transport.hpp"
#include "tests/support/binary.hpp"

namespace fl {
namespace {

using FrameKind = net::wire::Header::KindCase;

const std::string kMushrooms = "[data]\nname = 'mushrooms'\nrows = 200\n[partition]\nkind = 'shuffled'\nclients = 7\n";
const std::string kClasses =
    "[data]\nkind = 'synthetic'\nclients = 7\nfeatures = 9\nclasses = 5\n[partition]\nkind = 'natural'\nclients = 7\n";
const std::string kLinear = "[model]\nkind = 'logistic_regression'\nl2 = 0.01\n";
const std::string kLayers = "[model]\nkind = 'neural_network'\nlayers = ['dense(6)', 'batch_norm', 'tanh', 'dense(classes)']\n";
const std::string kOneStep = "[local]\nkind = 'gradient'\nbatch = 3\nlearning_rate = 0.05\n";
const std::string kTwoSteps = "batch = 3\nsteps = 2\nlearning_rate = 0.05\n";

struct Scene {
  std::string name, text;
};
void PrintTo(const Scene& scene, std::ostream* out) { *out << scene.name; }

std::vector<Scene> six_scenes() {
  const auto with_ef14 = [](const std::string& up) { return "[compressor.up]\n" + up + "\n[feedback.up]\nkind = 'ef14'\n"; };
  return {
      {"convex", kMushrooms + kLinear + kOneStep + "[compressor.up]\nkind = 'top_k'\nk = 5\n[feedback.up]\nkind = 'ef21'\n"},
      {"neural",
       kClasses + kLayers + "[local]\nkind = 'sgd'\n" + kTwoSteps + "[compressor.up]\nkind = 'qsgd'\n[feedback.up]\nkind = 'none'\n"},
      {"absolute", kMushrooms + kLinear + kOneStep + with_ef14("kind = 'hard_threshold'\nthreshold = 0.02")},
      {"contraction", kMushrooms + kLinear + kOneStep + with_ef14("kind = 'top_k'\nk = 5")},
      {"powersgd", kClasses + kLinear + kOneStep + with_ef14("kind = 'powersgd'\nscope = 'tensor'\nrank = 1")},
      {"scaffold", kMushrooms + kLinear + "[local]\nkind = 'scaffold'\n" + kTwoSteps +
                       "[compressor.up]\nkind = 'identity'\n[feedback.up]\nkind = 'scaffold'\n"},
  };
}

const std::string kSampled = "[participation]\nkind = 'uniform'\nclients = 3\n";

// Returns the forms of a scene as whole scenarios.
std::vector<std::string> forms_of(const Scene& scene) {
  std::vector<std::string> texts;
  for (const std::string& more : {std::string(), kSampled, kSampled + "[compressor.down]\nkind = 'top_k'\nk = 20\n"})
    texts.push_back("name = 'six'\nrounds = 8\nprecision = 'float32'\n" + scene.text + "[evaluate]\nevery = 2\n" + more);
  return texts;
}

class SixScenarios : public test::BinaryTest, public testing::WithParamInterface<Scene> {
 protected:
  // Stores a result in a folder that is named by how it was computed.
  void store(const std::string& name, const RunResult& result) const {
    RunStore opened = RunStore::open(folder_ / name, RunStore::Mode::create);
    opened.append(result.record, result.rows);
  }
  // Returns the bytes of both exports of a store.
  [[nodiscard]] std::string exported(const std::string& name) const {
    const test::Outcome outcome =
        fedbits({"export", name, "--reproducible", "--runs", name + "-runs.csv", "--rounds", name + "-rounds.csv"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return read(name + "-runs.csv") + read(name + "-rounds.csv");
  }
};

// Each peer hosts one client, so nothing on a connection is for two of them. What the ledger counts is the payload of updates, and of the
// frames Open, Mean and Close. Beside it are a prefix and a header for each frame, and what nobody is charged for: the scenario, and the
// error memories that the measure virtual_drift asks for. A server that has said goodbye may stop within a peer's last frame, which says
// that the last round is closed and has no payload.
void expect_ledger_is_on_the_wire(const RunResult& result, const test::WireLog& log, const net::WireCounts& counts) {
  std::uint64_t up = 0, down = 0;
  for (const RoundRow& row : result.rows) up += row.bits_up, down += row.bits_down;
  EXPECT_GT(up, 0U);
  EXPECT_GT(down, 0U);
  EXPECT_LT(log.up.cut_bytes, 7 * 28);
  EXPECT_EQ(log.down.cut_bytes, 0U);
  EXPECT_EQ(8 * (log.up.bytes - log.up.cut_bytes - net::kPrefixBytes * log.up.frames - log.up.header_bytes -
                 log.up.payload_of({FrameKind::kMemory})),
            up);
  EXPECT_EQ(
      8 * (log.down.bytes - net::kPrefixBytes * log.down.frames - log.down.header_bytes - log.down.payload_of({FrameKind::kAssignment})),
      down);
  EXPECT_EQ(8 * log.up.payload_of({FrameKind::kUpdate}), up);
  EXPECT_EQ(8 * log.down.payload_of({FrameKind::kOpen, FrameKind::kMean, FrameKind::kClose}), down);
  EXPECT_EQ(8 * (counts.payload_bytes_in - log.up.payload_of({FrameKind::kMemory})), up);
}

TEST_P(SixScenarios, OverTcpAndTlsAreTheSimulatedOnes) {
  const test::CertificateFixture certificates;
  for (const std::string& text : forms_of(GetParam())) {
    SCOPED_TRACE(text);
    const RunResult simulated = test::run_simulated(text);
    ASSERT_EQ(simulated.record.status, RunStatus::done) << simulated.record.message;
    store("simulated", simulated);
    for (const bool is_tls : {false, true}) {
      const auto log = std::make_shared<test::WireLog>();
      test::NetworkTransports transports{.server = std::make_shared<test::WatchedTransport>(
                                             is_tls ? net::tls_server_transport(certificates.path()) : net::plain_transport(), log)};
      if (is_tls)
        transports.peer = [&](std::uint32_t client) { return net::tls_peer_transport(certificates.path(), "", {{client, client}}); };
      const test::NetworkRun run = test::run_over_network(text, {"0", "1", "2", "3", "4", "5", "6"}, transports);
      test::expect_same_run(text, simulated, run);
      EXPECT_TRUE(run.counts.refused.empty());
      expect_ledger_is_on_the_wire(simulated, *log, run.counts);
      store(is_tls ? "tls" : "tcp", run.result);
    }
  }
  const std::string expected = exported("simulated");
  EXPECT_EQ(test::count_of(expected, "\n"), 2U + 3 + 3 * 9);  // two headings, three runs, and rounds 0 to 8 of each
  EXPECT_TRUE(exported("tcp") == expected);
  EXPECT_TRUE(exported("tls") == expected);
}

INSTANTIATE_TEST_SUITE_P(EachOf, SixScenarios, testing::ValuesIn(six_scenes()), [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace fl
