// Giving up what takes long before the first round of a run: reading data, looking for a minimum, measuring a model for the first time.
//
// A run is stopped between two rounds, where it can be continued. Before its first round nothing has to be kept, so that work is given up
// as soon as the process is asked to stop: every loop in it that may take more than two seconds calls check_for_stop(). After two seconds,
// and then from time to time, somebody is told what takes so long.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>

#include "fl_core/config/device.hpp"

namespace fl {

// Reports that work was given up because the process was asked to stop.
class FL_API Stopped : public std::runtime_error {
 public:
  Stopped() : std::runtime_error("stopped before the first round") {}
  using std::runtime_error::runtime_error;
};

// Callbacks: one says whether this process is asked to stop, the other receives reports of long work. Both are called from any thread.
struct StopSource {
  bool (*is_asked)() = nullptr;  // called often; null = never
  void (*tell)(const std::string& text) = nullptr;
};
FL_API void set_stop_source(const StopSource& source);

// While it lives, the work of this thread can be given up. Preparations may be nested: the innermost one is told of.
class FL_API Preparation {
 public:
  // `what` is a sentence, as in "the data are read".
  explicit Preparation(std::string what);
  ~Preparation();
  Preparation(const Preparation&) = delete;
  Preparation& operator=(const Preparation&) = delete;

  [[nodiscard]] static bool is_running() { return current() != nullptr; }
  // Returns the innermost preparation of this thread, or null.
  [[nodiscard]] static Preparation* current();
  // Lets this thread work for the preparation of another one, which outlives this object; null = for none.
  class FL_API Helper {
   public:
    explicit Helper(Preparation* helped);
    ~Helper();
    Helper(const Helper&) = delete;
    Helper& operator=(const Helper&) = delete;

   private:
    Preparation* const before_;
  };
  // Does check_for_stop(). `where` is how far the work has come, or null.
  static void check(const std::function<std::string()>& where);

 private:
  using Clock = std::chrono::steady_clock;

  const std::string what_;
  Preparation* const outer_;
  Clock::time_point begun_{};              // of the outermost one
  std::atomic<Clock::time_point> next_{};  // of the outermost one: when it is told of next
};

// Throws Stopped if this thread prepares something and the process is asked to stop.
inline void check_for_stop() {
  if (Preparation::is_running()) Preparation::check({});
}
// The same; `where()` returns how far the work has come, as text, for those who are told of it.
template <class Where>
void check_for_stop(const Where& where) {
  if (Preparation::is_running()) Preparation::check(where);
}

}  // namespace fl
