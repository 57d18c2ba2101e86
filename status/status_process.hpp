// A process of its own that shows the status of a study, for commands that fork workers and therefore may have no thread.
//
// Lines travel to it over a socket, and telling one never waits: lines that the process has not read yet are kept here, up to kMostPending
// bytes. Beyond that, or if the process has died, the status is no longer shown and the study goes on.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "status/status_server.hpp"

namespace fl::net {

class FL_API StatusProcess {
 public:
  static constexpr std::size_t kMostPending = 64 << 20;

  // Forks. Throws Error if the address cannot be used. No thread may exist in this process.
  explicit StatusProcess(const StatusOptions& options);
  // Tells the process that nothing follows, and waits for its end, which comes within 2 s.
  ~StatusProcess();
  StatusProcess(const StatusProcess&) = delete;
  StatusProcess& operator=(const StatusProcess&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] pid_t process() const { return process_; }
  // Sends a line without its end, now or in a later call.
  void tell(const std::string& line);
  // Sends what is pending as far as that needs no waiting. Returns false if the status is no longer shown.
  bool flush();

 private:
  [[noreturn]] static void serve(const StatusOptions& options, int socket);

  int socket_ = -1;
  pid_t process_ = -1;
  std::uint16_t port_ = 0;
  std::string pending_;
};

}  // namespace fl::net
