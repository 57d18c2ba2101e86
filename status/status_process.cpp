#include "status/status_process.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "fl_core/config/error.hpp"
#include "status/status_page.hpp"
#include "status/study_status.hpp"

namespace fl::net {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

double seconds_now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

void write_all(int socket, const std::string& text) {
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t more = ::send(socket, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (more <= 0) return;
    sent += static_cast<std::size_t>(more);
  }
}

// Returns the line that the process says first: its port, or why it has none.
std::string read_line(int socket) {
  std::string line;
  for (char c = 0; ::read(socket, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

StatusRoutes routes_of(StudyStatus& status) {
  StatusRoutes routes = page_routes();
  routes["/status.json"] = {kJsonType, [&status] { return status.json(seconds_now()); }, true};
  routes["/cells.json"] = {kJsonType, [&status] { return status.titles_json(); }};
  routes["/metrics"] = {kMetricsType, [&status] { return status.metrics(seconds_now()); }};
  return routes;
}

}  // namespace

// Runs in the forked process. A terminal sends its signals to all processes; the parent decides when to end.
void StatusProcess::serve(const StatusOptions& options, int socket) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_IGN);
  try {
    StudyStatus status(seconds_now());
    StatusServer server(options, routes_of(status));
    write_all(socket, std::to_string(server.port()) + "\n");
    server.serve_while_open(socket, [&status](const std::string& line) { status.apply(line, seconds_now()); });
    status.lose(seconds_now());
    server.linger();
  } catch (const std::exception& error) {
    write_all(socket, std::string(error.what()) + "\n");
  }
  ::_exit(0);
}

StatusProcess::StatusProcess(const StatusOptions& options) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    throw Error(std::string("cannot show the status: ") + std::strerror(errno));
  process_ = ::fork();
  if (process_ == 0) {
    ::close(pair[0]);
    serve(options, pair[1]);
  }
  ::close(pair[1]);
  socket_ = pair[0];
  if (process_ < 0) {
    ::close(socket_);
    throw Error(std::string("cannot show the status: ") + std::strerror(errno));
  }
  const std::string said = read_line(socket_);
  if (said.empty() || said.find_first_not_of("0123456789") != std::string::npos) {
    ::close(socket_);
    ::waitpid(process_, nullptr, 0);
    throw Error(said.empty() ? "cannot show the status: its process has ended" : said);
  }
  port_ = static_cast<std::uint16_t>(std::stoul(said));
}

StatusProcess::~StatusProcess() {
  const Clock::time_point until = Clock::now() + 1s;
  pollfd ready{.fd = socket_, .events = POLLOUT, .revents = 0};
  while (flush() && !pending_.empty() && Clock::now() < until) ::poll(&ready, 1, 50);
  if (socket_ >= 0) ::close(socket_);
  for (const Clock::time_point end = Clock::now() + 2s; ::waitpid(process_, nullptr, WNOHANG) == 0;) {
    if (Clock::now() > end) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, nullptr, 0);
      return;
    }
    std::this_thread::sleep_for(10ms);
  }
}

void StatusProcess::tell(const std::string& line) {
  if (socket_ < 0) return;
  pending_ += line;
  pending_ += '\n';
  flush();
}

bool StatusProcess::flush() {
  if (socket_ < 0) return false;
  std::size_t sent = 0;
  while (sent < pending_.size()) {
    const ssize_t more = ::send(socket_, pending_.data() + sent, pending_.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (more > 0)
      sent += static_cast<std::size_t>(more);
    else if (errno != EINTR)
      break;
  }
  const bool is_waiting = sent == pending_.size() || errno == EAGAIN || errno == EWOULDBLOCK;
  pending_.erase(0, sent);
  if (is_waiting && pending_.size() <= kMostPending) return true;
  ::close(socket_);
  socket_ = -1;
  pending_.clear();
  return false;
}

}  // namespace fl::net
