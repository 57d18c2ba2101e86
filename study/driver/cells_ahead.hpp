// Plays small cells of `fedbits run` ahead of their turn, several at a time in threads of this process. The command takes their rounds and
// results in the order of the cells, so that its output and its store are those of one cell after another.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "fl_core/config/device.hpp"
#include "fl_core/round/round_times.hpp"
#include "scenarios/experiment/experiment.hpp"

namespace fl {

// The number of cells that run at a time, and the number of threads of each.
struct CellShare {
  int cells = 1, threads = 1;
};

// Returns the share of `threads` threads for `pending` cells. The largest cell needs `largest_bytes` beside the data. Cells are played
// at the same time if they are small; large ones profit from the caches that one cell has to itself.
[[nodiscard]] FL_API CellShare share_of_cells(int threads, std::size_t pending, std::uint64_t largest_bytes);

class FL_API CellsAhead {
 public:
  struct Played {
    RunResult result;
    RoundTimes times;
  };
  // Plays a cell in worker 0 .. workers-1, and calls `callback` for every round, which returns whether to go on.
  using Play = std::function<Played(std::size_t cell, int worker, const RoundCallback& callback)>;

  // Starts to play `cells` in this order. At most kAhead cells per worker are ahead of the one that was taken last.
  CellsAhead(std::vector<std::size_t> cells, int workers, Play play);
  // Stops the cells that nobody has taken.
  ~CellsAhead();
  CellsAhead(const CellsAhead&) = delete;
  CellsAhead& operator=(const CellsAhead&) = delete;

  [[nodiscard]] bool has(std::size_t cell) const { return places_.contains(cell); }
  // Returns whether a worker has begun a cell. After stop() it begins no others.
  [[nodiscard]] bool has_begun(std::size_t cell);
  // Begins no more cells. Those that are running end as interrupted when `play` or its callback says so.
  void stop();
  // Passes the measured rounds of the next cell, and others, to `show` as they come, and returns its result, or rethrows what the cell
  // threw. The run ends as interrupted after `show` returns false. Cells must be taken in their order.
  [[nodiscard]] Played take(std::size_t cell, const RoundCallback& show);

 private:
  static constexpr std::size_t kAhead = 4;

  struct Task {
    std::vector<RoundRow> rows;  // that nobody has taken yet: measured ones and the latest
    Played played;
    std::exception_ptr failure;
    bool has_begun = false, has_ended = false;
  };
  void work(int worker);

  const std::vector<std::size_t> cells_;
  std::map<std::size_t, std::size_t> places_;  // of cells in cells_
  const int workers_;
  const Play play_;
  std::mutex mutex_;                 // of what follows
  std::condition_variable changed_;  // a row has come, a cell has ended, or one was taken
  std::vector<Task> tasks_;
  std::size_t next_ = 0, taken_ = 0;  // cells that were begun; that were taken
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

}  // namespace fl
