// Tests a server that many connections reach which never say who they are: their number is limited, they close each other, and honest
// peers get in and play.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "net/server/pending_connections.hpp"
#include "net/transport/tls_transport.hpp"
#include "tests/net/network_run.hpp"
#include "tests/net/raw_peer.hpp"
#include "tests/net/tls_peer.hpp"
#include "tests/support/every_method.hpp"

namespace fl {
namespace {

using namespace std::chrono_literals;
using boost::asio::ip::tcp;
using testing::ElementsAre;
using testing::Pair;

constexpr const char* kReplacedReason = "it said no hello in time, and newer connections waited";

// Connections that are opened again when they are closed. Every second one sends a byte of a hello in each pass, and the others nothing.
class Flood {
 public:
  Flood(std::uint16_t port, std::size_t number) : endpoint_(boost::asio::ip::make_address("127.0.0.1"), port) {
    for (std::size_t i = 0; i < number; ++i) sockets_.emplace_back(io_);
    thread_ = std::thread([this] { live(); });
  }
  ~Flood() {
    is_over_ = true;
    thread_.join();
  }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;

  void wait_for_opened(std::size_t number) const {
    while (opened_ < number) std::this_thread::sleep_for(1ms);
  }

 private:
  void live() {
    while (!is_over_) {
      for (std::size_t i = 0; i < sockets_.size() && !is_over_; ++i) tend(sockets_[i], i % 2 == 1);
      std::this_thread::sleep_for(1ms);
    }
  }
  void tend(tcp::socket& socket, bool sends) {
    boost::system::error_code error;
    if (socket.is_open()) {
      std::byte byte{9};  // the first bytes of a frame that never ends
      if (sends) socket.write_some(boost::asio::buffer(&byte, 1), error);
      if (!error) socket.read_some(boost::asio::buffer(&byte, 1), error);
      if (!error || error == boost::asio::error::would_block) return;
      socket.close(error);
    }
    socket.open(tcp::v4(), error);
    socket.non_blocking(true, error);
    socket.connect(endpoint_, error);
    ++opened_;
  }

