// Tasks in forked processes: what the parent loaded is shared with all of them, and a worker that dies costs its task and nothing else.
//
// The parent has one thread and talks to each worker over a socket: a task number one way; progress, a result or a failure the other.
// Fork happens in start() and whenever a worker has died, so no thread and no CUDA context may exist in the parent until run() returns.
// Workers end when the parent does, however it ends. Asked to stop, they may finish what they are at.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fl_core/config/device.hpp"

namespace fl {

// What a worker says while it works; seldom enough to cost nothing (a report within a tenth of a second of the last one is dropped).
using Report = std::function<void(std::string_view)>;

struct FL_API PoolEvents {
  std::function<void(std::size_t task, int worker)> started;
  std::function<void(std::size_t task, std::string_view report)> progress;
  std::function<void(std::size_t task, std::string result)> finished;
  std::function<void(std::size_t task, const std::string& reason)> failed;  // it threw, or its worker died
  std::function<void()> tick;                                               // ten times a second or more often
  std::function<int()> signal;                                              // the signal that asks for the end, 0 = none
};

class FL_API ProcessPool {
 public:
  static constexpr std::chrono::seconds kGrace{8};

  // Runs in a worker: the result of a task. What it throws becomes the task's failure.
  using Work = std::function<std::string(std::size_t task, const Report& report)>;

  // `grace`: from being asked to stop to being killed.
  ProcessPool(int workers, Work work, std::chrono::milliseconds grace = kGrace);
  ~ProcessPool();  // kills what still works
  ProcessPool(const ProcessPool&) = delete;
  ProcessPool& operator=(const ProcessPool&) = delete;

  // In a worker: whether its parent, or somebody else with SIGTERM, asked it to stop. It may finish its task, another worker takes the
  // next one. Ctrl-C on the terminal reaches the parent alone, which passes it on.
  [[nodiscard]] static bool asked_to_stop();

  // Each task once, in this order as workers become free. When a signal asks for the end it is passed on to the workers, which may still
  // finish what they do; no new task is begun. Throws Error when no process can be made.
  void run(std::span<const std::size_t> tasks, const PoolEvents& events);

 private:
  struct Worker;
  struct Ended;
  void start(Worker& worker);
  void give(Worker& worker, std::size_t task);
  [[nodiscard]] bool listen(const PoolEvents& events, std::vector<Ended>& ended);
  void receive(Worker& worker, const PoolEvents& events, std::vector<Ended>& ended);
  void bury(Worker& worker, std::vector<Ended>& ended);
  static int take_leave(Worker& worker);
  void signal_all(int signal) const;
  [[noreturn]] void serve(int socket);

  Work work_;
  std::chrono::milliseconds grace_;
  std::vector<Worker> workers_;
};

}  // namespace fl
