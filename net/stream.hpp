// Frames on a connection, as coroutines.
#pragma once

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <vector>

#include "net/connection.hpp"
#include "net/frame.hpp"

namespace fl::net {

// Reads `size` bytes. Memory grows with the bytes that arrive: it is at most twice that number, or kFirstPiece. A text of up to kReserved
// bytes has its memory reserved when the first piece is there, so that its bytes are never copied.
inline asio::awaitable<Bytes> read_bytes(Connection& connection, std::size_t size) {
  constexpr std::size_t kFirstPiece = std::size_t{1} << 18, kReserved = std::size_t{1} << 24;
  Bytes bytes;
  while (bytes.size() < size) {
    const std::size_t have = bytes.size(), next = std::min(size - have, std::max(have, kFirstPiece));
    if (have > 0 && size <= kReserved) bytes.reserve(size);
    bytes.resize(have + next);
    co_await connection.read(asio::buffer(bytes.data() + have, next));
  }
  co_return bytes;
}

// Reads one frame within these limits. Throws ProtocolError for a frame that violates the rules, and
// boost::system::system_error if the connection ends.
inline asio::awaitable<Frame> read_frame(Connection& connection, FrameLimits limits) {
  std::array<std::byte, kPrefixBytes> prefix{};
  co_await connection.read(asio::buffer(prefix));
  const FrameSizes sizes = read_prefix(prefix, limits);
  const Bytes head = co_await read_bytes(connection, sizes.header);
  Frame frame{.header = parse_header(head), .payload = {}, .header_bytes = sizes.header};
  frame.payload = co_await read_bytes(connection, sizes.payload);
  co_return frame;
}

inline asio::awaitable<void> write_frame(Connection& connection, const OutgoingFrame& frame) {
  std::vector<asio::const_buffer> pieces{asio::buffer(frame.head)};
  for (const auto& piece : frame.payload) pieces.push_back(asio::buffer(*piece));
  co_await connection.write(std::move(pieces));
}

}  // namespace fl::net
