#include "fl_core/config/stopping.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

namespace fl {

namespace {

constexpr std::chrono::seconds kFirst{2}, kLongest{30};  // between two texts about the same work

std::atomic<bool (*)()> g_is_asked{nullptr};
std::atomic<void (*)(const std::string&)> g_tell{nullptr};
thread_local Preparation* t_innermost = nullptr;
thread_local const StopScope* t_scope = nullptr;

}  // namespace

void set_stop_source(const StopSource& source) {
  g_is_asked = source.is_asked;
  g_tell = source.tell;
}

StopScope::StopScope(StopToken stop, Tell tell) : stop_(std::move(stop)), tell_(std::move(tell)), before_(std::exchange(t_scope, this)) {}

StopScope::~StopScope() { t_scope = before_; }

const StopScope* StopScope::current() { return t_scope; }

StopScope::Helper::Helper(const StopScope* scope) : before_(std::exchange(t_scope, scope)) {}

StopScope::Helper::~Helper() { t_scope = before_; }

Preparation::Preparation(std::string what)
    : what_(std::move(what)), outer_(std::exchange(t_innermost, this)), scope_(outer_ == nullptr ? t_scope : outer_->scope_) {
  if (outer_ != nullptr) return;
  begun_ = Clock::now();
  next_ = begun_ + kFirst;
}

Preparation::~Preparation() { t_innermost = outer_; }

Preparation* Preparation::current() { return t_innermost; }

Preparation::Helper::Helper(Preparation* helped) : before_(std::exchange(t_innermost, helped)) {}

Preparation::Helper::~Helper() { t_innermost = before_; }

void Preparation::check(const std::function<std::string()>& where) {
  const StopScope* const scope = t_innermost->scope_;
  const auto is_asked = g_is_asked.load(std::memory_order_relaxed);
  if (scope != nullptr ? scope->stop_.is_asked() : is_asked != nullptr && is_asked()) throw Stopped();
  const auto tell = g_tell.load(std::memory_order_relaxed);
  if (scope != nullptr ? !scope->tell_ : tell == nullptr) return;
  Preparation* outermost = t_innermost;
  while (outermost->outer_ != nullptr) outermost = outermost->outer_;
  const Clock::time_point now = Clock::now();
  Clock::time_point next = outermost->next_.load(std::memory_order_relaxed);
  const auto passed = std::chrono::duration_cast<std::chrono::seconds>(now - outermost->begun_);
  if (now < next || !outermost->next_.compare_exchange_strong(next, now + std::clamp(passed, kFirst, kLongest))) return;
  const std::string place = where ? ": " + where() : "", text = t_innermost->what_ + place + " (" + std::to_string(passed.count()) + " s)";
  if (scope != nullptr)
    scope->tell_(text);
  else
    tell(text);
}

}  // namespace fl
