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

// Two studies of one process stop apart, in their threads and in the threads of their pools; the program stops neither.
TEST_F(Stopping, AScopeIsAskedInThePlaceOfTheProgram) {
  g_asked = true;
  StopRequest one, other;
  const auto is_stopped_in = [](const StopRequest& request) {
    bool is_stopped = false;
    std::thread([&] {
      const StopScope scope(request.token());
      ThreadPool pool(2);
      const Preparation preparation("something is prepared");
      try {
        pool.parallel_for(64, [](std::uint32_t, const Exec&) { check_for_stop(); });
      } catch (const Stopped&) {
        is_stopped = true;
      }
    }).join();
    return is_stopped;
  };
  EXPECT_FALSE(is_stopped_in(one));
  one.ask();
  EXPECT_TRUE(is_stopped_in(one));
  EXPECT_FALSE(is_stopped_in(other));
  const StopScope scope(other.token());
  std::thread([outer = StopScope::current()] {
    const Preparation of_the_program("nobody's study");
    EXPECT_THROW(check_for_stop(), Stopped);
    const StopScope::Helper helper(outer);
    EXPECT_THROW(check_for_stop(), Stopped) << "a preparation keeps the scope in which it began";
  }).join();
  std::thread([outer = StopScope::current()] {
    const StopScope::Helper helper(outer);
    const Preparation of_the_study("a helper's work");
    EXPECT_NO_THROW(check_for_stop());
  }).join();
}

TEST_F(Stopping, AScopeHearsOfItsLongWorkAlone) {
  StopRequest never;
  std::vector<std::string> heard;
  const StopScope scope(never.token(), [&heard](const std::string& text) { heard.push_back(text); });
  const Preparation preparation("a minimum is looked for");
  const auto begun = std::chrono::steady_clock::now();
  while (heard.empty() && std::chrono::steady_clock::now() - begun < std::chrono::seconds(60)) {
    check_for_stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(heard.size(), 1U);
  EXPECT_TRUE(g_told.empty());
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
