#include "scenarios/sweep/process_pool.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <map>
#include <numeric>
#include <thread>

#include "fl_core/config/error.hpp"
#include "fl_core/config/stopping.hpp"

namespace fl {
namespace {

using testing::HasSubstr;

struct Observed {
  std::map<std::size_t, std::string> results, failures;
  std::vector<std::size_t> started, reports;
  StopRequest stop;
};

PoolEvents events_of(Observed& observed) {
  PoolEvents events;
  events.started = [&](std::size_t task, int) { observed.started.push_back(task); };
  events.progress = [&](std::size_t task, std::string_view) { observed.reports.push_back(task); };
  events.finished = [&](std::size_t task, std::string result) { observed.results[task] = std::move(result); };
  events.failed = [&](std::size_t task, const std::string& reason) { observed.failures[task] = reason; };
  events.stop = observed.stop.token();
  return events;
}

std::vector<std::size_t> first(std::size_t count) {
  std::vector<std::size_t> tasks(count);
  std::iota(tasks.begin(), tasks.end(), std::size_t{0});
  return tasks;
}

TEST(ProcessPool, RunsEveryTaskOnceAndSharesWhatWasThereBefore) {
  const std::string before(1'000'000, 'x');  // larger than any socket's buffer
  Observed observed;
  ProcessPool pool(3, [&](std::size_t task, const Report& report) {
    report("at work");
    return std::to_string(task) + before;
  });
  pool.run(first(20), events_of(observed));
  EXPECT_EQ(observed.started, first(20));
  EXPECT_FALSE(observed.reports.empty());
  ASSERT_EQ(observed.results.size(), 20u);
  for (const auto& [task, result] : observed.results) EXPECT_EQ(result, std::to_string(task) + before);
  EXPECT_TRUE(observed.failures.empty());
}

TEST(ProcessPool, TellsWhatWasThrownAndGoesOn) {
  Observed observed;
  ProcessPool pool(2, [](std::size_t task, const Report&) -> std::string {
    if (task == 3) throw Error("three is too many");
    if (task == 5) throw 5;
    return "ok";
  });
  pool.run(first(8), events_of(observed));
  EXPECT_EQ(observed.results.size(), 6u);
  EXPECT_EQ(observed.failures.at(3), "three is too many");
  EXPECT_THAT(observed.failures.at(5), HasSubstr("no std::exception"));
}

TEST(ProcessPool, AWorkerThatDiesCostsItsTaskAlone) {
  Observed observed;
  ProcessPool pool(2, [](std::size_t task, const Report&) -> std::string {
    if (task == 2) ::raise(SIGKILL);
    if (task == 4) ::_exit(7);
    if (task == 6) ::raise(SIGALRM);  // no sanitizer catches it
    return "ok";
  });
  pool.run(first(12), events_of(observed));
  EXPECT_EQ(observed.results.size(), 9u);
  EXPECT_THAT(observed.failures.at(2), HasSubstr("killed by signal 9"));
  EXPECT_THAT(observed.failures.at(4), HasSubstr("exit code 7"));
  EXPECT_THAT(observed.failures.at(6), HasSubstr("killed by signal 14"));
}

TEST(ProcessPool, AskedToStopItFinishesWhatItHasBegun) {
  Observed observed;
  ProcessPool pool(2, [](std::size_t task, const Report& report) -> std::string {
    report("begun");
    while (!ProcessPool::asked_to_stop()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return "stopped " + std::to_string(task);
  });
  PoolEvents events = events_of(observed);
  events.tick = [&] {
    if (observed.reports.size() == 2) observed.stop.ask();
  };
  pool.run(first(9), events);
  EXPECT_EQ(observed.results, (std::map<std::size_t, std::string>{{0, "stopped 0"}, {1, "stopped 1"}}));
  EXPECT_TRUE(observed.failures.empty());
}

TEST(ProcessPool, AskedToStopItEndsWorkersThatDoNot) {
  Observed observed;
  ProcessPool pool(
      2,
      [](std::size_t task, const Report& report) -> std::string {
        report("begun");
        if (task < 2) std::this_thread::sleep_for(std::chrono::hours(1));
        return "done";
      },
      std::chrono::milliseconds(50));
  PoolEvents events = events_of(observed);
  events.tick = [&] {
    if (observed.reports.size() == 2) observed.stop.ask();
  };
  pool.run(first(9), events);
  EXPECT_EQ(observed.started, first(2));
  EXPECT_EQ(observed.failures.size(), 2u);
  for (const auto& [task, reason] : observed.failures) EXPECT_THAT(reason, HasSubstr("killed by signal 9")) << task;
}

TEST(ProcessPool, AWorkerThatIsTerminatedFinishesItsTaskAndTakesNoOther) {
  Observed observed;
  ProcessPool pool(1, [](std::size_t task, const Report&) -> std::string {
    if (task == 1) ::raise(SIGTERM);
    return std::to_string(::getpid()) + (ProcessPool::asked_to_stop() ? " asked" : "");
  });
  pool.run(first(4), events_of(observed));
  ASSERT_EQ(observed.results.size(), 4u);
  EXPECT_EQ(observed.results[1], observed.results[0] + " asked");
  EXPECT_NE(observed.results[2], observed.results[0]) << "the same process";
  EXPECT_EQ(observed.results[3], observed.results[2]);
}

TEST(ProcessPool, ATaskThatATerminatedWorkerGivesUpIsBegunAgain) {
  Observed observed;
  // Task 1 is given up by the worker that did task 0.
  ProcessPool pool(1, [did_task_0 = false](std::size_t task, const Report&) mutable -> std::string {
    if (task == 1 && did_task_0) {
      ::raise(SIGTERM);
      throw Stopped();
    }
    did_task_0 = task == 0;
    return std::to_string(::getpid());
  });
  pool.run(first(3), events_of(observed));
  EXPECT_THAT(observed.started, testing::ElementsAre(0, 1, 2, 1));
  EXPECT_TRUE(observed.failures.empty());
  ASSERT_EQ(observed.results.size(), 3u);
  EXPECT_NE(observed.results[1], observed.results[0]) << "the same process";
}

TEST(ProcessPool, LeavesNoProcessBehind) {
  Observed observed;
  {
    ProcessPool pool(4, [](std::size_t, const Report&) { return std::to_string(::getpid()); });
    pool.run(first(8), events_of(observed));
  }
  for (const auto& [_, process] : observed.results) EXPECT_NE(::kill(std::stoi(process), 0), 0) << process;
}

}  // namespace
}  // namespace fl
