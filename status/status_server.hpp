// A small HTTP server that shows the status of a run or a study: GET and HEAD for a fixed set of routes.
//
// It must never slow or stop what it shows. It has one thread, or a process, of its own; connections, the lengths of requests and the time
// for each of them are bounded; and the text of a route is made at most once in kRefresh, however many ask for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "fl_core/config/device.hpp"

namespace fl::net {

struct StatusOptions {
  std::string host = "127.0.0.1";  // an address as numbers
  std::uint16_t port = 0;          // 0 = any free port
  std::size_t most_connections = 256;
  std::chrono::milliseconds request_limit{5000};  // from the beginning of a connection to the end of its first request
  std::chrono::milliseconds idle_limit{15000};    // from an answer to the end of the next request
  std::chrono::milliseconds answer_limit{10000};  // for one answer to be sent
};

// The content of a path.
struct StatusRoute {
  std::string content_type{};
  std::function<std::string()> body{};  // called on the thread of the server
  bool tells_end = false;               // a page asks for this route again and again, so that it hears of the end of the run
};
using StatusRoutes = std::map<std::string, StatusRoute>;  // by path

inline constexpr std::size_t kMostRequestBytes = 8192, kMostTargetBytes = 1024;
inline constexpr std::chrono::milliseconds kRefresh{200};

class FL_API StatusServer {
 public:
  // Starts to listen. Throws Error if the address cannot be used.
  StatusServer(const StatusOptions& options, StatusRoutes routes);
  ~StatusServer();
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  // Serves in a thread until the object is destroyed.
  void start();
  // Serves in the calling thread. Calls `tell` for each line that arrives at the socket `lines`, and returns when that socket is closed.
  void serve_while_open(int lines, const std::function<void(const std::string&)>& tell);
  // Goes on for 1.2 s if a page is open, which is longer than the time between two requests of a page. Call when nothing changes any more.
  void linger();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fl::net
