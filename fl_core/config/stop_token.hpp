// A request to stop, between one who asks and those who look at it between two rounds. Each study has one of its own, so that two studies
// of one process stop apart.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace fl {

// The side that is asked. Copies belong to the same request. A token that nobody made is never asked.
class StopToken {
 public:
  StopToken() = default;
  [[nodiscard]] bool is_asked() const noexcept { return flag_ != nullptr && flag_->load(std::memory_order_relaxed); }

 private:
  friend class StopRequest;
  explicit StopToken(std::shared_ptr<const std::atomic<bool>> flag) : flag_(std::move(flag)) {}

  std::shared_ptr<const std::atomic<bool>> flag_;
};

// The side that asks, from any thread or from a handler of signals. Its tokens may outlive it.
class StopRequest {
 public:
  void ask() noexcept { flag_->store(true, std::memory_order_relaxed); }
  void take_back() noexcept { flag_->store(false, std::memory_order_relaxed); }
  [[nodiscard]] bool is_asked() const noexcept { return flag_->load(std::memory_order_relaxed); }
  [[nodiscard]] StopToken token() const { return StopToken(flag_); }

 private:
  static_assert(std::atomic<bool>::is_always_lock_free, "a handler of signals asks");

  std::shared_ptr<std::atomic<bool>> flag_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace fl
