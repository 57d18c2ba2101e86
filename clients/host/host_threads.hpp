// Work on a block that lies on a GPU, by the CPU's threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "clients/host/device_views.hpp"
#include "fl_core/memory/thread_pool.hpp"
#include "fl_core/message/parameter_kinds.hpp"
#include "fl_core/ops/row_moves.hpp"
#include "fl_core/round/round_views.hpp"

namespace fl {

// Calls work(exec of a thread, clients) for the whole block. If the block is on a GPU, the CPU's threads share it.
template <class T, class Work>
void on_host(ThreadPool& pool, const Exec& exec, const ClientBlock<T>& block, const Work& work) {
  if (exec.device == Device::cpu) {
    work(exec, block);
    return;
  }
  const std::uint32_t most = 4 * static_cast<std::uint32_t>(pool.num_threads()), size = (block.K + most - 1) / most;
  pool.parallel_for((block.K + size - 1) / size, [&](std::uint32_t part, const Exec& host) {
    work(host, block.slice(part * size, std::min(size, block.K - part * size)));
  });
}

// Sets the entries of these ranges in all rows to 0. The exec can follow pointers to the rows, or these lie on its device.
template <class T>
void clear_ranges_of(const Exec& exec, std::span<const ParameterRange> ranges, const BatchView<T>& rows) {
  Workspace::Frame frame(*exec.workspace);
  const BatchView<T> there = reachable(exec, rows, frame);
  for (const ParameterRange& range : ranges) clear_entries(exec, there, range.begin, range.end);
}

}  // namespace fl
