// Tests the bytes of a TLS connection: long ones in both directions at once, ends, and the memory of a connection without traffic.
#include <gtest/gtest.h>
#include <malloc.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "net/transport/tls_transport.hpp"
#include "tests/net/tls_peer.hpp"

namespace fl {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// Connections of both sides, in one thread.
class TlsPairs : public testing::Test {
 protected:
  struct Pair {
    std::unique_ptr<net::Connection> peer, server;
  };
  // Runs coroutines until all of them have ended, and returns the first error.
  std::string error_of(std::vector<asio::awaitable<void>> work) {
    std::size_t running = work.size();
    std::string first;
    for (asio::awaitable<void>& one : work)
      asio::co_spawn(io_, std::move(one), [&](const std::exception_ptr& thrown) {
        --running;
        try {
          if (thrown) std::rethrow_exception(thrown);
        } catch (const std::exception& error) {
          if (first.empty()) first = error.what();
        }
      });
    io_.restart();
    while (running > 0) io_.run_one();
    return first;
  }
  Pair connect() {
    tcp::socket near(io_), far(io_);
    near.connect(acceptor_.local_endpoint());
    acceptor_.accept(far);
    Pair pair{.peer = peers_->connected(std::move(near), "127.0.0.1"), .server = servers_->accepted(std::move(far))};
    std::vector<asio::awaitable<void>> both;
    both.push_back(pair.peer->handshake());
    both.push_back(pair.server->handshake());
    EXPECT_EQ(error_of(std::move(both)), "");
    return pair;
  }
  static asio::awaitable<void> write(net::Connection& connection, const net::Bytes& bytes) {
    // The first pieces are short, as a frame's header.
    const std::vector<asio::const_buffer> pieces{asio::buffer(bytes.data(), 7), asio::buffer(bytes.data() + 7, 20),
                                                 asio::buffer(bytes.data() + 27, bytes.size() - 27)};
    co_await connection.write(pieces);
  }
  static asio::awaitable<void> read(net::Connection& connection, net::Bytes& bytes) { co_await connection.read(asio::buffer(bytes)); }

  test::CertificateFixture certificates_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_ = net::listen_at(io_, "127.0.0.1", 0);
  std::shared_ptr<net::Transport> servers_ = net::tls_server_transport(certificates_.path());
  std::shared_ptr<net::Transport> peers_ = net::tls_peer_transport(certificates_.path(), "", {{0, 0}});
};

TEST_F(TlsPairs, CarryLongMessagesInBothDirectionsAtOnce) {
  const Pair pair = connect();
  net::Bytes up(5'000'001), down(4'000'003), arrived_up(up.size()), arrived_down(down.size());
  for (std::size_t i = 0; i < up.size(); ++i) up[i] = static_cast<std::byte>(i * i >> 9);
  for (std::size_t i = 0; i < down.size(); ++i) down[i] = static_cast<std::byte>(i * 31 >> 4);
  std::vector<asio::awaitable<void>> work;
  work.push_back(write(*pair.peer, up));
  work.push_back(write(*pair.server, down));
  work.push_back(read(*pair.peer, arrived_down));
  work.push_back(read(*pair.server, arrived_up));
  EXPECT_EQ(error_of(std::move(work)), "");
  EXPECT_TRUE(up == arrived_up);
  EXPECT_TRUE(down == arrived_down);
}

TEST_F(TlsPairs, EndWithTheEndOfTheOtherSide) {
  const Pair pair = connect();
  net::Bytes sent(100, std::byte{3}), arrived(100), more(1);
  std::vector<asio::awaitable<void>> work;
  work.push_back(write(*pair.peer, sent));
  work.push_back(read(*pair.server, arrived));
  EXPECT_EQ(error_of(std::move(work)), "");
  std::vector<asio::awaitable<void>> last;
  last.push_back(pair.peer->finish());
  last.push_back([](net::Connection& server, net::Bytes& byte) -> asio::awaitable<void> {
    std::string why;
    try {
      co_await server.read(asio::buffer(byte));
    } catch (const boost::system::system_error& error) {
      why = error.code().message();
    }
    EXPECT_EQ(why, "End of file");
    server.close();
  }(*pair.server, more));
  EXPECT_EQ(error_of(std::move(last)), "");
  EXPECT_TRUE(sent == arrived);
}

TEST_F(TlsPairs, ThatAreClosedHereEndTheirReadsAndWrites) {
  const Pair pair = connect();
  net::Bytes arrived(1);
  std::vector<asio::awaitable<void>> work;
  work.push_back(read(*pair.server, arrived));
  work.push_back([](net::Connection& server) -> asio::awaitable<void> {
    server.close();
    co_return;
  }(*pair.server));
  EXPECT_NE(error_of(std::move(work)), "");
  std::vector<asio::awaitable<void>> later;
  const net::Bytes sent(100);
  later.push_back(write(*pair.server, sent));
  EXPECT_NE(error_of(std::move(later)), "");
}

TEST_F(TlsPairs, TakeLittleMemoryWithoutTraffic) {
  constexpr std::int64_t kPairs = 20;
  std::vector<Pair> pairs;
  const auto add = [&] {
    pairs.push_back(connect());
    net::Bytes sent(40'000, std::byte{1}), arrived(sent.size());
    std::vector<asio::awaitable<void>> work;
    work.push_back(write(*pairs.back().peer, sent));
    work.push_back(read(*pairs.back().server, arrived));
    EXPECT_EQ(error_of(std::move(work)), "");
  };
  add();
  const auto heap = [] { return static_cast<std::int64_t>(mallinfo2().uordblks + mallinfo2().hblkhd); };
  const std::int64_t before = heap();
  for (std::int64_t i = 0; i < kPairs; ++i) add();
  EXPECT_LT((heap() - before) / kPairs, 60'000) << "of both sides together";
}

}  // namespace
}  // namespace fl
