// A peer's end of one connection: frames are written in the order in which they are put, heartbeats in between, and silence ends it.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <memory>
#include <string>

#include "net/transport/stream.hpp"

namespace fl::net {

// The time limits of a connection that is silent or ends.
struct LinkTimes {
  std::chrono::milliseconds heartbeat{5000};  // after which this side says that it is there
  std::chrono::milliseconds silence{20000};   // after which the other side counts as gone
  std::chrono::milliseconds farewell{1000};   // in which last frames are written
};

// All members are called on the thread of the connection.
class JoinLink : public std::enable_shared_from_this<JoinLink> {
 public:
  JoinLink(std::unique_ptr<Connection> connection, const LinkTimes& times);

  // Starts to write, and to watch for silence. The coroutines keep the link alive until close().
  void start();
  void put(OutgoingFrame frame);
  // Reads the next frame. Throws ProtocolError, and boost::system::system_error if the connection ends.
  asio::awaitable<Frame> read();
  // Waits for a short time until everything is written, and closes the connection.
  asio::awaitable<void> finish();
  void close();

  // Returns why the connection was closed on this side, or "".
  [[nodiscard]] const std::string& why_closed() const { return why_closed_; }
  [[nodiscard]] std::uint64_t bytes_out() const { return bytes_out_; }

 private:
  using Clock = std::chrono::steady_clock;
  asio::awaitable<void> write_all();
  asio::awaitable<void> watch_silence();
  asio::awaitable<void> pause(std::chrono::milliseconds time);

  std::unique_ptr<Connection> connection_;
  FrameReader frames_{*connection_};
  const LinkTimes times_;
  asio::steady_timer wake_, silence_;
  std::deque<OutgoingFrame> outbox_;
  Clock::time_point heard_ = Clock::now();
  std::uint64_t bytes_out_ = 0;
  bool is_reading_ = false, is_writing_ = false, is_closed_ = false;
  std::string why_closed_;
};

}  // namespace fl::net
