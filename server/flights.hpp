// The messages of clients that are at work, and the order in which they arrive: by time, then by client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "fl_core/round/cohort_runner.hpp"
#include "server/round_clock.hpp"

namespace fl {

// A client that is at work, or whose message is on its way. Its state is that from before until the message is acknowledged.
template <class T>
struct Flight {
  RoundOrder order{};                           // of this client alone
  std::shared_ptr<const std::vector<T>> model;  // w [P], at which it computes
  MessageBatch<T> batch{};                      // its message
  std::uint32_t version = 0;                    // the server's steps before it began
  double began_s = 0, ends_s = 0;               // it ends when its message arrives, or when the client leaves
  bool arrives = true;                          // false: the client leaves
  ClientTimes times{};
  [[nodiscard]] std::uint32_t client() const { return order.cohort.front(); }
};

template <class T>
class Flights {
 public:
  [[nodiscard]] std::size_t size() const { return flights_.size(); }
  [[nodiscard]] bool empty() const { return flights_.empty(); }
  [[nodiscard]] bool contains(std::uint32_t client) const { return flights_.contains(client); }
  // Returns the time at which the next one ends; infinite if there is none.
  [[nodiscard]] double next_s() const { return events_.empty() ? std::numeric_limits<double>::infinity() : events_.begin()->first; }

  // Adds a flight of a client that has none.
  void add(Flight<T> flight) {
    const std::uint32_t client = flight.client();
    events_.emplace(flight.ends_s, client);
    flights_.emplace(client, std::move(flight));
  }
  // Takes out the one that ends next. There is one.
  [[nodiscard]] Flight<T> take() {
    const auto first = events_.begin();
    auto found = flights_.extract(first->second);
    events_.erase(first);
    return std::move(found.mapped());
  }
  // Returns all, by client.
  [[nodiscard]] std::map<std::uint32_t, Flight<T>>& all() { return flights_; }
  void clear() {
    events_.clear();
    flights_.clear();
  }

 private:
  std::set<std::pair<double, std::uint32_t>> events_;  // when each ends
  std::map<std::uint32_t, Flight<T>> flights_;         // by client
};

}  // namespace fl
