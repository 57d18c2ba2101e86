#include "fl_core/memory/thread_pool.hpp"

namespace fl {

namespace {
// About 20 microseconds of polling before a worker sleeps.
constexpr int kSpins = 4000;

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

void ThreadPool::run(std::uint32_t num_pieces, Call call, void* work) {
  if (threads_.empty() || num_pieces <= 1) {
    for (std::uint32_t piece = 0; piece < num_pieces; ++piece) call(work, piece, execs_[0]);
    return;
  }
  call_ = call;
  work_ = work;
  failure_ = nullptr;
  next_ = 0;
  num_pieces_ = num_pieces;
  busy_ = static_cast<int>(threads_.size());
  {
    const std::lock_guard lock(mutex_);
    generation_.fetch_add(1, std::memory_order_release);
  }
  wake_.notify_all();
  take_pieces(execs_[0]);
  while (busy_.load(std::memory_order_acquire) > 0) pause_cpu();
  if (failure_) std::rethrow_exception(failure_);
}

void ThreadPool::take_pieces(const Exec& exec) {
  for (std::uint32_t piece = next_++; piece < num_pieces_; piece = next_++) {
    try {
      call_(work_, piece, exec);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }
}

void ThreadPool::worker(std::size_t index) {
  std::uint64_t seen = 0;
  for (;;) {
    for (int spin = 0; spin < kSpins && generation_.load(std::memory_order_acquire) == seen; ++spin) pause_cpu();
    if (generation_.load(std::memory_order_acquire) == seen) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return generation_.load(std::memory_order_acquire) != seen; });
    }
    seen = generation_.load(std::memory_order_acquire);
    if (stop_) return;
    take_pieces(execs_[index]);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace fl
