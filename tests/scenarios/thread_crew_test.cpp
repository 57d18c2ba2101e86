// Tests tasks in threads: each runs once, events are on the caller's thread, failures are reported, and a stop waits for running tasks.
#include "scenarios/sweep/thread_crew.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "fl_core/config/stopping.hpp"

namespace fl {
namespace {

std::vector<std::size_t> first(std::size_t count) {
  std::vector<std::size_t> tasks(count);
  std::iota(tasks.begin(), tasks.end(), std::size_t{0});
  return tasks;
}

TEST(ThreadCrew, DoesEveryTaskOnceAndTellsItsCaller) {
  const std::thread::id here = std::this_thread::get_id();
  ThreadCrew crew(3, [&](std::size_t task, int worker, const Report&) {
    EXPECT_NE(std::this_thread::get_id(), here);
    EXPECT_TRUE(worker >= 0 && worker < 3);
    return std::to_string(task * task);
  });
  std::map<std::size_t, std::string> results;
  std::set<std::size_t> started;
  PoolEvents events;
  events.started = [&](std::size_t task, int) {
    EXPECT_EQ(std::this_thread::get_id(), here);
    EXPECT_TRUE(started.insert(task).second);
  };
  events.finished = [&](std::size_t task, const std::string& result) {
    EXPECT_EQ(std::this_thread::get_id(), here);
    EXPECT_TRUE(started.contains(task));
    EXPECT_TRUE(results.emplace(task, result).second);
  };
  const std::vector<std::size_t> tasks = first(40);
  crew.run(tasks, events);
  ASSERT_EQ(results.size(), 40u);
  for (const auto& [task, result] : results) EXPECT_EQ(result, std::to_string(task * task));
}

TEST(ThreadCrew, AFailureIsOfItsTaskAlone) {
  ThreadCrew crew(2, [](std::size_t task, int, const Report&) -> std::string {
    if (task == 3) throw std::runtime_error("no luck");
    return "done";
  });
  std::set<std::size_t> finished;
  std::map<std::size_t, std::string> failed;
  PoolEvents events;
  events.finished = [&](std::size_t task, const std::string&) { finished.insert(task); };
  events.failed = [&](std::size_t task, const std::string& reason) { failed[task] = reason; };
  const std::vector<std::size_t> tasks = first(6);
  crew.run(tasks, events);
  EXPECT_EQ(finished.size(), 5u);
  EXPECT_EQ(failed, (std::map<std::size_t, std::string>{{3, "no luck"}}));
}

TEST(ThreadCrew, ASignalLetsTasksFinishAndBeginsNone) {
  std::atomic<int> begun{0};
  ThreadCrew* listening = nullptr;
  ThreadCrew crew(2, [&](std::size_t, int, const Report& report) {
    ++begun;
    report("at it");
    while (!listening->asked_to_stop()) std::this_thread::yield();
    return std::string("stopped");
  });
  listening = &crew;
  int stopped = 0, reports = 0;
  PoolEvents events;
  events.progress = [&](std::size_t, std::string_view text) { reports += text == "at it" ? 1 : 0; };
  events.finished = [&](std::size_t, const std::string& result) { stopped += result == "stopped" ? 1 : 0; };
  StopRequest request;
  events.stop = request.token();
  events.tick = [&] {
    if (begun == 2) request.ask();
  };
  const std::vector<std::size_t> tasks = first(9);
  crew.run(tasks, events);
  EXPECT_EQ(begun, 2);
  EXPECT_EQ(stopped, 2);
  EXPECT_EQ(reports, 2);
}

TEST(ThreadCrew, WhatAnEventThrowsEndsTheWork) {
  std::atomic<int> done{0};
  ThreadCrew crew(2, [&](std::size_t, int, const Report&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ++done;
    return std::string();
  });
  PoolEvents events;
  events.finished = [](std::size_t, const std::string&) { throw std::runtime_error("the disk is full"); };
  const std::vector<std::size_t> tasks = first(10000);
  EXPECT_THROW(crew.run(tasks, events), std::runtime_error);
  EXPECT_LT(done, 10000);
}

// The work before a first round asks the study that the tasks belong to, although other threads do it.
TEST(ThreadCrew, TasksArePreparedInTheScopeOfTheirStudy) {
  ThreadCrew crew(2, [](std::size_t, int, const Report&) {
    const Preparation preparation("the run is prepared");
    check_for_stop();
    return std::string();
  });
  std::size_t finished = 0;
  PoolEvents events;
  events.finished = [&finished](std::size_t, const std::string&) { ++finished; };
  const std::vector<std::size_t> tasks = first(4);
  StopRequest stop;
  {
    const StopScope scope(stop.token());
    crew.run(tasks, events);
    EXPECT_EQ(finished, 4U);
    stop.ask();
    crew.run(tasks, events);
  }
  EXPECT_EQ(finished, 4U) << "no task went on";
}

}  // namespace
}  // namespace fl
