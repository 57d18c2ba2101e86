// Frames on a connection, as coroutines.
#pragma once

#include <algorithm>
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <type_traits>
#include <vector>

#include "net/transport/connection.hpp"
#include "net/wire/frame.hpp"

namespace fl::net {

// Reads the frames of a connection one after another. It reads a few bytes ahead, so that the first part of a frame takes one call of the
// system and not three.
class FrameReader {
 public:
  explicit FrameReader(Connection& connection) : connection_(connection) {}
  FrameReader(const FrameReader&) = delete;
  FrameReader& operator=(const FrameReader&) = delete;

  // Reads one frame within these limits. Throws ProtocolError for a frame that violates the rules, ConnectionLost for one that was damaged
  // on its way, and boost::system::system_error if the connection ends.
  asio::awaitable<Frame> read(FrameLimits limits) {
    std::array<std::byte, kPrefixBytes> prefix{};
    try {
      co_await fill(asio::buffer(prefix));
    } catch (const boost::system::system_error&) {
      refuse_tls(prefix);
      throw;
    }
    const FrameSizes sizes = unless_damaged([&] { return read_prefix(prefix, limits); }, prefix);
    is_first_ = false;
    const ReceivedBytes head = co_await read_bytes(sizes.header);
    ReceivedBytes payload = co_await read_bytes(sizes.payload);
    unless_damaged([&] { check_frame(prefix, head, payload); }, prefix);
    co_return Frame{.header = parse_header(head), .payload = std::move(payload), .header_bytes = sizes.header};
  }

 private:
  // Bytes that were changed on their way are lost ones.
  template <class Function>
  std::invoke_result_t<const Function&> unless_damaged(const Function& function, const std::array<std::byte, kPrefixBytes>& prefix) const {
    try {
      return function();
    } catch (const DamagedFrame& damaged) {
      refuse_tls(prefix);
      throw ConnectionLost(damaged.what());
    }
  }
  // Throws TlsOnOneSide if the first bytes of a connection that are no frame begin a record of TLS: a peer's hello to a server without
  // certificates, or the alert of a server with certificates to a peer without.
  void refuse_tls(const std::array<std::byte, kPrefixBytes>& prefix) const {
    constexpr std::byte kAlert{0x15}, kHandshake{0x16}, kMajorVersion{0x03};
    if (!is_first_ || prefix[1] != kMajorVersion) return;
    if (prefix[0] == kHandshake) throw TlsOnOneSide("it speaks TLS, and this server does not: join with --insecure, or serve with --certs");
    if (prefix[0] == kAlert) throw TlsOnOneSide("the server speaks TLS: join it with --certs FOLDER");
  }

  static constexpr std::size_t kAhead = 512;  // a thousand idle connections hold half a megabyte

  // Reads `size` bytes. Memory grows with the bytes that arrive: it is at most twice that number, or kFirstPiece. A text of up to kReserved
  // bytes has its memory reserved when the first piece is there, so that its bytes are never copied.
  asio::awaitable<ReceivedBytes> read_bytes(std::size_t size) {
    constexpr std::size_t kFirstPiece = std::size_t{1} << 18, kReserved = std::size_t{1} << 24;
    ReceivedBytes bytes;
    while (bytes.size() < size) {
      const std::size_t have = bytes.size(), next = std::min(size - have, std::max(have, kFirstPiece));
      if (have > 0 && size <= kReserved) bytes.reserve(size);
      const std::span<std::byte> place = bytes.extend(next);
      co_await fill(asio::buffer(place.data(), place.size()));
    }
    co_return bytes;
  }

  // Fills the buffer, first with what was read ahead. A large rest is read into its place.
  asio::awaitable<void> fill(asio::mutable_buffer buffer) {
    for (;;) {
      const std::size_t copied = asio::buffer_copy(buffer, asio::buffer(ahead_.data() + begin_, end_ - begin_));
      buffer += copied;
      begin_ += copied;
      if (buffer.size() == 0) co_return;
      if (buffer.size() >= kAhead) co_return co_await connection_.read(buffer);
      begin_ = end_ = 0;
      end_ = co_await connection_.read_available(asio::buffer(ahead_));
    }
  }

  Connection& connection_;
  bool is_first_ = true;  // no frame has begun yet
  std::array<std::byte, kAhead> ahead_{};
  std::size_t begin_ = 0, end_ = 0;  // of the bytes in ahead_ that no frame has taken
};

// Frames that are written together, so that many short ones take few calls of the system.
class FrameBatch {
 public:
  [[nodiscard]] bool empty() const { return frames_.empty(); }
  // Returns whether no further frame should be added.
  [[nodiscard]] bool is_full() const { return frames_.size() >= kMostFrames || bytes_ >= kMostBytes; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  void add(OutgoingFrame frame) {
    bytes_ += frame.head.size() + frame.payload_bytes();
    frames_.push_back(std::move(frame));
  }
  // Writes all frames. The batch has to live until then.
  asio::awaitable<void> write(Connection& connection) const {
    std::vector<asio::const_buffer> pieces;
    for (const OutgoingFrame& frame : frames_) {
      pieces.push_back(asio::buffer(frame.head));
      for (const auto& piece : frame.payload) pieces.push_back(asio::buffer(*piece));
    }
    return connection.write(std::move(pieces));
  }

 private:
  static constexpr std::size_t kMostFrames = 32, kMostBytes = std::size_t{1} << 18;
  std::vector<OutgoingFrame> frames_;
  std::size_t bytes_ = 0;
};

}  // namespace fl::net
