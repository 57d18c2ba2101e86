// Tests that long work before the first round is given up when the process is asked to stop, and told of while it takes.
#include "fl_core/config/stopping.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "fl_core/memory/thread_pool.hpp"

namespace fl {
namespace {

std::atomic<bool> g_asked{false};
std::mutex g_mutex;
std::vector<std::string> g_told;

class Stopping : public testing::Test {
 protected:
  void SetUp() override {
    g_asked = false;
    g_told.clear();
    set_stop_source({.is_asked = [] { return g_asked.load(); },
                     .tell =
                         [](const std::string& text) {
                           const std::lock_guard lock(g_mutex);
                           g_told.push_back(text);
                         }});
  }
  void TearDown() override { set_stop_source({}); }
};

TEST_F(Stopping, OnlyPreparationsAreGivenUp) {
  g_asked = true;
  EXPECT_NO_THROW(check_for_stop()) << "rounds are played to their end";
  {
    const Preparation outer("outer");
    EXPECT_THROW(check_for_stop(), Stopped);
    {
      const Preparation inner("inner");
      EXPECT_THROW(check_for_stop(), Stopped);
    }
    EXPECT_THROW(check_for_stop(), Stopped) << "the outer one goes on";
    std::thread([] { EXPECT_NO_THROW(check_for_stop()) << "another thread prepares nothing"; }).join();
  }
  EXPECT_NO_THROW(check_for_stop());
}

TEST_F(Stopping, NobodyIsGivenUpUnlessSomebodyAsks) {
  const Preparation preparation("something is prepared");
  EXPECT_NO_THROW(check_for_stop());
  set_stop_source({});
  g_asked = true;
  EXPECT_NO_THROW(check_for_stop());
}

// The pieces that threads have begun are ended, and no other one begins.
TEST_F(Stopping, WorkOfAPoolEndsWithThePiecesInHand) {
  for (const int threads : {1, 2, 4}) {
    g_asked = false;
    ThreadPool pool(threads);
    constexpr std::uint32_t kPieces = 100'000;
    std::atomic<std::uint32_t> done = 0;
    auto work = [&](std::uint32_t, const Exec&) {
      if (++done == 50) g_asked = true;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    };
    {
      const Preparation preparation("pieces are worked on");
      EXPECT_THROW(pool.parallel_for(kPieces, work), Stopped);
    }
    EXPECT_LT(done, kPieces / 2);
    done = 0;
    pool.parallel_for(100, [&](std::uint32_t, const Exec&) { ++done; });
    EXPECT_EQ(done, 100U) << "the pool can be used again, and rounds are not given up";
  }
}

// The last thread may have all that is left for a long time: it asks as well.
TEST_F(Stopping, APieceOfAnyThreadIsGivenUp) {
  ThreadPool pool(3);
  const auto caller = std::this_thread::get_id();
  const Preparation preparation("pieces are worked on");
  EXPECT_THROW(pool.parallel_for(3,
                                 [&](std::uint32_t, const Exec&) {
                                   if (std::this_thread::get_id() == caller) {
                                     std::this_thread::sleep_for(std::chrono::milliseconds(20));
                                     g_asked = true;
                                     return;
                                   }
                                   for (;;) check_for_stop();
                                 }),
               Stopped);
}

TEST_F(Stopping, LongWorkIsToldOfWithItsInnermostName) {
  const Preparation outer("the run is prepared");
  const Preparation inner("a minimum is looked for");
  const auto begun = std::chrono::steady_clock::now();
  int step = 0;
  while (g_told.empty() && std::chrono::steady_clock::now() - begun < std::chrono::seconds(60)) {
    check_for_stop([&step] { return "step " + std::to_string(++step); });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_EQ(g_told.size(), 1U);
  EXPECT_THAT(g_told[0], testing::StartsWith("a minimum is looked for: step 1 ("));
  check_for_stop();
  EXPECT_EQ(g_told.size(), 1U) << "not at each step";
}

}  // namespace
}  // namespace fl
