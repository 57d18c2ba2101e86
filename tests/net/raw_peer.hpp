// A peer and a server that send the messages that a test specifies, right or wrong.
#pragma once

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <optional>
#include <string>

#include "fl_core/state/checkpoint.hpp"
#include "fl_core/state/checksum.hpp"
#include "net/wire/client_ranges.hpp"
#include "net/wire/frame.hpp"

namespace fl::test {

class RawConnection {
 public:
  void write(std::span<const std::byte> bytes) { boost::asio::write(socket_, boost::asio::buffer(bytes.data(), bytes.size())); }
  void send(const net::wire::Header& header, const net::Bytes& payload = {}) {
    write(net::make_frame(header, {std::make_shared<const net::Bytes>(payload)}).head);
    write(payload);
  }
  // Ends the connection without a word, as a process that is killed.
  void kill() {
    boost::system::error_code ignored;
    socket_.set_option(boost::asio::socket_base::linger(true, 0), ignored);
    socket_.close(ignored);
  }
  // The next frame; nothing where the other side has closed the connection.
  std::optional<net::Frame> read() {
    std::array<std::byte, net::kPrefixBytes> prefix{};
    boost::system::error_code error;
    boost::asio::read(socket_, boost::asio::buffer(prefix), error);
    if (error) return std::nullopt;
    const net::FrameSizes sizes = net::read_prefix(prefix, 1 << 30);
    net::Bytes head(sizes.header), payload(sizes.payload);
    boost::asio::read(socket_, boost::asio::buffer(head), error);
    boost::asio::read(socket_, boost::asio::buffer(payload), error);
    if (error) return std::nullopt;
    return net::Frame{.header = net::parse_header(head), .payload = net::ReceivedBytes(payload)};
  }
  // The reason of the goodbye that comes next, other frames left out; "" where none comes.
  std::string read_goodbye() {
    while (const std::optional<net::Frame> frame = read())
      if (frame->header.has_goodbye()) return frame->header.goodbye().reason();
    return {};
  }

 protected:
  RawConnection() : socket_(io_) {}

  boost::asio::io_context io_;
  boost::asio::ip::tcp::socket socket_;
};

class RawPeer : public RawConnection {
 public:
  // Small frames leave at once, as those of a real peer do.
  explicit RawPeer(std::uint16_t port) {
    socket_.connect({boost::asio::ip::make_address("127.0.0.1"), port});
    socket_.set_option(boost::asio::ip::tcp::no_delay(true));
  }

  // Returns the first bytes of a frame whose header has these bytes and whose payload has that size and these bytes, whatever they mean.
  static net::Bytes frame_of(const net::Bytes& header, std::uint64_t payload_size, const net::Bytes& payload = {}) {
    net::Bytes bytes(net::kPrefixBytes);
    const std::uint64_t sizes = header.size() | payload_size << 24, checksum = Hash64().add(header).add_value(hash64_of(payload)).value();
    std::memcpy(bytes.data(), &sizes, sizeof sizes);
    std::memcpy(bytes.data() + 8, &checksum, sizeof checksum);
    const auto check = static_cast<std::uint32_t>(hash64_of(std::span(bytes).first(16)));
    std::memcpy(bytes.data() + 16, &check, sizeof check);
    bytes.insert(bytes.end(), header.begin(), header.end());
    return bytes;
  }
  void say_hello(const std::string& clients) { send(hello(clients)); }

  static net::wire::Header hello(const std::string& clients) {
    net::wire::Header header;
    header.mutable_hello()->set_protocol(net::kProtocol);
    header.mutable_hello()->set_build(build_fingerprint());
    for (const net::ClientRange& range : net::parse_client_ranges(clients)) {
      net::wire::ClientRange& one = *header.mutable_hello()->add_clients();
      one.set_first(range.first);
      one.set_last(range.last);
    }
    return header;
  }
};

class RawServer : public RawConnection {
 public:
  RawServer() : acceptor_(io_, {boost::asio::ip::make_address("127.0.0.1"), 0}) {}

  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  // Waits for the next peer, and leaves the one before.
  void accept() { socket_ = acceptor_.accept(); }

 private:
  boost::asio::ip::tcp::acceptor acceptor_;
};

}  // namespace fl::test
