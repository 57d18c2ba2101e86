// Calls that work without Python's lock, and the end of the interpreter.
//
// A thread that asks for the lock while the interpreter ends is ended by Python, also in the middle of C++ code, and that aborts the
// process. Therefore the end of the interpreter (fedbits/_ending.py) asks the studies of other threads to stop, waits for their calls, and
// refuses new ones. Threads that Python waits for itself have ended by then. A child that was forked has none of its parent's calls.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace fl::python {

// Counts a call as long as it exists. It is made and destroyed with Python's lock. In a thread of its own after the end has begun, the
// constructor raises SystemExit, which ends the thread without a message.
class Call {
 public:
  Call();
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  int generation_ = 0;  // of the process that made it: a forked child is another one
};

// Releases Python's lock, and takes it again at the end of its life.
class WithoutLock {
 private:
  Call call_;  // first: the lock is taken again before the call has ended
  nanobind::gil_scoped_release released_;
};

// Counts a study as long as it exists, which caught_signal() stops. A request to stop reaches all studies of the process that are going on,
// and is forgotten when the last of them has ended.
class StoppableStudy {
 public:
  StoppableStudy();
  ~StoppableStudy();
  StoppableStudy(const StoppableStudy&) = delete;
  StoppableStudy& operator=(const StoppableStudy&) = delete;

 private:
  Call call_;
  int generation_ = 0;
};

// Refuses further calls of other threads, asks their studies to stop, and waits for their calls. Raises what a handler of signals raises.
void end_calls();

// Raises KeyboardInterrupt for a study that was stopped, and SystemExit in a thread that does not outlive the interpreter.
[[noreturn]] void raise_interrupt();

// Lets a study that is asked to stop give up what it does before its first round, and lets Python see that as raise_interrupt() does. Keeps
// what such work says of itself for take_preparation().
void watch_preparations();

// Returns what the work before a first round said of itself since the last call, as "the data are read (2 s)"; "" for nothing. Studies of
// several threads share one text.
[[nodiscard]] std::string take_preparation();

}  // namespace fl::python
