// The connections that a server has accepted and whose peers have not said hello, oldest first. Their number is limited.
//
// A connection that costs its maker nothing may not keep others out. When all places are taken, a newer connection takes the place of the
// oldest, as soon as that one has had its grace. All members are called on the thread of all connections.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "fl_core/config/device.hpp"
#include "net/server/presence.hpp"
#include "net/transport/connection.hpp"

namespace fl::net {

class FL_API PendingConnections {
 public:
  // The place of one connection. It is free when the object ends.
  class FL_API Place {
   public:
    Place(PendingConnections& all, std::uint64_t id) : all_(all), id_(id) {}
    ~Place() { leave(); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    // Gives the place up: the connection is not closed for others any more.
    void leave() { all_.entries_.erase(id_); }
    // Returns whether the connection was closed because another one took its place.
    [[nodiscard]] bool is_replaced() const { return is_replaced_; }

   private:
    friend class PendingConnections;
    PendingConnections& all_;
    std::uint64_t id_;
    bool is_replaced_ = false;
  };

  // `most` is at least 1. `grace` is the time that a connection has at least.
  PendingConnections(std::size_t most, std::chrono::milliseconds grace) : most_(most), grace_(grace) {}

  [[nodiscard]] std::shared_ptr<Place> add(const std::shared_ptr<Connection>& connection);
  [[nodiscard]] bool is_full() const { return entries_.size() >= most_; }
  // Returns the time from which on there is a place: `now` if one is free, else the end of the oldest connection's grace.
  [[nodiscard]] Clock::time_point next_free(Clock::time_point now) const { return is_full() ? end_of_grace(now) : now; }
  // Returns the end of the oldest connection's grace, or `now` if there is no connection.
  [[nodiscard]] Clock::time_point end_of_grace(Clock::time_point now) const;
  // Closes the oldest connection.
  void replace_oldest();

 private:
  struct Entry {
    std::weak_ptr<Place> place;
    std::shared_ptr<Connection> connection;
    Clock::time_point begun;
  };
  std::size_t most_;
  std::chrono::milliseconds grace_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, Entry> entries_;  // by the order in which they came
};

}  // namespace fl::net
