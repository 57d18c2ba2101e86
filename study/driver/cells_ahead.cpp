#include "study/driver/cells_ahead.hpp"

#include <algorithm>
#include <utility>

#include "fl_core/config/stopping.hpp"
#include "scenarios/results/measured_row.hpp"

namespace fl {

CellShare share_of_cells(int threads, std::size_t pending, std::uint64_t largest_bytes) {
  constexpr std::uint64_t kSmall = 64 << 20;  // bytes of parts and state
  if (threads < 2 || pending < 2 || largest_bytes > kSmall) return {.cells = 1, .threads = threads};
  const int cells = static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(threads), pending));
  return {.cells = cells, .threads = threads / cells};
}

CellsAhead::CellsAhead(std::vector<std::size_t> cells, int workers, Play play)
    : cells_(std::move(cells)), workers_(workers), play_(std::move(play)), tasks_(cells_.size()) {
  for (std::size_t place = 0; place < cells_.size(); ++place) places_[cells_[place]] = place;
  for (int worker = 0; worker < workers_; ++worker)
    threads_.emplace_back([this, worker, scope = StopScope::current()] {
      const StopScope::Helper in_scope(scope);
      work(worker);
    });
}

CellsAhead::~CellsAhead() {
  stop();
  for (std::thread& thread : threads_) thread.join();
}

void CellsAhead::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

bool CellsAhead::has_begun(std::size_t cell) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(cell);
  return place != places_.end() && tasks_[place->second].has_begun;
}

void CellsAhead::work(int worker) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const std::size_t most_ahead = kAhead * static_cast<std::size_t>(workers_);
    changed_.wait(lock, [&] { return stopping_ || next_ == cells_.size() || next_ < taken_ + most_ahead; });
    if (stopping_ || next_ == cells_.size()) return;
    const std::size_t place = next_++;
    Task& task = tasks_[place];
    task.has_begun = true;
    lock.unlock();
    const auto keep_row = [&](const RoundRow& row) {
      const std::lock_guard row_lock(mutex_);
      if (!task.rows.empty() && !is_measured(task.rows.back())) task.rows.pop_back();  // only progress would show it
      task.rows.push_back(row);
      if (place == taken_) changed_.notify_all();
      return !stopping_;
    };
    Played played;
    std::exception_ptr failure;
    try {
      played = play_(cells_[place], worker, keep_row);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    task.played = std::move(played);
    task.failure = failure;
    task.has_ended = true;
    changed_.notify_all();
  }
}

CellsAhead::Played CellsAhead::take(std::size_t cell, const RoundCallback& show) {
  std::unique_lock lock(mutex_);
  Task& task = tasks_[places_.at(cell)];
  taken_ = places_.at(cell);
  changed_.notify_all();
  for (bool goes_on = true; !task.has_ended || !task.rows.empty();) {
    changed_.wait(lock, [&task] { return task.has_ended || !task.rows.empty(); });
    const std::vector<RoundRow> rows = std::exchange(task.rows, {});
    lock.unlock();
    for (const RoundRow& row : rows) goes_on = show(row) && goes_on;
    if (!goes_on) stop();
    lock.lock();
  }
  if (task.failure) std::rethrow_exception(task.failure);
  return std::move(task.played);
}

}  // namespace fl
