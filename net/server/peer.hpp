// A connection as the hub sees it. The hub's mutex guards all of it but the connection, which belongs to the thread of all connections.
#pragma once

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "net/server/roster.hpp"
#include "net/transport/connection.hpp"
#include "net/wire/frame.hpp"

namespace fl::net {

class Peer : public std::enable_shared_from_this<Peer> {
 public:
  Peer(PeerId id, std::shared_ptr<Connection> connection) : id_(id), connection_(std::move(connection)), wake_(connection_->executor()) {
    wake_.expires_at(asio::steady_timer::time_point::max());
  }

  [[nodiscard]] PeerId id() const { return id_; }
  [[nodiscard]] Clock::time_point begun() const { return begun_; }
  [[nodiscard]] Connection& connection() { return *connection_; }
  [[nodiscard]] const Connection& connection() const { return *connection_; }
  // Cancelled when there is something to write. Its expiry never comes.
  [[nodiscard]] asio::steady_timer& wake() { return wake_; }

  // Returns the session of its hello, or kNobody.
  [[nodiscard]] HostId host() const { return host_; }
  void set_host(HostId host) { host_ = host; }

  // Counts the runs that the peer was offered. It answers each of them once, in their order.
  void note_assignment() {
    ++num_assigned_;
    assigned_ = Clock::now();
  }
  // Returns since when an answer to the last offer is missing, or nothing.
  [[nodiscard]] std::optional<Clock::time_point> unanswered_since() const {
    return num_ready_ < num_assigned_ ? std::optional(assigned_) : std::nullopt;
  }
  // Counts an answer, and returns whether it is the answer to the last offer.
  bool note_ready() { return ++num_ready_ >= num_assigned_; }

  // Returns the size of the largest payload that is accepted; 0 before the peer is ready.
  [[nodiscard]] std::uint64_t most_payload() const { return most_payload_; }
  void allow_payload(std::uint64_t bytes) { most_payload_ = std::max(most_payload_, bytes); }
  // Returns whether the peer does not count as connected any more.
  [[nodiscard]] bool has_left() const { return has_left_; }
  void set_left() { has_left_ = true; }

  // Adds a frame to those that wait to be written.
  void put(OutgoingFrame frame) {
    if (is_ending()) return;
    outbox_bytes_ += frame.head.size() + frame.payload_bytes();
    outbox_.push_back(std::move(frame));
    last_put_ = Clock::now();
    wake_writer();
  }
  // Returns the bytes that wait to be written.
  [[nodiscard]] std::size_t outbox_bytes() const { return outbox_bytes_; }
  // Takes the next frame to write. Returns false if there is none.
  bool pop(OutgoingFrame& frame) {
    if (outbox_.empty()) return false;
    frame = std::move(outbox_.front());
    outbox_.pop_front();
    outbox_bytes_ -= frame.head.size() + frame.payload_bytes();
    return true;
  }
  [[nodiscard]] Clock::time_point last_put() const { return last_put_; }

  // Takes no further frames, and closes the connection when the others are written.
  void end() {
    if (!is_ending()) ends_at_ = Clock::now();
    wake_writer();
  }
  [[nodiscard]] bool is_ending() const { return ends_at_ != Clock::time_point{}; }
  [[nodiscard]] Clock::time_point ends_at() const { return ends_at_; }
  // Closes the connection at once.
  void close() {
    end();
    outbox_.clear();
    outbox_bytes_ = 0;
    asio::post(connection_->executor(), [self = shared_from_this()] { self->connection_->close(); });
  }

 private:
  void wake_writer() {
    asio::post(connection_->executor(), [self = shared_from_this()] { self->wake_.cancel(); });
  }

  PeerId id_;
  std::shared_ptr<Connection> connection_;
  asio::steady_timer wake_;
  HostId host_ = kNobody;
  std::deque<OutgoingFrame> outbox_;
  std::size_t outbox_bytes_ = 0;
  std::uint64_t most_payload_ = 0, num_assigned_ = 0, num_ready_ = 0;
  bool has_left_ = false;
  Clock::time_point begun_ = Clock::now(), last_put_ = begun_, assigned_{}, ends_at_{};
};

}  // namespace fl::net
