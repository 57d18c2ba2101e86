// The connections of a hub: one thread accepts them, reads and writes their frames, and watches over their time limits.
//
// Connections whose peers have not said hello are limited in number, and with it the rate at which others are accepted: those that wait
// meanwhile wait in the queue of the system, and cost this thread nothing.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "net/server/hub_core.hpp"
#include "net/server/pending_connections.hpp"

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
  using Place = std::shared_ptr<PendingConnections::Place>;

  asio::awaitable<void> accept();
  asio::awaitable<void> wait_for_room(asio::steady_timer& timer);
  asio::awaitable<void> welcome(std::shared_ptr<Connection> connection, Place place);
  asio::awaitable<std::string> why_refused(Connection& connection, const Place& place);
  asio::awaitable<void> read(std::shared_ptr<Peer> peer, Place place);
  asio::awaitable<void> write(std::shared_ptr<Peer> peer, Place place);
  asio::awaitable<void> watch();
  void check(Peer& peer, Clock::time_point now);

  HubCore& core_;
  const HubOptions options_;
  PendingConnections pending_;  // before io_, whose coroutines have the places
  asio::io_context io_{1};
  asio::ip::tcp::acceptor acceptor_;
  std::shared_ptr<Transport> transport_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace fl::net