  boost::asio::io_context io_;
  tcp::endpoint endpoint_;
  std::vector<tcp::socket> sockets_;
  std::atomic<std::size_t> opened_ = 0;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

// Returns the number of connections at the server whose peers it does not know.
std::size_t num_strangers(const net::PeerHub& hub) {
  std::size_t number = 0;
  for (const net::PeerFacts& peer : hub.peers()) number += !peer.has_left && peer.clients.empty() ? 1 : 0;
  return number;
}

void wait_until(const std::function<bool()>& is_so) {
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (!is_so()) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::sleep_for(1ms);
  }
}

TEST(Floods, TheNumberOfConnectionsWithoutAHelloIsLimited) {
  const net::PeerHub hub({.most_pending = 20, .pending_grace = 5ms});
  const Flood flood(hub.port(), 100);
  flood.wait_for_opened(300);
  for (int i = 0; i < 50; ++i) {
    EXPECT_LE(num_strangers(hub), 40U) << "those that are being closed included";
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_GT(hub.counts().refused.at(kReplacedReason), 100U);
}

TEST(Floods, AConnectionIsClosedForAnotherOneAfterItsGraceAndWithoutAWord) {
  net::PeerHub hub({.most_pending = 1, .pending_grace = 100ms});
  const auto begun = std::chrono::steady_clock::now();
  test::RawPeer first(hub.port());
  wait_until([&hub] { return num_strangers(hub) == 1; });
  test::RawPeer second(hub.port());
  EXPECT_EQ(first.read(), std::nullopt) << "a goodbye would tell an honest peer not to come back";
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 100ms);
  second.send(test::RawPeer::hello("0"));
  hub.begin_run({.run = 1, .split = 1, .scenario = std::make_shared<const net::Bytes>(), .num_clients = 7});
  EXPECT_TRUE(second.read()->header.has_assignment());
  EXPECT_THAT(hub.counts().refused, ElementsAre(Pair(kReplacedReason, 1U)));
}

TEST(Floods, APeerThatHasSaidHelloIsNotClosedForOthers) {
  net::PeerHub hub({.most_pending = 2, .pending_grace = 1ms});
  test::RawPeer peer(hub.port());
  peer.say_hello("0-6");
  hub.begin_run({.run = 1, .split = 1, .scenario = std::make_shared<const net::Bytes>(), .num_clients = 7});
  ASSERT_TRUE(peer.read()->header.has_assignment());
  const Flood flood(hub.port(), 20);
  wait_until([&hub] { return hub.counts().refused.contains(kReplacedReason) && hub.counts().refused.at(kReplacedReason) > 50; });
  net::wire::Header ready;
  ready.mutable_ready()->set_run(1);
  ready.mutable_ready()->set_split(1);
  peer.send(ready);
  wait_until([&hub] { return hub.attendance().num_hosted == 7; });
}

// The peers of a run that come when the flood is there.
void expect_run_beside_flood(const test::NetworkTransports& transports) {
  const std::string text = test::text_of(test::methods().at(1), "float32");
  const net::HubOptions options{.transport = transports.server, .most_pending = 16, .pending_grace = 50ms};
  std::unique_ptr<Flood> flood;
  const test::NetworkRun run =
      test::run_over_network(text, {"0", "1", "2", "3", "4", "5", "6"}, transports, options, [&](std::uint16_t port) {
        flood = std::make_unique<Flood>(port, 300);
        flood->wait_for_opened(400);  // all of them, and those that come again
      });
  test::expect_same_run(text, test::run_simulated(text), run);
  EXPECT_GT(run.counts.refused.at(kReplacedReason), 16U);
}

TEST(Floods, HonestPeersGetInAndPlay) { expect_run_beside_flood({}); }

TEST(Floods, HonestPeersGetInOverTls) {
  const test::CertificateFixture certificates;
  expect_run_beside_flood({.server = net::tls_server_transport(certificates.path()), .peer = [&](std::uint32_t client) {
                             return net::tls_peer_transport(certificates.path(), "", {{client, client}});
                           }});
}

TEST(Floods, HandshakesAreLimitedAsHellosAre) {
  const test::CertificateFixture certificates;
  const net::PeerHub hub({.transport = net::tls_server_transport(certificates.path()), .most_pending = 2, .pending_grace = 10ms});
  std::vector<std::unique_ptr<test::RawPeer>> silent;
  for (int i = 0; i < 10; ++i) silent.push_back(std::make_unique<test::RawPeer>(hub.port()));
  wait_until([&hub] { return hub.counts().refused.contains(kReplacedReason) && hub.counts().refused.at(kReplacedReason) == 8; });
}

// A connection that gives way looks to its peer as one whose server leaves during the handshake.
TEST(Floods, APeerWhoseHandshakeIsCutConnectsAgain) {
  const test::CertificateFixture certificates;
  boost::asio::io_context io;
  tcp::acceptor acceptor = net::listen_at(io, "127.0.0.1", 0);
  const std::uint16_t port = acceptor.local_endpoint().port();
  std::atomic<bool> is_connected = false;
  std::string error;
  std::thread peer([&] {
    try {
      const net::JoinOptions options{
          .port = port, .clients = {{0, 0}}, .patience_s = 20, .transport = net::tls_peer_transport(certificates.path(), "", {{0, 0}})};
      net::JoinEvents events;
      events.tell = [&](const net::JoinEvent& event) { is_connected = is_connected || event.kind == net::JoinEvent::Kind::connected; };
      events.goes_on = [&] { return !is_connected; };
      static_cast<void>(net::join_server(options, events));
    } catch (const Error& failure) {
      error = failure.what();
    }
  });
  acceptor.accept().close();
  acceptor.close();
  const net::PeerHub hub({.port = port, .transport = net::tls_server_transport(certificates.path())});
  peer.join();
  EXPECT_EQ(error, "");
  EXPECT_TRUE(is_connected);
}

TEST(Floods, TheNewsAndTheListOfPeersStayShort) {
  net::PeerHub hub({.most_pending = 4, .pending_grace = 1ms});
  {
    test::RawPeer peer(hub.port());
    peer.say_hello("0-6");
    hub.begin_run({.run = 1, .split = 1, .scenario = std::make_shared<const net::Bytes>(), .num_clients = 7});
    ASSERT_TRUE(peer.read()->header.has_assignment());
  }
  const auto has_peer = [&hub] {
    const std::vector<net::PeerFacts> peers = hub.peers();
    return std::ranges::any_of(peers, [](const net::PeerFacts& one) { return one.clients == "0-6" && one.has_left; });
  };
  wait_until(has_peer);
  const Flood flood(hub.port(), 50);
  wait_until([&hub] { return hub.counts().refused.contains(kReplacedReason) && hub.counts().refused.at(kReplacedReason) > 200; });
  EXPECT_TRUE(has_peer()) << "strangers have displaced a peer";
  EXPECT_LE(hub.news().size(), 20U);
}

TEST(PendingConnections, ReplacedConnectionsAreTheOldest) {
  net::PendingConnections pending(2, 1000ms);
  struct Silent final : net::Connection {
    bool is_closed = false;
    boost::asio::io_context io;
    net::Identity nobody;
    boost::asio::awaitable<void> handshake() override { co_return; }
    boost::asio::awaitable<std::size_t> read_some(boost::asio::mutable_buffer) override { co_return 0; }
    boost::asio::awaitable<void> write(std::vector<boost::asio::const_buffer>) override { co_return; }
    boost::asio::awaitable<void> finish() override { co_return; }
    void close() noexcept override { is_closed = true; }
    boost::asio::any_io_executor executor() override { return io.get_executor(); }
    [[nodiscard]] std::string remote() const override { return ""; }
    [[nodiscard]] const net::Identity& identity() const override { return nobody; }
  };
  std::vector<std::shared_ptr<Silent>> connections;
  for (int i = 0; i < 3; ++i) connections.push_back(std::make_shared<Silent>());
  const auto now = std::chrono::steady_clock::now();
  auto first = pending.add(connections[0]);
  EXPECT_EQ(pending.next_free(now), now);
  auto second = pending.add(connections[1]);
  EXPECT_TRUE(pending.is_full());
  EXPECT_GE(pending.next_free(now), now + 1000ms);
  first->leave();
  EXPECT_FALSE(pending.is_full()) << "its peer has said hello";
  auto third = pending.add(connections[2]);
  pending.replace_oldest();
  EXPECT_TRUE(connections[1]->is_closed);
  EXPECT_TRUE(second->is_replaced());
  EXPECT_FALSE(connections[0]->is_closed || connections[2]->is_closed);
  third.reset();
  EXPECT_EQ(pending.next_free(now), now);
}

}  // namespace
}  // namespace fl
