// Tests that the thread pool does every piece once whatever the number of threads, reports exceptions, and leaves small work to the caller.
#include "fl_core/memory/thread_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

namespace fl {
namespace {

TEST(ThreadPoolTest, DoesEveryPieceOnce) {
  for (const int threads : {1, 2, 3, 8, 40}) {
    ThreadPool pool(threads);
    for (std::uint32_t call = 0; call < 400; ++call) {
      const std::uint32_t num_pieces = call % 23 == 0 ? 5000 : call % 7;
      std::vector<std::atomic<int>> done(num_pieces);
      pool.parallel_for(num_pieces, [&](std::uint32_t piece, const Exec& exec) {
        ASSERT_LT(exec.thread, threads);
        for (int spin = 0; spin < 200 * static_cast<int>(piece % 3); ++spin) std::atomic_signal_fence(std::memory_order_seq_cst);
        ++done[piece];
      });
      for (const auto& count : done) ASSERT_EQ(count, 1);
    }
  }
}

TEST(ThreadPoolTest, RethrowsAnExceptionAfterTheOtherPieces) {
  ThreadPool pool(4);
  for (int call = 0; call < 50; ++call) {
    std::atomic<int> done{0};
    EXPECT_THROW(pool.parallel_for(20,
                                   [&](std::uint32_t piece, const Exec&) {
                                     std::this_thread::sleep_for(std::chrono::microseconds(20));
                                     if (piece == 7) throw std::runtime_error("piece 7");
                                     ++done;
                                   }),
                 std::runtime_error);
    EXPECT_EQ(done, 19);
  }
}

TEST(ThreadPoolTest, LeavesSmallWorkToTheCaller) {
  ThreadPool pool(4);
  int alone = 0;
  for (int call = 0; call < 400; ++call) {
    std::atomic<int> by_others{0};
    pool.parallel_for(8, [&](std::uint32_t, const Exec& exec) { by_others += exec.thread != 0 ? 1 : 0; });
    alone += by_others == 0 ? 1 : 0;
  }
  EXPECT_GT(alone, 300) << "a few calls find out how long a piece takes, and other programs interrupt some";
}

TEST(ThreadPoolTest, SharesLongWork) {
  ThreadPool pool(2);
  std::atomic<int> by_others{0};
  for (int call = 0; call < 20; ++call)
    pool.parallel_for(8, [&](std::uint32_t, const Exec& exec) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      by_others += exec.thread != 0 ? 1 : 0;
    });
  EXPECT_GT(by_others, 20);
}

}  // namespace
}  // namespace fl
