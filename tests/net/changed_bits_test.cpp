// Tests that a bit that changes on its way costs a connection and nothing else: the peer comes back, and the run is the simulated one. The
// bit is changed below TLS and on plain TCP, in both directions, in the handshake and after it, and by the emulated network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "fl_core/random/random.hpp"
#include "net/transport/emulated_transport.hpp"
#include "net/transport/tls_transport.hpp"
#include "tests/net/flipping_proxy.hpp"
#include "tests/net/network_run.hpp"
#include "tests/net/tls_peer.hpp"
#include "tests/support/every_method.hpp"

namespace fl {
namespace {

using namespace std::chrono_literals;
using test::ChangedBit;
using testing::HasSubstr;

std::string text_of_changed() { return test::text_of(test::methods().front(), "float32"); }
constexpr std::uint32_t kChangedClients = 7;

// Plays a run whose only peer is behind a proxy, and expects the simulated one.
void expect_same_run_with(const ChangedBit& changed, const test::NetworkTransports& plain_way, const RunResult& simulated) {
  std::optional<test::FlippingProxy> proxy;
  test::NetworkTransports transports = plain_way;
  transports.port_of_peers = [&](std::uint16_t server) {
    proxy.emplace(server, changed);
    return proxy->port();
  };
  // A length of a record of TLS that has become larger is waited for until the silence is too long.
  transports.times = {.heartbeat = 100ms, .silence = 600ms, .farewell = 200ms};
  const test::NetworkRun run = test::run_over_network(text_of_changed(), {"0-6"}, transports,
                                                      {.handshake_limit = 1000ms, .heartbeat_every = 100ms, .silence_limit = 600ms});
  SCOPED_TRACE(testing::Message() << (changed.is_of_server ? "server's" : "peer's") << " byte " << changed.byte << ", bit " << changed.bit);
  test::expect_same_run(text_of_changed(), simulated, run);
  EXPECT_TRUE(proxy->has_changed()) << "the stream is shorter";
}

// The places of changed bits: some in the first bytes, where handshakes and prefixes of frames lie, others anywhere.
std::vector<ChangedBit> places_below(std::uint64_t server_bytes, std::uint64_t peer_bytes, int count) {
  std::vector<ChangedBit> places;
  RandomStream random(4711, 0, 0, 0, 0);
  for (int i = 0; i < count; ++i) {
    const bool is_of_server = i % 2 == 0;
    const double most = i % 4 < 2 ? 200 : static_cast<double>(is_of_server ? server_bytes : peer_bytes);
    places.push_back({is_of_server, static_cast<std::uint64_t>(most * random.uniform<double>(2 * static_cast<std::uint64_t>(i))),
                      static_cast<int>(8 * random.uniform<double>(2 * static_cast<std::uint64_t>(i) + 1))});
  }
  return places;
}

TEST(ChangedBits, OnPlainTcpCostAConnectionAndNothingElse) {
  const RunResult simulated = test::run_simulated(text_of_changed());
  for (const ChangedBit& changed : places_below(3000, 2000, 30)) expect_same_run_with(changed, {}, simulated);
}

TEST(ChangedBits, UnderTlsCostAConnectionAndNothingElse) {
  const test::CertificateFixture certificates;
  const RunResult simulated = test::run_simulated(text_of_changed());
  const test::NetworkTransports tls{.server = net::tls_server_transport(certificates.path()), .peer = [&](std::uint32_t) {
                                      return net::tls_peer_transport(certificates.path(), "", {{0, kChangedClients - 1}});
                                    }};
  test::issue(certificates, "clients-0-6", {.names = "URI:urn:fedbits:clients:0-6"});
  for (const ChangedBit& changed : places_below(4000, 3000, 20)) expect_same_run_with(changed, tls, simulated);
}

TEST(ChangedBits, OfAnEmulatedNetworkChangeNoResult) {
  const RunResult simulated = test::run_simulated(text_of_changed());
  const net::NetworkConditions conditions{.flip = 0.15, .seed = 3};
  const test::NetworkTransports transports{
      .peer = [&](std::uint32_t client) { return net::emulated_transport(net::plain_transport(), conditions, client); }};
  const test::NetworkRun run = test::run_over_network(text_of_changed(), {"0-3", "4-6"}, transports);
  test::expect_same_run(text_of_changed(), simulated, run);
  EXPECT_GT(run.num_connections, 2u) << "no bit was changed";
}

}  // namespace
}  // namespace fl
