// A connection whose other side has sent given bytes and then closed its end, without sockets. What is written to it is kept.
#pragma once

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <cstring>
#include <exception>
#include <span>
#include <vector>

#include "net/transport/connection.hpp"
#include "net/wire/frame.hpp"

namespace fl::test {

class MemoryConnection final : public net::Connection {
 public:
  // A read returns at most `piece` bytes.
  MemoryConnection(boost::asio::io_context& io, std::span<const std::byte> bytes, std::size_t piece = 1 << 16)
      : io_(io), rest_(bytes), piece_(piece) {}

  boost::asio::awaitable<void> handshake() override { co_return; }
  boost::asio::awaitable<std::size_t> read_some(boost::asio::mutable_buffer buffer) override {
    if (rest_.empty()) throw boost::system::system_error(boost::asio::error::eof);
    const std::size_t size = std::min({buffer.size(), rest_.size(), piece_});
    std::memcpy(buffer.data(), rest_.data(), size);
    rest_ = rest_.subspan(size);
    co_return size;
  }
  boost::asio::awaitable<void> write(std::vector<boost::asio::const_buffer> pieces) override {
    for (const boost::asio::const_buffer& piece : pieces) {
      const auto* bytes = static_cast<const std::byte*>(piece.data());
      written.insert(written.end(), bytes, bytes + piece.size());
    }
    co_return;
  }
  boost::asio::awaitable<void> finish() override { co_return; }
  void close() noexcept override { rest_ = {}; }
  [[nodiscard]] boost::asio::any_io_executor executor() override { return io_.get_executor(); }
  [[nodiscard]] std::string remote() const override { return "memory"; }
  [[nodiscard]] const net::Identity& identity() const override { return identity_; }
  [[nodiscard]] std::size_t left() const { return rest_.size(); }

  net::Bytes written;

 private:
  boost::asio::io_context& io_;
  std::span<const std::byte> rest_;
  std::size_t piece_;
  net::Identity identity_;
};

// Runs a coroutine to its end and returns its exception, or null.
inline std::exception_ptr run_to_end(boost::asio::io_context& io, boost::asio::awaitable<void> coroutine) {
  std::exception_ptr thrown;
  boost::asio::co_spawn(io, std::move(coroutine), [&thrown](std::exception_ptr error) { thrown = error; });
  io.restart();
  io.run();
  return thrown;
}

}  // namespace fl::test
