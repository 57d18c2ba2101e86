// Giving up what takes long before the first round of a run: reading data, looking for a minimum, measuring a model for the first time.
//
// A run is stopped between two rounds, where it can be continued. Before its first round nothing has to be kept, so that work is given up
// as soon as somebody asks: every loop in it that may take more than two seconds calls check_for_stop(). After two seconds, and then from
// time to time, somebody is told what takes so long.
//
// The one who asks is that of the study for which a thread works (StopScope). A thread that works for none asks the program (StopSource).
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>

#include "fl_core/config/device.hpp"
#include "fl_core/config/stop_token.hpp"

namespace fl {

// Reports that work was given up because it was asked to stop.
class FL_API Stopped : public std::runtime_error {
 public:
  Stopped() : std::runtime_error("stopped before the first round") {}
  using std::runtime_error::runtime_error;
};

// Callbacks of a program: one says whether it is asked to stop, the other receives reports of long work. Both are called from any thread.
struct StopSource {
  bool (*is_asked)() = nullptr;  // called often; null = never
  void (*tell)(const std::string& text) = nullptr;
};
FL_API void set_stop_source(const StopSource& source);

// While it lives, the preparations that this thread begins are given up when its token asks, and their reports come to `tell`, which is
// called from any thread and may be empty. The program is not asked.
class FL_API StopScope {
 public:
  using Tell = std::function<void(const std::string& text)>;
  explicit StopScope(StopToken stop, Tell tell = {});
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

  // Returns the scope of this thread, or null.
  [[nodiscard]] static const StopScope* current();
  // Lets this thread begin preparations in the scope of another one, which outlives this object; null = in none.
  class FL_API Helper {
   public:
    explicit Helper(const StopScope* scope);
    ~Helper();
    Helper(const Helper&) = delete;
    Helper& operator=(const Helper&) = delete;

   private:
    const StopScope* const before_;
  };

 private:
  friend class Preparation;
  const StopToken stop_;
  const Tell tell_;
  const StopScope* const before_;
};

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
  const StopScope* const scope_;           // of the outermost one
  Clock::time_point begun_{};              // of the outermost one
  std::atomic<Clock::time_point> next_{};  // of the outermost one: when it is told of next
};

// Throws Stopped if this thread prepares something and is asked to stop.
inline void check_for_stop() {
  if (Preparation::is_running()) Preparation::check({});
}
// The same; `where()` returns how far the work has come, as text, for those who are told of it.
template <class Where>
void check_for_stop(const Where& where) {
  if (Preparation::is_running()) Preparation::check(where);
}

}  // namespace fl
