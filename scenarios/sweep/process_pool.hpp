// Runs tasks in forked processes. The workers share the data that the parent loaded, and a worker that dies loses only its task.
//
// The parent has one thread and communicates with each worker over a socket: it sends task numbers and receives progress, results and
// failures. The pool forks in start() and whenever a worker has died, so no thread and no CUDA context may exist in the parent until run()
// returns. Workers end when the parent ends, for whatever reason. When asked to stop, a worker may finish its current task first.
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
#include "fl_core/config/stop_token.hpp"

namespace fl {

// Sends a progress report from a worker. Reports are cheap: one within a tenth of a second of the last one is dropped.
using Report = std::function<void(std::string_view)>;

struct FL_API PoolEvents {
  std::function<void(std::size_t task, int worker)> started;
  std::function<void(std::size_t task, std::string_view report)> progress;
  std::function<void(std::size_t task, std::string result)> finished;
  std::function<void(std::size_t task, const std::string& reason)> failed;  // the task threw, or its worker died
  std::function<void()> tick;                                               // called at least ten times a second
  StopToken stop{};                                                         // asks to stop
};

class FL_API ProcessPool {
 public:
  static constexpr std::chrono::seconds kGrace{8};

  // Runs in a worker and returns the result of a task. An exception becomes the task's failure.
  using Work = std::function<std::string(std::size_t task, const Report& report)>;

  // `grace` is the time between the request to stop and the kill.
  ProcessPool(int workers, Work work, std::chrono::milliseconds grace = kGrace);
  ~ProcessPool();  // kills workers that are still running
  ProcessPool(const ProcessPool&) = delete;
  ProcessPool& operator=(const ProcessPool&) = delete;

  // Called in a worker. Returns whether its parent, or another process with SIGTERM, asked it to stop. The worker may finish its task;
  // another worker takes the next one. Ctrl-C on the terminal reaches only the parent, which passes it on.
  [[nodiscard]] static bool asked_to_stop();

  // Runs each task once, in this order as workers become free. A request to stop is passed on to the workers, which may finish
  // their current tasks; no new task starts. Throws Error if a process cannot be created.
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
