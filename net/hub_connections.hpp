// The connections of a hub: one thread accepts them, reads and writes their frames, and watches over their time limits.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "net/hub_core.hpp"

namespace fl::net {

class HubConnections {
 public:
  // Listens at once and serves when run() is called. `core` outlives this object. Throws Error if the address cannot be used.
  HubConnections(HubCore& core, const HubOptions& options);
  // Closes all connections.
  ~HubConnections();
  HubConnections(const HubConnections&) = delete;
  HubConnections& operator=(const HubConnections&) = delete;

  void run();
  // Accepts no further connections.
  void stop_listening();
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  asio::awaitable<void> accept();
  asio::awaitable<void> welcome(std::shared_ptr<Connection> connection);
  asio::awaitable<void> read(std::shared_ptr<Peer> peer);
  asio::awaitable<void> write(std::shared_ptr<Peer> peer);
  asio::awaitable<void> watch();
  void check(Peer& peer, Clock::time_point now);

  HubCore& core_;
  const HubOptions options_;
  asio::io_context io_{1};
  asio::ip::tcp::acceptor acceptor_;
  std::shared_ptr<Transport> transport_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace fl::net
