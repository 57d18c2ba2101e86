// A peer's end of its connection: asks to host clients, and plays what it is told until the server says goodbye.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "net/hosted_clients.hpp"

namespace fl::net {

struct JoinOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::vector<ClientRange> clients;
  HostOptions machine{};
  double patience_s = 10;  // for how long it tries to reach the server
};

// Told of what happens: the run that begins, rounds that close.
struct JoinEvents {
  std::function<void(const std::string&)> say = [](const std::string&) {};
  std::function<bool()> goes_on = [] { return true; };  // asked between two frames
};

struct JoinResult {
  std::uint64_t runs = 0, rounds = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;
  bool was_stopped = false;  // by goes_on()
};

// Returns when the server says goodbye, or goes_on() returns false. Throws Error where the server cannot be reached, goes away or refuses.
[[nodiscard]] FL_API JoinResult join_server(const JoinOptions& options, const JoinEvents& events);

}  // namespace fl::net
