#include "scenarios/sweep/process_pool.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <map>
#include <numeric>
#include <thread>

#include "fl_core/config/error.hpp"

namespace fl {
namespace {

using testing::HasSubstr;

struct Heard {
  std::map<std::size_t, std::string> results, failures;
  std::vector<std::size_t> started, reports;
  int signal = 0;
};

PoolEvents events_of(Heard& heard) {
  PoolEvents events;
  events.started = [&](std::size_t task, int) { heard.started.push_back(task); };
  events.progress = [&](std::size_t task, std::string_view) { heard.reports.push_back(task); };
  events.finished = [&](std::size_t task, std::string result) { heard.results[task] = std::move(result); };
  events.failed = [&](std::size_t task, const std::string& reason) { heard.failures[task] = reason; };
  events.signal = [&] { return heard.signal; };
  return events;
}

std::vector<std::size_t> first(std::size_t count) {
  std::vector<std::size_t> tasks(count);
  std::iota(tasks.begin(), tasks.end(), std::size_t{0});
  return tasks;
}

TEST(ProcessPool, RunsEveryTaskOnceAndSharesWhatWasThereBefore) {
  const std::string before(1'000'000, 'x');  // larger than any socket's buffer
  Heard heard;
  ProcessPool pool(3, [&](std::size_t task, const Report& report) {
    report("at work");
    return std::to_string(task) + before;
  });
  pool.run(first(20), events_of(heard));
  EXPECT_EQ(heard.started, first(20));
  EXPECT_FALSE(heard.reports.empty());
  ASSERT_EQ(heard.results.size(), 20u);
  for (const auto& [task, result] : heard.results) EXPECT_EQ(result, std::to_string(task) + before);
  EXPECT_TRUE(heard.failures.empty());
}

TEST(ProcessPool, TellsWhatWasThrownAndGoesOn) {
  Heard heard;
  ProcessPool pool(2, [](std::size_t task, const Report&) -> std::string {
    if (task == 3) throw Error("three is too many");
    if (task == 5) throw 5;
    return "ok";
  });
  pool.run(first(8), events_of(heard));
  EXPECT_EQ(heard.results.size(), 6u);
  EXPECT_EQ(heard.failures.at(3), "three is too many");
  EXPECT_THAT(heard.failures.at(5), HasSubstr("no std::exception"));
}

TEST(ProcessPool, AWorkerThatDiesCostsItsTaskAlone) {
  Heard heard;
  ProcessPool pool(2, [](std::size_t task, const Report&) -> std::string {
    if (task == 2) ::raise(SIGKILL);
    if (task == 4) ::_exit(7);
    if (task == 6) ::raise(SIGALRM);  // no sanitizer catches it
    return "ok";
  });
  pool.run(first(12), events_of(heard));
  EXPECT_EQ(heard.results.size(), 9u);
  EXPECT_THAT(heard.failures.at(2), HasSubstr("killed by signal 9"));
  EXPECT_THAT(heard.failures.at(4), HasSubstr("exit code 7"));
  EXPECT_THAT(heard.failures.at(6), HasSubstr("killed by signal 14"));
}

TEST(ProcessPool, AskedToStopItFinishesWhatItHasBegun) {
  Heard heard;
  ProcessPool pool(2, [](std::size_t task, const Report& report) -> std::string {
    report("begun");
    while (!ProcessPool::asked_to_stop()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return "stopped " + std::to_string(task);
  });
  PoolEvents events = events_of(heard);
  events.tick = [&] {
    if (heard.reports.size() == 2) heard.signal = SIGINT;
  };
  pool.run(first(9), events);
  EXPECT_EQ(heard.results, (std::map<std::size_t, std::string>{{0, "stopped 0"}, {1, "stopped 1"}}));
  EXPECT_TRUE(heard.failures.empty());
}

TEST(ProcessPool, AskedToStopItEndsWorkersThatDoNot) {
  Heard heard;
  ProcessPool pool(
      2,
      [](std::size_t task, const Report& report) -> std::string {
        report("begun");
        while (task < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return "done";
      },
      std::chrono::milliseconds(50));
  PoolEvents events = events_of(heard);
  events.tick = [&] {
    if (heard.reports.size() == 2) heard.signal = SIGTERM;
  };
  pool.run(first(9), events);
  EXPECT_EQ(heard.started, first(2));
  EXPECT_EQ(heard.failures.size(), 2u);
  for (const auto& [task, reason] : heard.failures) EXPECT_THAT(reason, HasSubstr("killed by signal 9")) << task;
}

TEST(ProcessPool, AWorkerThatIsTerminatedFinishesItsTaskAndTakesNoOther) {
  Heard heard;
  ProcessPool pool(1, [](std::size_t task, const Report&) -> std::string {
    if (task == 1) ::raise(SIGTERM);
    return std::to_string(::getpid()) + (ProcessPool::asked_to_stop() ? " asked" : "");
  });
  pool.run(first(4), events_of(heard));
  ASSERT_EQ(heard.results.size(), 4u);
  EXPECT_EQ(heard.results[1], heard.results[0] + " asked");
  EXPECT_NE(heard.results[2], heard.results[0]) << "the same process";
  EXPECT_EQ(heard.results[3], heard.results[2]);
}

TEST(ProcessPool, LeavesNoProcessBehind) {
  Heard heard;
  {
    ProcessPool pool(4, [](std::size_t, const Report&) { return std::to_string(::getpid()); });
    pool.run(first(8), events_of(heard));
  }
  for (const auto& [_, process] : heard.results) EXPECT_NE(::kill(std::stoi(process), 0), 0) << process;
}

}  // namespace
}  // namespace fl
