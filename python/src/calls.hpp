// Calls that work without Python's lock, and the end of the interpreter.
//
// A thread that asks for the lock while the interpreter ends is ended by Python, also in the middle of C++ code, and that aborts the
// process. Therefore the end of the interpreter (fedbits/_ending.py) asks the studies of other threads to stop, waits for their calls, and
// refuses new ones. Threads that Python waits for itself have ended by then. A child that was forked has none of its parent's calls.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "fl_core/config/stop_token.hpp"
#include "fl_core/config/stopping.hpp"

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

// Counts a study as long as it exists, and lets it be asked to stop: by the end of the interpreter, and by those who have its request. What
// it prepares before a first round is given up then, and what that work says of itself is kept for take_preparation().
class StoppableStudy {
 public:
  StoppableStudy();
  ~StoppableStudy();
  StoppableStudy(const StoppableStudy&) = delete;
  StoppableStudy& operator=(const StoppableStudy&) = delete;

  [[nodiscard]] StopRequest& request() { return request_; }
  [[nodiscard]] StopToken token() const { return request_.token(); }
  [[nodiscard]] bool is_asked() const { return request_.is_asked(); }

 private:
  Call call_;
  int generation_ = 0;
  StopRequest request_;
  StopScope scope_;
};

// Refuses further calls of other threads, asks their studies to stop, and waits for their calls. Raises what a handler of signals raises.
void end_calls();

// Raises KeyboardInterrupt for a study that was stopped, and SystemExit in a thread that does not outlive the interpreter.
[[noreturn]] void raise_interrupt();

// Lets Python see work that was given up before a first round as raise_interrupt() does.
void translate_stops();
// Keeps what the work before a first round says of itself. May be called without Python's lock.
void keep_preparation(const std::string& text);

// Returns what the work before a first round said of itself since the last call, as "the data are read (2 s)"; "" for nothing. Studies of
// several threads share one text.
[[nodiscard]] std::string take_preparation();

}  // namespace fl::python
