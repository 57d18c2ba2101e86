// Ctrl-C while C++ runs for Python.
#pragma once

#include <csignal>
#include <utility>

#include "python/src/calls.hpp"

namespace fl::python {

// Lets Ctrl-C ask a study of the main thread to stop, as on the command line. Python's own handler would only be heard when the study has
// ended. Studies of other threads go on.
class StopsAtInterrupt : public StoppableStudy {
 public:
  explicit StopsAtInterrupt(bool on_main_thread) : is_wanted_(on_main_thread) {
    if (!is_wanted_) return;
    outer_ = std::exchange(asked(), &request());
    struct sigaction action {};
    action.sa_handler = [](int) { asked()->ask(); };
    ::sigaction(SIGINT, &action, &before_);
  }
  ~StopsAtInterrupt() {
    if (!is_wanted_) return;
    ::sigaction(SIGINT, &before_, nullptr);
    asked() = outer_;
  }
  StopsAtInterrupt(const StopsAtInterrupt&) = delete;
  StopsAtInterrupt& operator=(const StopsAtInterrupt&) = delete;

 private:
  // The request of the main thread's innermost study, which the handler asks.
  static StopRequest*& asked() {
    static constinit StopRequest* one = nullptr;
    return one;
  }

  bool is_wanted_;
  StopRequest* outer_ = nullptr;
  struct sigaction before_ {};
};

}  // namespace fl::python
