// Worker threads that execute numbered pieces of work. Results never depend on the assignment of pieces to threads.
//
// Workers spin briefly between rounds (a round may last microseconds) and then sleep. Work that takes less time than waking them is done by
// the caller alone: the pool remembers how long a piece of each kind of work took. The caller never waits for a worker that has not begun,
// so that more threads than cores cost little.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "fl_core/memory/exec.hpp"

namespace fl {

class Preparation;

class FL_API ThreadPool {
 public:
  explicit ThreadPool(int num_threads);  // 1 = no workers: everything runs on the caller
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int num_threads() const { return static_cast<int>(execs_.size()); }
  [[nodiscard]] const Exec& exec(int thread) const { return execs_[static_cast<std::size_t>(thread)]; }

  // Calls work(piece, exec) once for every piece 0 .. num_pieces-1 and returns when all are done. Rethrows the first exception.
  template <class F>
  void parallel_for(std::uint32_t num_pieces, F&& work) {
    auto call = [](void* f, std::uint32_t piece, const Exec& exec) { (*static_cast<std::remove_reference_t<F>*>(f))(piece, exec); };
    run(num_pieces, call, &work);
  }

 private:
  using Call = void (*)(void*, std::uint32_t, const Exec&);
  // The time that pieces of one kind of work (a call) took lately.
  struct Habit {
    Call call = nullptr;
    double seconds = 0;  // of a piece
  };
  void run(std::uint32_t num_pieces, Call call, void* work);
  void run_with_workers(std::uint32_t num_pieces, Call call, void* work);
  std::uint32_t take_pieces(const Exec& exec);
  void worker(std::size_t index);
  [[nodiscard]] Habit& habit_of(Call call);

  std::vector<std::unique_ptr<Workspace>> workspaces_;
  std::vector<Exec> execs_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<bool> stop_{false};
  std::atomic<std::uint32_t> next_{0}, num_pieces_{0};
  std::atomic<int> busy_{0};  // workers that take pieces
  bool is_open_ = false;      // whether workers may begin to take pieces; under mutex_
  std::vector<Habit> habits_;
  struct Task {
    Preparation* preparation = nullptr;  // of the caller
    Call call = nullptr;
    void* work = nullptr;
  } task_;
  std::exception_ptr failure_;
};

}  // namespace fl
