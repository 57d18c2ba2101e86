#include "python/src/calls.hpp"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

namespace fl::python {

namespace {

constexpr std::chrono::milliseconds kPause(5);

// Changed with Python's lock alone, except in a forked child, which has one thread.
struct Counts {
  std::atomic<int> calls{0}, generation{0};
  std::set<StopRequest*> studies;
  std::atomic<bool> is_ending{false};
  std::thread::id ends;  // the thread in which the interpreter ends
};
Counts g_counts;
thread_local int g_own_calls = 0;  // of this thread

void forget_calls_of_parent() {
  g_counts.calls = 0;
  g_counts.studies.clear();
  g_counts.is_ending = false;
  ++g_counts.generation;
  g_own_calls = 0;
}

bool is_refused() { return g_counts.is_ending && std::this_thread::get_id() != g_counts.ends; }

[[noreturn]] void end_thread() {
  PyErr_SetString(PyExc_SystemExit, "the interpreter ends");
  throw nanobind::python_error();
}

// The last text about long work before a first round. It is written by threads without Python's lock.
struct Preparing {
  std::mutex mutex;
  std::string text;
};
Preparing g_preparing;

}  // namespace

void keep_preparation(const std::string& text) {
  const std::lock_guard lock(g_preparing.mutex);
  g_preparing.text = text;
}

Call::Call() {
  [[maybe_unused]] static const int registered = ::pthread_atfork(nullptr, nullptr, forget_calls_of_parent);
  if (is_refused()) end_thread();
  generation_ = g_counts.generation;
  ++g_counts.calls;
  ++g_own_calls;
}

Call::~Call() {
  if (generation_ != g_counts.generation) return;
  --g_counts.calls;
  --g_own_calls;
}

StoppableStudy::StoppableStudy() : generation_(g_counts.generation), scope_(request_.token(), keep_preparation) {
  g_counts.studies.insert(&request_);
}

StoppableStudy::~StoppableStudy() {
  if (generation_ == g_counts.generation) g_counts.studies.erase(&request_);
}

void end_calls() {
  g_counts.ends = std::this_thread::get_id();
  g_counts.is_ending = true;
  for (StopRequest* study : g_counts.studies) study->ask();
  while (g_counts.calls > g_own_calls) {
    {
      const nanobind::gil_scoped_release released;
      std::this_thread::sleep_for(kPause);
    }
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
  }
}

void raise_interrupt() {
  if (is_refused()) end_thread();
  PyErr_SetNone(PyExc_KeyboardInterrupt);
  throw nanobind::python_error();
}

std::string take_preparation() {
  const std::lock_guard lock(g_preparing.mutex);
  return std::exchange(g_preparing.text, {});
}

void translate_stops() {
  nanobind::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Stopped&) {
      if (is_refused())
        PyErr_SetString(PyExc_SystemExit, "the interpreter ends");
      else
        PyErr_SetNone(PyExc_KeyboardInterrupt);
    }
  });
}

}  // namespace fl::python
