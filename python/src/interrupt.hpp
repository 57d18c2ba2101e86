// Ctrl-C while C++ runs for Python.
#pragma once

#include <csignal>

#include "apps/fedbits/run_support.hpp"
#include "python/src/calls.hpp"

namespace fl::python {

// Lets Ctrl-C ask a study to stop, as on the command line. Python's own handler would only be heard when the study has ended.
class StopsAtInterrupt {
 public:
  explicit StopsAtInterrupt(bool is_wanted) : is_wanted_(is_wanted) {
    if (!is_wanted_) return;
    struct sigaction action {};
    action.sa_handler = ask_to_stop;
    ::sigaction(SIGINT, &action, &before_);
  }
  ~StopsAtInterrupt() {
    if (is_wanted_) ::sigaction(SIGINT, &before_, nullptr);
  }
  StopsAtInterrupt(const StopsAtInterrupt&) = delete;
  StopsAtInterrupt& operator=(const StopsAtInterrupt&) = delete;

 private:
  StoppableStudy study_;
  bool is_wanted_;
  struct sigaction before_ {};
};

}  // namespace fl::python
