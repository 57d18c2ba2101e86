// Splits vectors among threads, for work whose entries are independent.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fl_core/memory/thread_pool.hpp"
#include "fl_core/ops/norms.hpp"

namespace fl {

// Calls work(first, last) for pieces that cover 0 .. n-1. Short vectors are one piece, on the caller's thread.
template <class Work>
void for_each_piece(ThreadPool& pool, std::size_t n, const Work& work) {
  constexpr std::size_t kPiece = 32768;  // entries: 256 KiB of double
  if (n <= kPiece || pool.num_threads() == 1) {
    if (n > 0) work(std::size_t{0}, n);
    return;
  }
  pool.parallel_for(static_cast<std::uint32_t>((n + kPiece - 1) / kPiece), [&work, n](std::uint32_t piece, const Exec&) {
    const std::size_t first = piece * kPiece;
    work(first, std::min(n, first + kPiece));
  });
}

// Returns whether no entry of v is NaN or infinite.
template <class T>
[[nodiscard]] bool is_finite(ThreadPool& pool, std::span<const T> v) {
  std::atomic<bool> finite{true};
  for_each_piece(pool, v.size(), [&](std::size_t first, std::size_t last) {
    if (!is_finite(v.data() + first, last - first)) finite = false;
  });
  return finite;
}

}  // namespace fl
