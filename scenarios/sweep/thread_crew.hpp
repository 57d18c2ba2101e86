// Tasks in threads of this process: for runs that share a GPU, which processes would take in turns.
//
// Events come to the thread that called run(), one at a time, as ProcessPool's do.
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
  // The result of a task, by worker 0 .. workers-1. What it throws becomes the task's failure.
  using Work = std::function<std::string(std::size_t task, int worker, const Report& report)>;
  ThreadCrew(int workers, Work work) : workers_(workers), work_(std::move(work)) {}

  // Whether a signal asked for the end: tasks may finish what they are at.
  [[nodiscard]] bool asked_to_stop() const { return stopping_.load(); }
  // Each task once, in this order as workers become free; none is begun after a signal. What an event throws ends the work and is passed
  // on.
  void run(std::span<const std::size_t> tasks, const PoolEvents& events);

 private:
  int workers_;
  Work work_;
  std::atomic<bool> stopping_{false};
};

}  // namespace fl
