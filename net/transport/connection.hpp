// The connection between a server and a peer, whatever carries its bytes: plain TCP, TLS (net/transport/tls_transport.hpp), or a decorator
// of either.
//
// A Transport makes a Connection of a connected socket. handshake() comes before anything else: no frame is read from a connection whose
// other side has not proved its identity. All members are called on the thread of the socket's io_context; one read and one write may be
// in progress at the same time.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "net/wire/client_ranges.hpp"
#include "net/wire/frame.hpp"

namespace fl::net {

namespace asio = boost::asio;

// The identity that the other side of a connection has proved.
struct Identity {
  std::string name{};                  // of its certificate; "" = the connection proves nothing
  std::vector<ClientRange> clients{};  // that a named peer may speak for

  [[nodiscard]] bool is_proved() const { return !name.empty(); }
  // Returns whether the peer may host these clients. A connection that proves nothing, as plain TCP, may host all.
  [[nodiscard]] FL_API bool may_host(const std::vector<ClientRange>& wanted) const;
};

// Reports that the connection carries no bytes any more, or not those that were sent, and says why in reason().
class FL_API ConnectionLost : public boost::system::system_error {
 public:
  explicit ConnectionLost(std::string reason);

  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  std::string reason_;
};
// Returns why a connection has ended.
[[nodiscard]] FL_API std::string reason_of(const boost::system::system_error& end);

class FL_API Connection {
 public:
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Does what precedes the first frame. Throws ProtocolError if the other side does not prove its identity, and
  // boost::system::system_error if the connection ends.
  virtual asio::awaitable<void> handshake() = 0;
  // Reads at least one byte and returns the number of bytes. Throws boost::system::system_error if the connection ends.
  virtual asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer) = 0;
  // Writes all bytes. Throws boost::system::system_error if the connection ends.
  virtual asio::awaitable<void> write(std::vector<asio::const_buffer> pieces) = 0;
  // Tells the other side that no bytes follow, waits for a short time until it closes the connection too, and closes it.
  virtual asio::awaitable<void> finish() = 0;
  // Closes at once. Reads and writes in progress end with an error.
  virtual void close() noexcept = 0;

  [[nodiscard]] virtual asio::any_io_executor executor() = 0;
  // Returns the address of the other side as HOST:PORT.
  [[nodiscard]] virtual std::string remote() const = 0;
  // Returns the identity that the handshake has proved.
  [[nodiscard]] virtual const Identity& identity() const = 0;
  // Returns why the identity is not valid any more, or "" while it is. A server asks from time to time.
  [[nodiscard]] virtual std::string why_invalid() { return {}; }

  // Fills the buffer.
  asio::awaitable<void> read(asio::mutable_buffer buffer);
  // Reads at least one byte, as read_some() does, and returns the number of bytes.
  asio::awaitable<std::size_t> read_available(asio::mutable_buffer buffer);
  // Returns when one of these functions last received a byte, or when the connection was made.
  [[nodiscard]] std::chrono::steady_clock::time_point last_read() const { return last_read_; }

 protected:
  Connection() = default;

 private:
  std::chrono::steady_clock::time_point last_read_ = std::chrono::steady_clock::now();
};

class FL_API Transport {
 public:
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  // Returns the server's side of a connection that it has accepted.
  [[nodiscard]] virtual std::unique_ptr<Connection> accepted(asio::ip::tcp::socket socket) = 0;
  // Returns a peer's side of a connection to the server `host`.
  [[nodiscard]] virtual std::unique_ptr<Connection> connected(asio::ip::tcp::socket socket, const std::string& host) = 0;

 protected:
  Transport() = default;
};

// Returns the transport that sends bytes as they are.
[[nodiscard]] FL_API std::shared_ptr<Transport> plain_transport();

// Closes a connection when a time has passed, unless it is destroyed before. Lives on the thread of the connection.
class FL_API CloseTimer {
 public:
  CloseTimer(Connection& connection, std::chrono::milliseconds limit);
  ~CloseTimer();
  CloseTimer(const CloseTimer&) = delete;
  CloseTimer& operator=(const CloseTimer&) = delete;

  [[nodiscard]] bool has_closed() const { return state_->has_closed; }

 private:
  struct State {
    Connection* connection = nullptr;  // null = the timer does not matter any more
    bool has_closed = false;
  };
  std::shared_ptr<State> state_;
  asio::steady_timer timer_;
};

// Listens at an address of this machine. Throws Error if it cannot be used.
[[nodiscard]] FL_API asio::ip::tcp::acceptor listen_at(asio::io_context& io, const std::string& host, std::uint16_t port);

// Reports that a handshake has not ended: the other side has left, or its time is over. It says nothing about who the other side is.
class FL_API HandshakeLost : public ProtocolError {
 public:
  using ProtocolError::ProtocolError;
};

// Completes the handshake within a time. Throws ProtocolError as handshake() does, and HandshakeLost if the time has passed or the other
// side leaves before the end.
FL_API asio::awaitable<void> shake_hands(Connection& connection, std::chrono::milliseconds limit);

// Waits until the other side has closed its end of the socket, and discards what it sends meanwhile, so that its system does not discard
// our last bytes. Ends after a megabyte, and when the socket is closed.
FL_API asio::awaitable<void> drain(asio::ip::tcp::socket& socket);

// The longest time for which finish() waits for the other side.
inline constexpr std::chrono::milliseconds kFarewell{1000};

}  // namespace fl::net
