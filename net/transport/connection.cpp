#include "net/transport/connection.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "fl_core/config/error.hpp"

namespace fl::net {

using asio::ip::tcp;

bool Identity::may_host(const std::vector<ClientRange>& wanted) const {
  if (!is_proved()) return true;
  return std::ranges::all_of(wanted, [this](const ClientRange& one) {
    return std::ranges::any_of(clients, [&one](const ClientRange& own) { return own.first <= one.first && one.last <= own.last; });
  });
}

ConnectionLost::ConnectionLost(std::string reason)
    : boost::system::system_error(boost::system::errc::make_error_code(boost::system::errc::bad_message)), reason_(std::move(reason)) {}

std::string reason_of(const boost::system::system_error& end) {
  const auto* lost = dynamic_cast<const ConnectionLost*>(&end);
  return lost != nullptr ? lost->reason() : end.code().message();
}

asio::awaitable<void> Connection::read(asio::mutable_buffer buffer) {
  while (buffer.size() > 0) buffer += co_await read_available(buffer);
}

asio::awaitable<std::size_t> Connection::read_available(asio::mutable_buffer buffer) {
  const std::size_t size = co_await read_some(buffer);
  last_read_ = std::chrono::steady_clock::now();
  co_return size;
}

namespace {

class PlainConnection final : public Connection {
 public:
  explicit PlainConnection(tcp::socket socket) : socket_(std::move(socket)) {
    boost::system::error_code error;
    const tcp::endpoint endpoint = socket_.remote_endpoint(error);
    if (!error) remote_ = endpoint.address().to_string() + ":" + std::to_string(endpoint.port());
  }

  asio::awaitable<void> handshake() override { co_return; }
  asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer) override {
    return socket_.async_read_some(buffer, asio::use_awaitable);
  }
  asio::awaitable<void> write(std::vector<asio::const_buffer> pieces) override {
    co_await asio::async_write(socket_, pieces, asio::use_awaitable);
  }
  asio::awaitable<void> finish() override {
    const CloseTimer timer(*this, kFarewell);
    boost::system::error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    co_await drain(socket_);
    close();
  }
  void close() noexcept override {
    boost::system::error_code ignored;
    socket_.close(ignored);
  }
  [[nodiscard]] asio::any_io_executor executor() override { return socket_.get_executor(); }
  [[nodiscard]] std::string remote() const override { return remote_; }
  [[nodiscard]] const Identity& identity() const override { return identity_; }

 private:
  tcp::socket socket_;
  std::string remote_;
  Identity identity_;
};

class PlainTransport final : public Transport {
 public:
  [[nodiscard]] std::unique_ptr<Connection> accepted(tcp::socket socket) override {
    return std::make_unique<PlainConnection>(std::move(socket));
  }
  [[nodiscard]] std::unique_ptr<Connection> connected(tcp::socket socket, const std::string&) override {
    return std::make_unique<PlainConnection>(std::move(socket));
  }
};

}  // namespace

std::shared_ptr<Transport> plain_transport() { return std::make_shared<PlainTransport>(); }

CloseTimer::CloseTimer(Connection& connection, std::chrono::milliseconds limit)
    : state_(std::make_shared<State>(State{.connection = &connection})), timer_(connection.executor(), limit) {
  timer_.async_wait([state = state_](const boost::system::error_code& error) {
    if (error || state->connection == nullptr) return;
    state->has_closed = true;
    state->connection->close();
  });
}

CloseTimer::~CloseTimer() { state_->connection = nullptr; }

asio::awaitable<void> shake_hands(Connection& connection, std::chrono::milliseconds limit) {
  const CloseTimer timer(connection, limit);
  try {
    co_await connection.handshake();
  } catch (const boost::system::system_error& error) {
    if (timer.has_closed()) throw HandshakeLost("its handshake is not complete after " + std::to_string(limit.count()) + " ms");
    throw HandshakeLost("it leaves during the handshake: " + reason_of(error));
  }
}

tcp::acceptor listen_at(asio::io_context& io, const std::string& host, std::uint16_t port) {
  boost::system::error_code error;
  const asio::ip::address address = asio::ip::make_address(host, error);
  const auto check = [&](const char* step) {
    if (error) throw Error("cannot listen at " + host + ":" + std::to_string(port) + ": " + step + ": " + error.message());
  };
  check("the address has to be numbers, as 127.0.0.1");
  const tcp::endpoint endpoint(address, port);
  tcp::acceptor acceptor(io);
  acceptor.open(endpoint.protocol(), error);
  check("open");
  acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  acceptor.bind(endpoint, error);
  check("bind");
  acceptor.listen(asio::socket_base::max_listen_connections, error);
  check("listen");
  return acceptor;
}

// A reader may wait on the same socket, and Asio wakes only one of two reads at the end of the stream. So this function does not wait in a
// read of its own, but looks again from time to time, and less and less often.
asio::awaitable<void> drain(tcp::socket& socket) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  constexpr std::chrono::milliseconds kFirstPause{2}, kLongestPause{64};
  std::chrono::milliseconds length = kFirstPause;
  asio::steady_timer pause(socket.get_executor());
  std::array<std::byte, 4096> discarded{};
  boost::system::error_code error;
  socket.non_blocking(true, error);
  for (std::size_t total = 0; !error && total < kMost;) {
    total += socket.read_some(asio::buffer(discarded), error);
    if (error != asio::error::would_block) continue;
    pause.expires_after(length);
    length = std::min(2 * length, kLongestPause);
    co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
  }
}

}  // namespace fl::net
