#include "fl_core/memory/thread_pool.hpp"

#include <algorithm>
#include <chrono>

#include "fl_core/config/stopping.hpp"

namespace fl {

namespace {
// About 20 microseconds of polling before a worker sleeps.
constexpr int kSpins = 4000;
// Waking workers and waiting for them takes about this long.
constexpr double kWakeSeconds = 15e-6;

double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}
}  // namespace

ThreadPool::ThreadPool(int num_threads) {
  const auto count = static_cast<std::size_t>(num_threads < 1 ? 1 : num_threads);
  for (std::size_t i = 0; i < count; ++i) {
    workspaces_.push_back(std::make_unique<Workspace>());
    execs_.push_back({.device = Device::cpu, .stream = nullptr, .workspace = workspaces_.back().get(), .thread = static_cast<int>(i)});
  }
  for (std::size_t i = 1; i < count; ++i) threads_.emplace_back([this, i] { worker(i); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    ++generation_;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

ThreadPool::Habit& ThreadPool::habit_of(Call call) {
  const auto found = std::find_if(habits_.begin(), habits_.end(), [call](const Habit& habit) { return habit.call == call; });
  return found != habits_.end() ? *found : habits_.emplace_back(Habit{.call = call});
}

void ThreadPool::run(std::uint32_t num_pieces, Call call, void* work) {
  if (threads_.empty() || num_pieces <= 1) {
    for (std::uint32_t piece = 0; piece < num_pieces; ++piece) {
      check_for_stop();
      call(work, piece, execs_[0]);
    }
    return;
  }
  Habit& habit = habit_of(call);
  if (habit.seconds == 0 || habit.seconds * num_pieces > kWakeSeconds) return run_with_workers(num_pieces, call, work);
  const double begin = seconds_now(), before = habit.seconds;
  for (std::uint32_t piece = 0; piece < num_pieces; ++piece) call(work, piece, execs_[0]);
  // One slow call, such as one that another program interrupted, at most doubles the time that is remembered.
  habit_of(call).seconds = std::min((seconds_now() - begin) / num_pieces, 2 * before);
}

void ThreadPool::run_with_workers(std::uint32_t num_pieces, Call call, void* work) {
  {
    const std::lock_guard lock(mutex_);
    task_ = {Preparation::current(), call, work};
    failure_ = nullptr;
    next_ = 0;
    num_pieces_ = num_pieces;
    is_open_ = true;
    generation_.fetch_add(1, std::memory_order_release);
  }
  wake_.notify_all();
  const double begin = seconds_now();
  const std::uint32_t taken = take_pieces(execs_[0]);
  if (taken > 0) habit_of(call).seconds = (seconds_now() - begin) / taken;
  {
    const std::lock_guard lock(mutex_);
    is_open_ = false;
  }
  for (int spin = 0; busy_.load(std::memory_order_acquire) > 0; ++spin)
    if (spin < kSpins)
      pause_cpu();
    else
      std::this_thread::yield();  // a worker waits for a core
  if (failure_) std::rethrow_exception(failure_);
}

// Returns the number of pieces taken.
std::uint32_t ThreadPool::take_pieces(const Exec& exec) {
  std::uint32_t taken = 0;
  for (std::uint32_t piece = next_++; piece < num_pieces_; piece = next_++, ++taken) {
    try {
      check_for_stop();
      task_.call(task_.work, piece, exec);
    } catch (const Stopped&) {
      next_ = num_pieces_.load();  // the others end with the piece that they have
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }
  return taken;
}

void ThreadPool::worker(std::size_t index) {
  std::uint64_t seen = 0;
  for (;;) {
    for (int spin = 0; spin < kSpins && generation_.load(std::memory_order_acquire) == seen; ++spin) pause_cpu();
    if (generation_.load(std::memory_order_acquire) == seen) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return generation_.load(std::memory_order_acquire) != seen; });
    }
    {
      const std::lock_guard lock(mutex_);
      seen = generation_.load(std::memory_order_acquire);
      if (stop_) return;
      if (!is_open_) continue;  // the others were faster
      busy_.fetch_add(1, std::memory_order_relaxed);
    }
    {
      const Preparation::Helper helper(task_.preparation);
      take_pieces(execs_[index]);
    }
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace fl
