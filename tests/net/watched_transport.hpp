// A transport whose bytes a test reads along: it splits both directions of each connection into frames, independently of the code that
// counts them in the program.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "net/transport/connection.hpp"
#include "net/wire/frame.hpp"

namespace fl::test {

// Bytes of one direction of all connections of a server.
struct WireTally {
  std::uint64_t bytes = 0, frames = 0, header_bytes = 0;
  std::map<net::wire::Header::KindCase, std::uint64_t> payload_bytes;  // by the kind of the frame
  std::uint64_t cut_bytes = 0;                                         // of frames that a connection's end has cut

  [[nodiscard]] std::uint64_t payload_of(std::initializer_list<net::wire::Header::KindCase> kinds) const {
    std::uint64_t sum = 0;
    for (const auto kind : kinds)
      if (const auto found = payload_bytes.find(kind); found != payload_bytes.end()) sum += found->second;
    return sum;
  }
};

// The traffic between a server and its peers. `on_frame_up` is called for each whole frame of a peer, on the server's thread of
// connections.
struct WireLog {
  std::mutex mutex;
  WireTally up, down;
  std::function<void(const net::wire::Header&)> on_frame_up;
};

// Splits a stream of bytes into frames.
class FrameSplitter {
 public:
  FrameSplitter(WireTally& tally, std::function<void(const net::wire::Header&)> on_frame = {})
      : tally_(tally), on_frame_(std::move(on_frame)) {}
  ~FrameSplitter() { tally_.cut_bytes += bytes_.size(); }
  FrameSplitter(const FrameSplitter&) = delete;
  FrameSplitter& operator=(const FrameSplitter&) = delete;

  void take(std::span<const std::byte> bytes) {
    tally_.bytes += bytes.size();
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    while (take_frame()) {
    }
  }

 private:
  [[nodiscard]] std::uint64_t number(std::size_t at, std::size_t size) const {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) value |= std::to_integer<std::uint64_t>(bytes_[at + i]) << (8 * i);
    return value;
  }
  // 3 bytes: length of the header; 5 bytes: length of the payload; 12 bytes of checksums; the header; the payload (docs/protocol.md).
  bool take_frame() {
    constexpr std::size_t kBegin = net::kPrefixBytes;
    if (bytes_.size() < kBegin) return false;
    const std::uint64_t header_size = number(0, 3), payload_size = number(3, 5);
    if (bytes_.size() < kBegin + header_size + payload_size) return false;
    net::wire::Header header;
    if (!header.ParseFromArray(bytes_.data() + kBegin, static_cast<int>(header_size))) throw std::runtime_error("a header cannot be read");
    ++tally_.frames;
    tally_.header_bytes += header_size;
    tally_.payload_bytes[header.kind_case()] += payload_size;
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(kBegin + header_size + payload_size));
    if (on_frame_) on_frame_(header);
    return true;
  }

  WireTally& tally_;
  std::function<void(const net::wire::Header&)> on_frame_;
  std::vector<std::byte> bytes_;  // of the frame that is not complete
};

class WatchedConnection final : public net::Connection {
 public:
  WatchedConnection(std::unique_ptr<net::Connection> inner, std::shared_ptr<WireLog> log)
      : inner_(std::move(inner)), log_(std::move(log)), up_(log_->up, log_->on_frame_up), down_(log_->down) {}

  net::asio::awaitable<void> handshake() override { return inner_->handshake(); }
  net::asio::awaitable<std::size_t> read_some(net::asio::mutable_buffer buffer) override {
    const std::size_t size = co_await inner_->read_some(buffer);
    const std::lock_guard lock(log_->mutex);
    up_.take({static_cast<const std::byte*>(buffer.data()), size});
    co_return size;
  }
  net::asio::awaitable<void> write(std::vector<net::asio::const_buffer> pieces) override {
    {
      const std::lock_guard lock(log_->mutex);
      for (const net::asio::const_buffer& piece : pieces) down_.take({static_cast<const std::byte*>(piece.data()), piece.size()});
    }
    co_await inner_->write(std::move(pieces));
  }
  net::asio::awaitable<void> finish() override { return inner_->finish(); }
  void close() noexcept override { inner_->close(); }
  [[nodiscard]] net::asio::any_io_executor executor() override { return inner_->executor(); }
  [[nodiscard]] std::string remote() const override { return inner_->remote(); }
  [[nodiscard]] const net::Identity& identity() const override { return inner_->identity(); }
  [[nodiscard]] std::string why_invalid() override { return inner_->why_invalid(); }

