#include "scenarios/sweep/process_pool.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <deque>
#include <exception>
#include <utility>

#include "fl_core/config/error.hpp"
#include "fl_core/config/stopping.hpp"

namespace fl {

namespace {

constexpr int kTickMs = 100;

enum class Kind : std::uint32_t { progress, result, failure, given_up };

// Header of every message from a worker.
struct Head {
  Kind kind;
  std::uint32_t leaves = 0;  // 1: the worker ends now because it was asked to stop
  std::uint64_t size = 0;
};

// Sends all bytes. Returns false if the other side is gone.
bool send_all(int socket, const void* bytes, std::size_t size) {
  const auto* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t sent = ::send(socket, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, void* bytes, std::size_t size) {
  auto* at = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t got = ::recv(socket, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

volatile std::sig_atomic_t g_stop = 0;

bool say(int socket, Kind kind, std::string_view text, bool leaves = false) {
  const Head head{.kind = kind, .leaves = leaves ? 1u : 0u, .size = text.size()};
  return send_all(socket, &head, sizeof head) && send_all(socket, text.data(), text.size());
}

std::string how_it_died(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return "its worker was killed by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")" +
           (signal == SIGKILL ? ": by hand, or because memory ran out" : "");
  }
  return "its worker ended with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

// A task that has ended: its result, or the reason why it has none, or nothing if it was given up.
struct ProcessPool::Ended {
  std::size_t task = 0;
  Kind kind = Kind::failure;
  std::string text;
};

struct ProcessPool::Worker {
  int number = 0;
  pid_t process = -1;
  int socket = -1;
  bool busy = false;
  std::size_t task = 0;
};

bool ProcessPool::asked_to_stop() { return g_stop != 0; }

ProcessPool::ProcessPool(int workers, Work work, std::chrono::milliseconds grace)
    : work_(std::move(work)), grace_(grace), workers_(static_cast<std::size_t>(workers)) {
  for (int i = 0; i < workers; ++i) workers_[static_cast<std::size_t>(i)].number = i;
}

ProcessPool::~ProcessPool() {
  for (Worker& worker : workers_) {
    if (worker.process < 0) continue;
    ::close(worker.socket);
    ::kill(worker.process, SIGKILL);
    ::waitpid(worker.process, nullptr, 0);
  }
}

void ProcessPool::start(Worker& worker) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    throw Error(std::string("cannot make a socket: ") + std::strerror(errno));
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  if (process < 0) {
    const int reason = errno;
    ::close(pair[0]);
    ::close(pair[1]);
    throw Error(std::string("cannot make a worker process: ") + std::strerror(reason));
  }
  if (process == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::signal(SIGINT, SIG_IGN);  // a terminal sends these to all processes; the parent decides when to stop
    std::signal(SIGHUP, SIG_IGN);
    std::signal(SIGUSR1, SIG_IGN);
    for (const int signal : {SIGTERM, SIGXCPU}) std::signal(signal, [](int) { g_stop = 1; });
    const StopScope::Helper of_the_process(nullptr);
    set_stop_source({.is_asked = &ProcessPool::asked_to_stop});
    if (::getppid() != parent) ::_exit(1);  // the parent died before the line above
    ::close(pair[0]);
    for (const Worker& other : workers_)
      if (other.socket >= 0) ::close(other.socket);
    serve(pair[1]);
  }
  ::close(pair[1]);
  worker.process = process;
  worker.socket = pair[0];
  worker.busy = false;
}

// Runs tasks in a worker until the parent closes the socket. The worker leaves by _exit, so that no state of the parent is flushed or
// closed twice.
void ProcessPool::serve(int socket) {
  using Clock = std::chrono::steady_clock;
  std::uint64_t task = 0;
  while (receive_all(socket, &task, sizeof task)) {
    auto last = Clock::now() - std::chrono::seconds(1);
    const Report report = [&](std::string_view text) {
      if (Clock::now() - last < std::chrono::milliseconds(kTickMs)) return;
      last = Clock::now();
      if (!say(socket, Kind::progress, text)) ::_exit(1);
    };
    Kind kind = Kind::result;
    std::string text;
    try {
      text = work_(task, report);
    } catch (const Stopped&) {
      kind = Kind::given_up;
    } catch (const std::exception& error) {
      kind = Kind::failure;
      text = error.what();
    } catch (...) {
      kind = Kind::failure;
      text = "something that is no std::exception was thrown";
    }
    const bool leaves = asked_to_stop();
    if (!say(socket, kind, text, leaves)) ::_exit(1);
    if (leaves) break;
  }
  ::_exit(0);
}

void ProcessPool::give(Worker& worker, std::size_t task) {
  if (worker.process < 0) start(worker);
  worker.busy = true;
  worker.task = task;
  const auto number = static_cast<std::uint64_t>(task);
  send_all(worker.socket, &number, sizeof number);  // a dead worker is detected later, because it sends no answer
}

void ProcessPool::receive(Worker& worker, const PoolEvents& events, std::vector<Ended>& ended) {
  Head head{};
  std::string text;
  if (!receive_all(worker.socket, &head, sizeof head)) return bury(worker, ended);
  text.resize(head.size);
  if (!receive_all(worker.socket, text.data(), text.size())) return bury(worker, ended);
  if (head.kind == Kind::progress) {
    if (events.progress) events.progress(worker.task, text);
    return;
  }
  worker.busy = false;
  ended.push_back({worker.task, head.kind, std::move(text)});
  if (head.leaves != 0) take_leave(worker);
}

// Closes the socket of a worker that is ending and waits for the end of its process. Returns the status of waitpid.
int ProcessPool::take_leave(Worker& worker) {
  int status = 0;
  ::close(worker.socket);
  ::waitpid(worker.process, &status, 0);
  worker.process = -1;
  worker.socket = -1;
  return status;
}

void ProcessPool::bury(Worker& worker, std::vector<Ended>& ended) {
  const int status = take_leave(worker);
  const bool was_busy = std::exchange(worker.busy, false);
  if (was_busy) ended.push_back({worker.task, Kind::failure, how_it_died(status)});
}

// Gives a free worker its next task before the last result is handled, so that the worker does not wait for the disk. A task that a worker
// has given up, because it alone was asked to stop, is begun again.
void ProcessPool::run(std::span<const std::size_t> tasks, const PoolEvents& events) {
  std::deque<std::size_t> left(tasks.begin(), tasks.end());
  bool passed_on = false;
  std::chrono::steady_clock::time_point asked;
  std::vector<Ended> ended;
  for (;;) {
    const bool stops = events.stop.is_asked();
    if (stops && !passed_on) {
      signal_all(SIGTERM);
      passed_on = true;
      asked = std::chrono::steady_clock::now();
    }
    if (passed_on && std::chrono::steady_clock::now() - asked > grace_) signal_all(SIGKILL);
    std::vector<const Worker*> begun;
    for (Worker& worker : workers_) {
      if (worker.busy || stops || left.empty()) continue;
      give(worker, left.front());
      left.pop_front();
      begun.push_back(&worker);
    }
    for (Ended& end : ended) {
      if (end.kind == Kind::result) events.finished(end.task, std::move(end.text));
      if (end.kind == Kind::failure) events.failed(end.task, end.text);
      if (end.kind == Kind::given_up) left.push_front(end.task);
    }
    ended.clear();
    for (const Worker* worker : begun)
      if (events.started) events.started(worker->task, worker->number);
    if (!listen(events, ended) && (stops || left.empty())) return;
    if (events.tick) events.tick();
  }
}

// Waits up to one tick for messages of busy workers. Returns false if no worker is busy.
bool ProcessPool::listen(const PoolEvents& events, std::vector<Ended>& ended) {
  std::vector<pollfd> sockets;
  std::vector<Worker*> polled;
  for (Worker& worker : workers_) {
    if (!worker.busy) continue;
    sockets.push_back({worker.socket, POLLIN, 0});
    polled.push_back(&worker);
  }
  if (sockets.empty()) return false;
  const int ready = ::poll(sockets.data(), sockets.size(), kTickMs);
  for (std::size_t i = 0; ready > 0 && i < sockets.size(); ++i)
    if (sockets[i].revents != 0) receive(*polled[i], events, ended);
  return true;
}

void ProcessPool::signal_all(int signal) const {
  for (const Worker& worker : workers_)
    if (worker.process >= 0) ::kill(worker.process, signal);
}

}  // namespace fl
