// Ctrl-C while C++ runs for Python.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <csignal>

#include "apps/fedbits/run_support.hpp"

namespace fl::python {

// Lets Ctrl-C ask the study to stop, as on the command line. Python's own handler would only be heard when the study has ended. A request
// to stop reaches all studies of the process that are going on, and is forgotten when the last of them has ended.
class StopsAtInterrupt {
 public:
  explicit StopsAtInterrupt(bool is_wanted) : is_wanted_(is_wanted) {
    if (count().fetch_add(1) == 0) ask_to_stop(0);
    if (!is_wanted_) return;
    struct sigaction action {};
    action.sa_handler = ask_to_stop;
    ::sigaction(SIGINT, &action, &before_);
  }
  ~StopsAtInterrupt() {
    if (is_wanted_) ::sigaction(SIGINT, &before_, nullptr);
    if (count().fetch_sub(1) == 1) ask_to_stop(0);
  }
  StopsAtInterrupt(const StopsAtInterrupt&) = delete;
  StopsAtInterrupt& operator=(const StopsAtInterrupt&) = delete;

 private:
  static std::atomic<int>& count() {
    static std::atomic<int> studies{0};
    return studies;
  }

  bool is_wanted_;
  struct sigaction before_ {};
};

[[noreturn]] inline void raise_interrupt() {
  PyErr_SetNone(PyExc_KeyboardInterrupt);
  throw nanobind::python_error();
}

}  // namespace fl::python
