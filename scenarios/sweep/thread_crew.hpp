// Runs tasks in threads of this process, for runs that share a GPU. Separate processes would take turns on the GPU.
//
// Events reach the thread that called run(), one at a time, as those of ProcessPool do.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "scenarios/sweep/process_pool.hpp"

namespace fl {

class FL_API ThreadCrew {
 public:
  // Computes the result of a task, in worker 0 .. workers-1. An exception becomes the task's failure.
  using Work = std::function<std::string(std::size_t task, int worker, const Report& report)>;
  ThreadCrew(int workers, Work work) : workers_(workers), work_(std::move(work)) {}

  // Returns whether the crew was asked to stop. Tasks may finish first.
  [[nodiscard]] bool asked_to_stop() const { return stopping_.load(); }
  // Runs each task once, in this order as workers become free. No task starts after a request to stop. An exception from an event ends the
  // work and is rethrown.
  void run(std::span<const std::size_t> tasks, const PoolEvents& events);

 private:
  int workers_;
  Work work_;
  std::atomic<bool> stopping_{false};
};

}  // namespace fl
