// A proxy between peers and a server that changes one bit of a TCP stream, below TLS.
#pragma once

#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace fl::test {

// The place of a bit in the first connection through a proxy that gets so far.
struct ChangedBit {
  bool is_of_server = false;  // whether the server has sent it
  std::uint64_t byte = 0;
  int bit = 0;
};

class FlippingProxy {
 public:
  FlippingProxy(std::uint16_t server, ChangedBit changed) : server_(server), changed_(changed) {
    accept();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~FlippingProxy() {
    io_.stop();
    thread_.join();
  }
  FlippingProxy(const FlippingProxy&) = delete;
  FlippingProxy& operator=(const FlippingProxy&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] bool has_changed() const { return has_changed_; }

 private:
  using Tcp = boost::asio::ip::tcp;

  // One direction of a connection.
  struct Relay : std::enable_shared_from_this<Relay> {
    Relay(FlippingProxy& owner, std::shared_ptr<Tcp::socket> from_, std::shared_ptr<Tcp::socket> to_, bool is_of_server)
        : proxy(owner), from(std::move(from_)), to(std::move(to_)), is_watched(is_of_server == owner.changed_.is_of_server) {}

    void go_on() {
      from->async_read_some(boost::asio::buffer(bytes),
                            [self = shared_from_this()](const boost::system::error_code& error, std::size_t size) {
                              boost::system::error_code ended = error;
                              if (!error) {
                                self->change(size);
                                boost::asio::write(*self->to, boost::asio::buffer(self->bytes.data(), size), ended);
                              }
                              if (!ended) return self->go_on();
                              self->to->shutdown(Tcp::socket::shutdown_send, ended);
                            });
    }
    void change(std::size_t size) {
      const ChangedBit& changed = proxy.changed_;
      if (is_watched && !proxy.has_changed_ && changed.byte >= passed && changed.byte < passed + size) {
        bytes[changed.byte - passed] ^= static_cast<unsigned char>(1 << changed.bit);
        proxy.has_changed_ = true;
      }
      passed += size;
    }

    FlippingProxy& proxy;
    std::shared_ptr<Tcp::socket> from, to;
    const bool is_watched;
    std::vector<unsigned char> bytes = std::vector<unsigned char>(16384);
    std::uint64_t passed = 0;
  };

  void accept() {
    const auto peer = std::make_shared<Tcp::socket>(io_);
    acceptor_.async_accept(*peer, [this, peer](const boost::system::error_code& error) {
      if (error) return;
      const auto server = std::make_shared<Tcp::socket>(io_);
      boost::system::error_code refused;
      server->connect({boost::asio::ip::address_v4::loopback(), server_}, refused);
      if (!refused) {
        peer->set_option(Tcp::no_delay(true));
        server->set_option(Tcp::no_delay(true));
        std::make_shared<Relay>(*this, peer, server, false)->go_on();
        std::make_shared<Relay>(*this, server, peer, true)->go_on();
      }
      accept();
    });
  }

  const std::uint16_t server_;
  const ChangedBit changed_;
  std::atomic<bool> has_changed_ = false;
  boost::asio::io_context io_{1};
  Tcp::acceptor acceptor_{io_, Tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)};
  const std::uint16_t port_ = acceptor_.local_endpoint().port();
  std::thread thread_;
};

}  // namespace fl::test