 private:
  std::unique_ptr<net::Connection> inner_;
  std::shared_ptr<WireLog> log_;
  FrameSplitter up_, down_;
};

// The transport of a server, over TCP or TLS.
class WatchedTransport final : public net::Transport {
 public:
  WatchedTransport(std::shared_ptr<net::Transport> inner, std::shared_ptr<WireLog> log) : inner_(std::move(inner)), log_(std::move(log)) {}
  [[nodiscard]] std::unique_ptr<net::Connection> accepted(net::asio::ip::tcp::socket socket) override {
    return std::make_unique<WatchedConnection>(inner_->accepted(std::move(socket)), log_);
  }
  [[nodiscard]] std::unique_ptr<net::Connection> connected(net::asio::ip::tcp::socket socket, const std::string& host) override {
    return inner_->connected(std::move(socket), host);
  }

 private:
  std::shared_ptr<net::Transport> inner_;
  std::shared_ptr<WireLog> log_;
};

// The transport of a peer that waits before it writes the updates of its clients.
class DelayedTransport final : public net::Transport {
 public:
  using Wait = std::function<net::asio::awaitable<void>(const net::wire::Header& update)>;
  explicit DelayedTransport(Wait wait) : wait_(std::move(wait)) {}
  [[nodiscard]] std::unique_ptr<net::Connection> accepted(net::asio::ip::tcp::socket socket) override {
    return net::plain_transport()->accepted(std::move(socket));
  }
  [[nodiscard]] std::unique_ptr<net::Connection> connected(net::asio::ip::tcp::socket socket, const std::string& host) override;

 private:
  Wait wait_;
};

class DelayedConnection final : public net::Connection {
 public:
  DelayedConnection(std::unique_ptr<net::Connection> inner, DelayedTransport::Wait wait)
      : inner_(std::move(inner)), wait_(std::move(wait)) {}

  net::asio::awaitable<void> handshake() override { return inner_->handshake(); }
  net::asio::awaitable<std::size_t> read_some(net::asio::mutable_buffer buffer) override { return inner_->read_some(buffer); }
  // The first piece of a frame holds its prefix and its header.
  net::asio::awaitable<void> write(std::vector<net::asio::const_buffer> pieces) override {
    net::wire::Header header;
    const std::span head(static_cast<const std::byte*>(pieces.front().data()), pieces.front().size());
    if (header.ParseFromArray(head.data() + net::kPrefixBytes, static_cast<int>(head.size() - net::kPrefixBytes)) && header.has_update())
      co_await wait_(header);
    co_await inner_->write(std::move(pieces));
  }
  net::asio::awaitable<void> finish() override { return inner_->finish(); }
  void close() noexcept override { inner_->close(); }
  [[nodiscard]] net::asio::any_io_executor executor() override { return inner_->executor(); }
  [[nodiscard]] std::string remote() const override { return inner_->remote(); }
  [[nodiscard]] const net::Identity& identity() const override { return inner_->identity(); }

 private:
  std::unique_ptr<net::Connection> inner_;
  DelayedTransport::Wait wait_;
};

inline std::unique_ptr<net::Connection> DelayedTransport::connected(net::asio::ip::tcp::socket socket, const std::string& host) {
  return std::make_unique<DelayedConnection>(net::plain_transport()->connected(std::move(socket), host), wait_);
}

}  // namespace fl::test
