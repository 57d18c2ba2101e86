// A peer's side of its connection: it requests to host clients and follows the server until the server closes the session.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/peer/hosted_clients.hpp"
#include "net/peer/join_link.hpp"
#include "net/peer/peer_journal.hpp"
#include "net/transport/connection.hpp"

namespace fl::net {

struct JoinOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  std::vector<ClientRange> clients;
  HostOptions machine{};
  double patience_s = 60;                        // how long a server that cannot be reached, or says nothing, is tried again
  std::shared_ptr<Transport> transport{};        // null = plain TCP
  std::filesystem::path state{};                 // folder of the clients' state; "" = a private one, which is removed at the end
  std::uint64_t long_bytes = kLongJournalBytes;  // of the rounds since a snapshot, after which another one is written
  FileSystem* system = nullptr;                  // of the state; null = the real one
  LinkTimes times{};
};

// An event of a session. Values that an event does not have are 0 and "".
struct JoinEvent {
  enum class Kind { connected, run_begun, round_closed, refused, run_ended } kind = Kind::connected;
  std::uint64_t run = 0;  // hash of the resolved scenario
  std::uint32_t round = 0, client = 0;
  std::string text{};  // the ids that are hosted here, or the reason of a refusal
};

// Callbacks for events: a run begins, rounds close.
struct JoinEvents {
  std::function<void(const JoinEvent&)> tell = [](const JoinEvent&) {};
  std::function<void(const std::string&)> say = [](const std::string&) {};
  std::function<bool()> goes_on = [] { return true; };  // called between two frames; false ends the session
};

struct JoinResult {
  std::uint64_t runs = 0, rounds = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;
  bool was_stopped = false;  // by goes_on()
};

// Joins a server, and joins it again whenever the connection ends. Returns when the server says that all is done, or goes_on() returns
// false. Throws Error if the server is gone for too long or refuses the peer, and StoreError if the clients' state cannot be kept.
[[nodiscard]] FL_API JoinResult join_server(const JoinOptions& options, const JoinEvents& events);

}  // namespace fl::net
